"""The GraphQL schema: types, names and descriptions. The resolvers of the fields are in `resolvers`."""

from datetime import datetime

import strawberry
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig

from schema.account import Session
from schema.attachment import ImageAttachment, VideoAttachment
from schema.mutation import Mutation
from schema.notification import (
    FollowNotification,
    LikeNotification,
    MentionNotification,
    NotificationFeed,
    QuoteNotification,
    ReplyNotification,
    RepostNotification,
)
from schema.post import Post
from schema.query import Query
from schema.relationship import Relationship
from schema.repost import Repost
from schema.scalars import DATE_TIME
from schema.subscription import (
    AuthorAdded,
    AuthorHidden,
    AuthorRemoved,
    Checkpoint,
    Gap,
    NotificationAdded,
    NotificationsChanged,
    PostAdded,
    PostChanged,
    PostRemoved,
    ReplyAdded,
    RepostAdded,
    RepostRemoved,
    Subscription,
    TimelineChanged,
    UserFollowed,
    UserUnfollowed,
)
from schema.text_entity import HashtagEntity, LinkEntity, MentionEntity
from schema.timeline import Timeline
from schema.user import User
from schema.user_list import UserList
from schema.viewer import Viewer

DESCRIPTION = """The API of Fanline, a micro-blog: users, posts, follows, timelines and live updates.

Ids are global and opaque, and lists are Relay connections. Mutations report expected failures in `userErrors`. All other failures are in `errors`, with a stable `extensions.code`.

Later versions may add types, fields, enum values and error codes. Clients must ignore events, timeline entries and attachments with an unknown `__typename`, and treat unknown enum values and codes as the default case."""  # noqa: E501 - lines would break in the SDL

schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    types=[
        User,
        Viewer,
        Post,
        Repost,
        Timeline,
        Relationship,
        Session,
        UserList,
        MentionEntity,
        HashtagEntity,
        LinkEntity,
        ImageAttachment,
        VideoAttachment,
        NotificationFeed,
        FollowNotification,
        ReplyNotification,
        MentionNotification,
        QuoteNotification,
        RepostNotification,
        LikeNotification,
        PostAdded,
        RepostAdded,
        PostRemoved,
        RepostRemoved,
        ReplyAdded,
        PostChanged,
        AuthorAdded,
        AuthorRemoved,
        AuthorHidden,
        TimelineChanged,
        UserFollowed,
        UserUnfollowed,
        NotificationAdded,
        NotificationsChanged,
        Checkpoint,
        Gap,
    ],
    config=StrawberryConfig(scalar_map={datetime: DATE_TIME}),
)


schema._schema.description = DESCRIPTION  # Strawberry has no parameter for it, and its printer omits it


def sdl() -> str:
    """Return the schema as SDL, the content of `schema.graphql`."""
    operations = "schema {\n  query: Query\n  mutation: Mutation\n  subscription: Subscription\n}"
    return f'"""\n{DESCRIPTION}\n"""\n{operations}\n\n{print_schema(schema)}\n'
