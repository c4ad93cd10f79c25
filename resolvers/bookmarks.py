"""The resolvers of bookmarks: adding and removing bookmarks, and the viewer's own bookmarks."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode
from graph.model import BookmarkedPost, Page, Post
from graph.paging import CursorKind, Window, encode_cursors
from resolvers import inputs
from resolvers.connections import After, Before, First, Last, PageEnds, page_ends
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, load_posts, mutation, post_number
from resolvers.times import FormattedTime, format_times


@dataclass(frozen=True, slots=True)
class BookmarkPage:
    """A page of the viewer's bookmarks."""

    page: Page[BookmarkedPost]

    @property
    def edges(self) -> tuple[BookmarkedPost, ...]:
        """The bookmarks, as records of their edges."""
        return self.page.items

    @property
    def nodes(self) -> list[Post]:
        """The posts."""
        return [each.post for each in self.page.items]

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of bookmarks."""
        ends = (*self.page.items[:1], *self.page.items[-1:])
        return page_ends(self.page, CursorKind.BOOKMARK, [each.number for each in ends])


@dataclass(frozen=True, slots=True, kw_only=True)
class BookmarkPayload(Payload):
    """The record of `BookmarkPostPayload` and `RemoveBookmarkPayload`: a post, and whether it is bookmarked now."""

    post: int | None = None
    is_bookmarked: bool = False


@mutation(BookmarkPayload, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY)
async def bookmark_post(
    context: Context,
    *,
    input: Annotated[inputs.BookmarkPostInput, strawberry.argument(description="The post to bookmark.")],
) -> BookmarkPayload:
    """Bookmark a post as the viewer."""
    viewer, post = context.require_viewer(), post_number(input.post_id, "postId")
    found = await context.graph.bookmarks.add(context.loaders.view, viewer.user, post)
    return BookmarkPayload(post=found, is_bookmarked=True)


@mutation(BookmarkPayload, ProblemCode.NOT_FOUND)
async def remove_bookmark(
    context: Context,
    *,
    input: Annotated[inputs.RemoveBookmarkInput, strawberry.argument(description="The bookmark to remove.")],
) -> BookmarkPayload:
    """Remove the viewer's bookmark of a post."""
    viewer, post = context.require_viewer(), post_number(input.post_id, "postId")
    return BookmarkPayload(post=await context.graph.bookmarks.remove(context.loaders.view, viewer.user, post))


async def payload_posts(payloads: Sequence[BookmarkPayload], context: Context) -> list[Post | None]:
    """Return the post after each mutation; None if it failed, or the post is deleted or hidden. One round trip.

    The outcomes are added to the loader `viewer_bookmarks`, so that it need not read them.
    """
    known = {each.post: each.is_bookmarked for each in payloads if each.post is not None}
    if known:
        context.loaders.viewer_bookmarks.prime_many(known)
    return await load_posts(context, [each.post for each in payloads])


def viewer_has_bookmarked(
    posts: Sequence[Post], context: Context
) -> Awaitable[Sequence[bool | None]] | Sequence[bool | None]:
    """Return for each post whether the viewer has bookmarked it; None for anonymous requests. One round trip."""
    if context.viewer is None:
        return [None] * len(posts)
    return context.loaders.viewer_bookmarks.fetch_many([post.id for post in posts])


async def bookmarks(
    viewers: Sequence[Viewer],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[BookmarkPage]:
    """Return a page of each viewer's bookmarks. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.BOOKMARK, first=first, after=after, last=last, before=before)
    pages = await context.loaders.bookmarks.load_many([(each.user, window) for each in viewers])
    return [BookmarkPage(page) for page in pages]


def bookmark_cursors(bookmarks: Sequence[BookmarkedPost], context: Context) -> list[str]:
    """Return the cursors of bookmarks."""
    return encode_cursors(CursorKind.BOOKMARK, [each.number for each in bookmarks])


def bookmark_times(bookmarks: Sequence[BookmarkedPost], context: Context) -> list[FormattedTime]:
    """Return the times of bookmarks."""
    return format_times([each.number for each in bookmarks])


def bookmark_nodes(bookmarks: Sequence[BookmarkedPost], context: Context) -> list[Post]:
    """Return the posts of bookmarks."""
    return [each.post for each in bookmarks]
