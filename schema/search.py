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

    live_cursor: str = batched(
        searches.live_cursors,
        description="Pass this cursor as `after` to the subscription `events` with the same filter: together with the "
        "pages of this search it sends every post that matches. A post that was published a moment ago may arrive "
        "only through the subscription.",
    )
    posts: PostConnection | None = batched(
        searches.posts,
        description="A page of the posts, newest first. Requires `first` or `last`. The server scans at most 2,000 "
        "posts "
        "for a page, so it may have fewer posts than requested, even none, with more to come: continue from its end "
        "as long "
        "as `pageInfo` says that there are more. Null if the page cannot be read; `errors` gives the reason.",
    )
