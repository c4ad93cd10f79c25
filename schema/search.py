"""Searches of posts."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph.search import post_search as search
from resolvers import searches
from schema.connections import PostConnection


@strawberry.type(description="The posts that match a filter.")
class PostSearch:
    """Backed by `graph.search.post_search.Search`."""

    record: ClassVar[type] = search.Search

    live_cursor: str | None = batched(
        searches.live_cursors,
        description="Pass this cursor as `after` to the `events` subscription with the same filter to receive every "
        "matching post that is too new for the page in `posts`. This includes posts published just before the search. "
        "Select the cursor with the same arguments as `posts`. Null if `after` or `before` is given; in that case, "
        "keep the cursor that you have.",
    )
    posts: PostConnection | None = batched(
        searches.posts,
        description="A page of the posts, newest first. Requires `first` or `last`. The server scans at most 2,000 "
        "posts for a page, so a page may have fewer posts than requested, or none, before the end: continue while "
        "`hasNextPage` is true, or `hasPreviousPage` with `last`. Null if the page cannot be read; `errors` gives the "
        "reason.",
    )
