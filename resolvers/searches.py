"""The resolvers of searches of posts and users."""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Annotated

import strawberry

from graph.feed.filters import Box
from graph.paging import CursorKind, Window
from graph.search.post_search import Search, post_filter
from resolvers.blocks import UserPage
from resolvers.connections import (
    After,
    Before,
    First,
    Last,
    PostPage,
    as_post_pages,
    first_page_cursors,
    same_argument,
)
from resolvers.context import Context
from resolvers.inputs import PostFilter
from resolvers.subscriptions import user_numbers

SameNumber = Annotated[int | None, same_argument("posts")]
SameCursor = Annotated[str | None, same_argument("posts")]


async def search_posts(
    context: Context,
    *,
    filter: Annotated[PostFilter, strawberry.argument(description="The filter that posts must match.")],  # noqa: A002 - contract
    since: Annotated[
        datetime | None, strawberry.argument(description="Find posts that were published at this time or later.")
    ] = None,
    until: Annotated[
        datetime | None, strawberry.argument(description="Find posts that were published before this time.")
    ] = None,
) -> Search:
    """Return a search of posts with the current archive watermark. One query.

    Raises BadInput and BadFilter for an invalid filter, and ArchiveUnavailable.
    """
    box = filter.within
    chosen = post_filter(
        None if filter.users is None else user_numbers(filter.users),
        filter.keywords,
        None if box is None else Box(box.south, box.west, box.north, box.east),
    )
    return await context.graph.searches.begin(chosen, since, until)


async def search_users(
    context: Context,
    *,
    text: Annotated[
        str, strawberry.argument(description="The beginning of a login, or words of a name: at most 50 characters.")
    ],
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> UserPage:
    """Return a page of the users who match a text. One round trip, and another for a login that is not in the cache.

    Raises BadFilter, BadPaging and ArchiveUnavailable.
    """
    window = Window.of(CursorKind.USER, first=first, after=after, last=last, before=before)
    page, profiles = await context.graph.user_searches.page(context.loaders.view, text, window)
    context.loaders.unchecked_users.prime_many(profiles)
    return UserPage(page)


def live_cursors(
    searches: Sequence[Search],
    context: Context,
    *,
    first: SameNumber = None,
    after: SameCursor = None,
    last: SameNumber = None,
    before: SameCursor = None,
) -> list[str | None]:
    """Return log cursors. A subscription with the search's filter that starts from one receives every later post.

    None if the arguments are not those of a first page.
    """
    return first_page_cursors([search.watermark for search in searches], after, before)


def posts(
    searches: Sequence[Search],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Return a page of the posts that each search finds. Raises BadPaging. Pages fail if the archive is down."""
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    return context.loaders.found_posts.fetch_many([(search, window) for search in searches]).then(as_post_pages)
