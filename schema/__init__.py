"""The GraphQL schema: types, names and descriptions. The resolvers of the fields are in `resolvers`."""

from datetime import datetime

import strawberry
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig

from schema.mutation import Mutation
from schema.post import Post
from schema.query import Query
from schema.relationship import Relationship
from schema.scalars import DATE_TIME
from schema.subscription import (
    AuthorAdded,
    AuthorRemoved,
    Checkpoint,
    Gap,
    PostAdded,
    PostDeleted,
    PostPublished,
    PostRemoved,
    Subscription,
    UserFollowed,
    UserUnfollowed,
)
from schema.timeline import Timeline
from schema.user import User

schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    types=[
        User,
        Post,
        Timeline,
        Relationship,
        PostAdded,
        PostRemoved,
        AuthorAdded,
        AuthorRemoved,
        PostPublished,
        PostDeleted,
        UserFollowed,
        UserUnfollowed,
        Checkpoint,
        Gap,
    ],
    config=StrawberryConfig(scalar_map={datetime: DATE_TIME}),
)


def sdl() -> str:
    """Return the schema as SDL, the content of `schema.graphql`."""
    return print_schema(schema) + "\n"
