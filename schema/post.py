"""Posts and where they were written."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import posts
from schema.node import Node

if TYPE_CHECKING:
    from schema.user import User


@strawberry.type(description="A point on the globe.")
class Location:
    """Values are `graph.model.Location`."""

    record: ClassVar[type] = model.Location

    latitude: float = strawberry.field(description="Degrees north of the equator.")
    longitude: float = strawberry.field(description="Degrees east of Greenwich.")


@strawberry.type(description="A published post. Posts never change; they can only be deleted.")
class Post(Node):
    """Values are `graph.model.Post`."""

    record: ClassVar[type] = model.Post

    id: strawberry.ID = batched(posts.global_ids, description="The global id.")
    text: str = strawberry.field(description="What was written: 1 to 1000 characters.")
    created_at: datetime = batched(posts.creation_times, description="When it was published.")
    platform: str | None = strawberry.field(description="What it was written with, if that is known.")
    location: Location | None = strawberry.field(description="Where it was written, if the author told.")
    author: Annotated["User", strawberry.lazy("schema.user")] = batched(
        posts.authors, references=posts.author_references, description="Who published it."
    )
