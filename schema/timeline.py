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
    live_cursor: str = batched(
        timelines.live_cursors,
        description="Pass this cursor as `after` to a subscription that continues from the pages of this response "
        "without missing an event. A post of a page may be sent again: ignore it by its `id`. Keep the cursor of the "
        "newest page, then the cursor of the last event; older pages do not change it.",
    )
    posts: PostConnection | None = batched(
        timelines.posts,
        description="A page of the timeline, newest first. Requires `first` or `last`. A page has fewer posts than "
        "requested only at the end of the timeline, or if it has looked at 2,000 posts, most of which are left out: "
        "`pageInfo` then says that there are more. Null if the page cannot be read; `errors` gives the reason.",
    )
