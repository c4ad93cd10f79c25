"""The interface of posts and reposts."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import strawberry

from executor.fields import batched
from resolvers import posts
from schema.node import Node

if TYPE_CHECKING:
    from schema.user import User


def author(description: str) -> Any:
    """Declare the field `author` of an entry."""
    return batched(posts.authors, independent=True, references=posts.author_references, description=description)


def created_at(description: str) -> Any:
    """Declare the field `createdAt` of an entry."""
    return batched(posts.creation_times, independent=True, description=description)


@strawberry.interface(description="An entry of a timeline: a post or a repost. Leave out entries of unknown types.")
class TimelineItem(Node):
    """The values are instances of `graph.model.Post` and `graph.model.Repost`."""

    author: Annotated["User", strawberry.lazy("schema.user")] = author(
        "The user who published the post, or who reposted."
    )
    created_at: datetime = created_at("When the post was published, or when the user reposted.")
