"""The resolvers of likes: like and unlike, the users who like a post, and the posts that the viewer likes."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode
from graph.model import Like, LikedPost, Page, Post, User
from graph.paging import CursorKind, Window, encode_cursors
from resolvers import inputs
from resolvers.connections import After, Before, First, Last, PageEnds, page_ends
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, load_posts, mutation, post_number
from resolvers.references import Reference, refer
from resolvers.times import FormattedTime, format_times


@dataclass(frozen=True, slots=True)
class LikePage:
    """A page of the likes of a post."""

    post: Post
    page: Page[Like]

    @property
    def edges(self) -> tuple[Like, ...]:
        """The likes, as records of their edges."""
        return self.page.items

    @property
    def total_count(self) -> int:
        """The number of likes."""
        return self.post.likes

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of likes."""
        return like_ends(self.page)


@dataclass(frozen=True, slots=True)
class LikedPostPage:
    """A page of the posts that the viewer likes."""

    page: Page[LikedPost]

    @property
    def edges(self) -> tuple[LikedPost, ...]:
        """The likes, as records of their edges."""
        return self.page.items

    @property
    def nodes(self) -> list[Post]:
        """The posts."""
        return [liked.post for liked in self.page.items]

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of likes."""
        return like_ends(self.page)


@dataclass(frozen=True, slots=True, kw_only=True)
class LikePayload(Payload):
    """The record of `LikePostPayload` and `UnlikePostPayload`: a post's id, and whether the viewer likes it now."""

    post: int | None = None
    is_liked: bool = False


def like_ends(page: Page[Like] | Page[LikedPost]) -> PageEnds:
    """Return the page info of a page, with cursors of likes."""
    return page_ends(page, CursorKind.LIKE, [like.number for like in (*page.items[:1], *page.items[-1:])])


@mutation(LikePayload, ProblemCode.NOT_FOUND, ProblemCode.BLOCKED)
async def like_post(
    context: Context,
    *,
    input: Annotated[inputs.LikePostInput, strawberry.argument(description="The post to like.")],
) -> LikePayload:
    """Like a post as the viewer."""
    return await change_like(context, input.post_id, is_liked=True)


@mutation(LikePayload, ProblemCode.NOT_FOUND)
async def unlike_post(
    context: Context,
    *,
    input: Annotated[inputs.UnlikePostInput, strawberry.argument(description="The post to unlike.")],
) -> LikePayload:
    """Remove the viewer's like from a post."""
    return await change_like(context, input.post_id, is_liked=False)


async def change_like(context: Context, post_id: str, *, is_liked: bool) -> LikePayload:
    """Like or unlike the post with a global id. Raises Rejected (NOT_FOUND), also for a malformed id."""
    viewer, post = context.require_viewer(), post_number(post_id, "postId")
    change = context.graph.likes.like if is_liked else context.graph.likes.unlike
    return LikePayload(post=await change(viewer.user, post, context.loaders.view), is_liked=is_liked)


async def payload_posts(payloads: Sequence[LikePayload], context: Context) -> list[Post | None]:
    """Return the post after each mutation; None if it failed, or the post is deleted or hidden. One round trip.

    The outcomes are added to the loader `viewer_likes`, so that it need not read them.
    """
    likes = {each.post: each.is_liked for each in payloads if each.post is not None}
    if likes:
        context.loaders.viewer_likes.prime_many(likes)
    return await load_posts(context, [each.post for each in payloads])


def likes(
    posts: Sequence[Post],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[LikePage]]:
    """Return a page of the likes of each post, newest first. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.LIKE, first=first, after=after, last=last, before=before)
    return context.start(like_pages(posts, context, window))


async def like_pages(posts: Sequence[Post], context: Context, window: Window) -> list[LikePage]:
    """Return a page of the likes of each post."""
    pages = await context.loaders.likes.fetch_many([(post.id, window) for post in posts])
    return [LikePage(post, page) for post, page in zip(posts, pages, strict=True)]


def likes_counts(posts: Sequence[Post], context: Context) -> list[int]:
    """Return the numbers of likes, which are part of the posts' records."""
    return [post.likes for post in posts]


def viewer_has_liked(
    posts: Sequence[Post], context: Context
) -> Awaitable[Sequence[bool | None]] | Sequence[bool | None]:
    """Return for each post whether the viewer likes it; None for anonymous requests. One round trip."""
    if context.viewer is None:
        return [None] * len(posts)
    return context.loaders.viewer_likes.fetch_many([post.id for post in posts])


async def liked_posts(
    viewers: Sequence[Viewer],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[LikedPostPage]:
    """Return a page of the posts that each viewer likes. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.LIKE, first=first, after=after, last=last, before=before)
    pages = await context.loaders.liked_posts.load_many([(each.user, window) for each in viewers])
    return [LikedPostPage(page) for page in pages]


def like_cursors(likes: Sequence[Like | LikedPost], context: Context) -> list[str]:
    """Return the cursors of likes."""
    return encode_cursors(CursorKind.LIKE, [like.number for like in likes])


def liking_times(likes: Sequence[Like | LikedPost], context: Context) -> list[FormattedTime]:
    """Return the times of likes."""
    return format_times([like.number for like in likes])


def like_users(likes: Sequence[Like], context: Context) -> Awaitable[list[User | None]]:
    """Return the user of each like. One round trip."""
    return context.loaders.unchecked_users.fetch_many([like.user for like in likes])


def like_references(likes: Sequence[Like], context: Context) -> list[Reference]:
    """Return a reference to the user of each like."""
    return refer([like.user for like in likes])


async def page_users(pages: Sequence[LikePage], context: Context) -> list[list[User | None]]:
    """Return the users of each page. One round trip."""
    users = iter(await like_users([like for page in pages for like in page.edges], context))
    return [[next(users) for _ in page.edges] for page in pages]


def liked_nodes(likes: Sequence[LikedPost], context: Context) -> list[Post]:
    """Return the posts of likes."""
    return [like.post for like in likes]
