"""Posts and their locations."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import attachments, entities, posts
from resolvers import likes as post_likes
from schema.attachment import Attachment
from schema.node import Node
from schema.text_entity import TextEntity

if TYPE_CHECKING:
    from schema.like import LikeConnection
    from schema.user import User


@strawberry.type(description="A geographic position.")
class Location:
    """Values are `graph.model.Location`."""

    record: ClassVar[type] = model.Location

    latitude: float = strawberry.field(description="The latitude in degrees, from -90 (south) to 90 (north).")
    longitude: float = strawberry.field(description="The longitude in degrees, from -180 (west) to 180 (east).")


@strawberry.type(description="A published post. A post never changes; it can only be deleted.")
class Post(Node):
    """Values are `graph.model.Post`."""

    record: ClassVar[type] = model.Post

    id: strawberry.ID = batched(posts.global_ids, description="The global id of the post.")
    text: str = strawberry.field(
        description="The text, up to 1,000 characters. It is empty only if there are attachments."
    )
    entities: list[TextEntity] = batched(
        entities.entities,
        description="The mentions, hashtags and links in the text, in their order. They do not overlap. At most 50.",
    )
    attachments: list[Attachment] = batched(
        attachments.attachments, description="The pictures and videos that the post shows. At most 4."
    )
    created_at: datetime = batched(posts.creation_times, description="When the post was published.")
    platform: str | None = strawberry.field(
        description="The app or device that the post was written with, such as `Web`. Null if unknown."
    )
    location: Location | None = strawberry.field(
        description="Where the post was written. Null if the author did not share a location."
    )
    author: Annotated["User", strawberry.lazy("schema.user")] = batched(
        posts.authors, references=posts.author_references, description="The user who published the post."
    )
    likes: Annotated["LikeConnection", strawberry.lazy("schema.like")] | None = batched(
        post_likes.likes,
        description="The users who like the post, most recent like first. Requires `first` or `last`. Null if the page "
        "cannot be read; `errors` gives the reason.",
    )
    likes_count: int = batched(post_likes.likes_counts, description="The exact number of likes.")
    viewer_has_liked: bool | None = batched(
        post_likes.viewer_has_liked, description="Whether the viewer likes the post. Null for anonymous requests."
    )
