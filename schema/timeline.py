"""Home timelines, users' own timelines, the timelines of lists, and the public timeline."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import timelines
from resolvers.enums import TimelineKind
from schema.connections import PostConnection
from schema.node import Node


@strawberry.type(description="A list of posts, newest first.")
class Timeline(Node):
    """Backed by `graph.model.Timeline`."""

    record: ClassVar[type] = model.Timeline

    id: strawberry.ID = batched(
        timelines.global_ids, description="The global id of this owner's timeline of this kind."
    )
    kind: TimelineKind = strawberry.field(description="Whose posts the timeline contains.")
    live_cursor: str | None = batched(
        timelines.live_cursors,
        description="Pass this cursor as `after` to a subscription, so that no event after the page of this response "
        "is missed. A post of the page may be sent again: ignore a post whose `id` is already in the list. Select it "
        "with the arguments of `posts`. Null if `after` or `before` is given: then keep the cursor that you have, "
        "which is the `cursor` of the last event or the `liveCursor` of the first page. Caches share it "
        "between lists of this timeline with equal arguments.",
    )
    posts: PostConnection | None = batched(
        timelines.posts,
        description="A page of the timeline, newest first. Requires `first` or `last`. The server scans at most 2,000 "
        "posts for a page, so a page may have fewer posts than requested, or none, before the end: continue while "
        "`hasNextPage` is true, or `hasPreviousPage` with `last`. Null if the page cannot be read; `errors` gives the "
        "reason.",
    )
