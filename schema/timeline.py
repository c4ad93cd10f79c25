"""Home timelines, users' own timelines, the timelines of lists, and the public timeline."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import connections, posts, timelines
from resolvers.enums import TimelineKind
from schema.connections import PageInfo
from schema.node import Node
from schema.timeline_item import TimelineItem


@strawberry.type(description="An entry of a timeline.")
class TimelineEdge:
    """Backed by `graph.model.Post` or `graph.model.Repost`: each is the record of its own edge."""

    record: ClassVar[type] = model.Post

    cursor: str = batched(connections.post_cursors, independent=True, description=connections.POST_CURSOR)
    node: TimelineItem = batched(posts.edge_nodes, independent=True, description="The post or repost.")


@strawberry.type(description="A page of a timeline, newest first.")
class TimelineConnection:
    """Backed by `resolvers.connections.PostPage`."""

    record: ClassVar[type] = connections.PostPage

    edges: list[TimelineEdge] = strawberry.field(description="The page's entries, with cursors.")
    nodes: list[TimelineItem] = strawberry.field(description="The page's entries, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="A list of posts and reposts, newest first.")
class Timeline(Node):
    """Backed by `graph.model.Timeline`."""

    record: ClassVar[type] = model.Timeline

    id: strawberry.ID = batched(
        timelines.global_ids, description="The global id of the timeline, determined by its owner and kind."
    )
    kind: TimelineKind = strawberry.field(description="Whose entries the timeline contains.")
    live_cursor: str | None = batched(
        timelines.live_cursors,
        description="Pass this cursor as `after` to a subscription to receive every change since the page in `entries` "
        "was read. An entry of the page may be sent again: ignore an entry whose `id` is already in the list. Select "
        "the cursor with the same arguments as `entries`. Null if `after` or `before` is given; in that case, keep the "
        "cursor that you have, which is the `cursor` of the last event or the `liveCursor` of the first page. A "
        "normalised client cache stores only one value for all lists of this timeline with equal arguments.",
    )
    entries: TimelineConnection | None = batched(
        timelines.entries,
        description="A page of the timeline, newest first. Requires `first` or `last`. The server scans at most 2,000 "
        "entries for a page, so a page may have fewer entries than requested, or none, before the end: continue while "
        "`hasNextPage` is true, or `hasPreviousPage` with `last`. Null if the page cannot be read; `errors` gives the "
        "reason.",
    )
