"""Timelines."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import timelines
from resolvers.enums import TimelineKind
from schema.connections import PostConnection
from schema.node import Node


@strawberry.type(description="Posts by time: a person's own, or those of everyone whom a person follows.")
class Timeline(Node):
    """Values are `graph.model.Timeline`."""

    record: ClassVar[type] = model.Timeline

    id: strawberry.ID = batched(timelines.global_ids, description="The global id, of the owner and the kind.")
    kind: TimelineKind = strawberry.field(description="Whose posts it shows.")
    posts: PostConnection | None = batched(
        timelines.posts,
        description="A page of the timeline, newest first. A page has as many posts as asked for "
        "unless the timeline "
        "ends there. Give `first` or `last`.",
    )
