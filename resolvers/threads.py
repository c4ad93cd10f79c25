"""The resolvers of replies, threads and quotes."""

from collections.abc import Awaitable, Sequence
from typing import Annotated

import strawberry

from executor.loader import DataLoader
from graph.model import Page, Post
from graph.paging import CursorKind, Window
from graph.posts.publication import MAX_ANCESTORS
from resolvers import ids
from resolvers.connections import (
    After,
    Before,
    First,
    Last,
    PostPage,
    as_post_pages,
    checked_limit,
    first_page_cursors,
    same_argument,
)
from resolvers.context import Context
from resolvers.page_loading import PageKey

SameNumber = Annotated[int | None, same_argument("replies")]
SameCursor = Annotated[str | None, same_argument("replies")]
LimitOfAncestors = Annotated[
    int, strawberry.argument(description=f"How many of the nearest posts to return, 1 to {MAX_ANCESTORS}.")
]


def parents(posts: Sequence[Post], context: Context) -> Awaitable[list[Post | Exception | None]]:
    """Return the parent of each post; None if the post is not a reply or its parent is gone. One round trip."""
    return context.start(optional_posts(context, [post.reply_to for post in posts]))


def roots(posts: Sequence[Post], context: Context) -> Awaitable[list[Post | Exception | None]]:
    """Return the root of each reply's thread; None if the post is not a reply or the root is gone. One round trip."""
    return context.start(optional_posts(context, [post.root for post in posts]))


def quoted_or_reposted(
    posts: Sequence[Post], context: Context
) -> Awaitable[list[Post | Exception | None]] | list[Post | Exception | None]:
    """Return the post that each post quotes or each repost shows; None if there is none, or it is gone.

    One round trip. If the loader already holds all of these posts, as it does for a page's reposts, return a list
    instead of an awaitable, so that the executor can resolve their fields at once.
    """
    wanted = [post.repost_of for post in posts]
    held = context.loaders.posts.cached_many(post for post in wanted if post is not None)
    if held is None:
        return context.start(optional_posts(context, wanted))
    values = iter(held)
    return [None if post is None else next(values) for post in wanted]


async def ancestors(
    posts: Sequence[Post], context: Context, *, limit: LimitOfAncestors = MAX_ANCESTORS
) -> list[list[Post | None] | Exception]:
    """Return the nearest posts above each reply, oldest first, with None for posts that are gone. One round trip.

    Raises BadPaging if `limit` is not from 1 to `MAX_ANCESTORS`.
    """
    limit = checked_limit(limit, MAX_ANCESTORS)
    chains = [[] if post.reply_to is None else [*post.ancestors, post.reply_to][-limit:] for post in posts]
    found = iter(await optional_posts(context, [id_ for chain in chains for id_ in chain]))
    return [first_failure([next(found) for _ in chain]) for chain in chains]


def first_failure(chain: list[Post | Exception | None]) -> list[Post | None] | Exception:
    """Return the posts of a chain, or the error of the first one that could not be read."""
    posts: list[Post | None] = []
    for post in chain:
        if isinstance(post, Exception):
            return post
        posts.append(post)
    return posts


async def optional_posts(context: Context, posts: Sequence[int | None]) -> list[Post | Exception | None]:
    """Return the posts with these ids; None where the id is None, or the post is deleted or hidden."""
    known = [post for post in posts if post is not None]
    loaded = iter(await context.loaders.posts.fetch_many(known)) if known else iter(())
    return [None if post is None else next(loaded) for post in posts]


def parent_ids(posts: Sequence[Post], context: Context) -> list[str | None]:
    """Return the global id of each post's parent."""
    return optional_ids([post.reply_to for post in posts])


def quoted_or_reposted_ids(posts: Sequence[Post], context: Context) -> list[str | None]:
    """Return the global id of the post that each post quotes or each repost shows."""
    return optional_ids([post.repost_of for post in posts])


def optional_ids(posts: Sequence[int | None]) -> list[str | None]:
    """Return the global ids of posts; None where the number is None."""
    return [None if post is None else ids.encode(ids.Kind.POST, post) for post in posts]


def replies_counts(posts: Sequence[Post], context: Context) -> list[int]:
    """Return the numbers of direct replies to posts."""
    return [post.replies for post in posts]


def reposts_counts(posts: Sequence[Post], context: Context) -> list[int]:
    """Return the numbers of plain reposts of posts."""
    return [post.reposts for post in posts]


def quotes_counts(posts: Sequence[Post], context: Context) -> list[int]:
    """Return the numbers of quotes of posts."""
    return [post.quotes for post in posts]


def replies(
    posts: Sequence[Post],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Return a page of the direct replies to each post, newest first. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    return context.start(pages_of_replies(context, posts, window))


async def pages_of_replies(context: Context, posts: Sequence[Post], window: Window) -> list[PostPage | Exception]:
    """Return a page of each post's replies. The live cursor's watermark must not be newer, so it is read first."""
    await context.watermark()
    return await pages(context.loaders.replies, posts, window)


async def live_cursors(
    posts: Sequence[Post],
    context: Context,
    *,
    first: SameNumber = None,
    after: SameCursor = None,
    last: SameNumber = None,
    before: SameCursor = None,
) -> list[str | None]:
    """Return log cursors. A subscription to a thread that starts from one receives every later change of its replies.

    The cursor is a watermark that was read before any page. None if the arguments are not those of a first page.
    """
    return first_page_cursors([await context.watermark()] * len(posts), after, before)


def reposts(
    posts: Sequence[Post],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Return a page of the plain reposts of each post, newest first. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    return context.start(pages(context.loaders.reposts, posts, window))


def quotes(
    posts: Sequence[Post],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[PostPage | Exception]]:
    """Return a page of the quotes of each post, newest first. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.POST, first=first, after=after, last=last, before=before)
    return context.start(pages(context.loaders.quotes, posts, window))


async def pages(
    loader: DataLoader[PageKey, Page[Post]], posts: Sequence[Post], window: Window
) -> list[PostPage | Exception]:
    """Return a page of each post's list. If the archive is down, only the pages that need it fail."""
    return as_post_pages(await loader.fetch_many([(post.id, window) for post in posts]))
