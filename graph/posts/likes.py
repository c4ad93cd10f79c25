"""Likes: liking and unliking posts, and looking up which posts a viewer likes.

A like or unlike that changes nothing appends no event (`graph.relations.latest`).

A like counts as *renewed* if the store held an earlier like by the same user of the same post, or its tombstone, when
the request read the store. A user who repeatedly likes and unlikes a post therefore notifies its author only once while
the tombstone exists.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from graph import keys
from graph.binding import Binding
from graph.commit import Commit
from graph.errors import ArchiveUnavailable
from graph.log.events import Event, Liked, Unliked
from graph.log.log import Log
from graph.model import Post
from graph.posts.like_pages import LikePages
from graph.posts.posts import Posts
from graph.relations.latest import read_latest
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import SYSTEM, View, Visibility, no_post, refuse_blocked


@dataclass(frozen=True, slots=True)
class KnownLikes:
    """The state of a user's likes of some posts in the store.

    `likes` maps the posts that the user likes to the numbers of the likes; `unlikes` maps the posts with a tombstone to
    the numbers of the tombstones. Likes with numbers up to `floor` are only in the archive, unless the post is in
    `likes` or `unlikes`.
    """

    likes: dict[int, int]
    unlikes: dict[int, int]
    floor: int

    def to_look_up(self, posts: Iterable[int]) -> list[int]:
        """Return the posts for which the archive may hold a like that the store lacks.

        A like is newer than its post, so only posts below the floor can have archived likes.
        """
        return [post for post in posts if post < self.floor and post not in self.likes and post not in self.unlikes]


class Likes:
    """The likes of posts. `pages` reads pages of them."""

    def __init__(
        self, store: Store, log: Log, commit: Commit, binding: Binding, posts: Posts, visibility: Visibility
    ) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._binding = binding
        self._posts = posts
        self._visibility = visibility
        self.pages = LikePages(store, binding, posts)

    async def like(self, viewer: int, post: int, view: View | None = None) -> int:
        """Like a post and return its id. A repetition appends nothing.

        `view` is the viewer's view, which a request shares between its reads. Raises Rejected: NOT_FOUND, and BLOCKED
        if there is a block between the viewer and the author. Three round trips; one more for a viewer with many
        blocks; a query for an archived like or post; more if the store says that the viewer already likes the post.
        """
        return await self._change(viewer, post, view or self._visibility.of(viewer), like=True)

    async def unlike(self, viewer: int, post: int, view: View | None = None) -> int:
        """Remove a like from a post, even if there is a block, and return the post's id. Costs the same as `like`.

        Raises Rejected (NOT_FOUND), even for an existing post if there is a block and the viewer does not like the
        post.
        """
        return await self._change(viewer, post, view or self._visibility.of(viewer), like=False)

    async def _change(self, viewer: int, post: int, view: View, *, like: bool) -> int:
        view.begin()
        posts, [watermark, *rows] = await asyncio.gather(
            self._posts.get_many(SYSTEM, [post]),
            self._store.read([("GET", keys.WATERMARK), *read_held(viewer, [post])]),
        )
        found: Post | None = posts[0]
        if found is None or found.is_plain_repost:
            raise no_post("postId")
        if like:
            await refuse_blocked(view, found.author, "postId")
        held = held_in([post], rows)
        stored = await self._is_liked(viewer, found, held)
        if stored is like and await self._confirmed(viewer, found, int(watermark or 0)) is like:
            if await view.hidden([found.author]):
                raise no_post("postId")
            return found.id
        renewed = stored is True or post in held.unlikes
        pair = (viewer, found.id, found.author)
        await self._commit([Liked(*pair, renewed=renewed) if like else Unliked(*pair)])
        return found.id

    async def _is_liked(self, viewer: int, post: Post, held: KnownLikes) -> bool | None:
        """Return whether the store and the archive say that the viewer likes a post, or None if the archive is down."""
        if not held.to_look_up([post.id]):
            return post.id in held.likes
        try:
            return post.id in await self._archived(viewer, [post.id], held.floor)
        except ArchiveUnavailable:
            return None

    async def _confirmed(self, viewer: int, post: Post, watermark: int) -> bool | None:
        """Return whether the viewer likes a post after the last event (`graph.relations.latest`), None if uncertain."""
        latest = await read_latest(self._store, self._log, read_held(viewer, [post.id]), watermark)
        if latest.events is None:
            return None
        is_liked = latest.after(None, partial(after, viewer, post.id))
        return await self._is_liked(viewer, post, held_in([post.id], latest.rows)) if is_liked is None else is_liked

    async def liked_among(self, viewer: int, posts: Sequence[int]) -> list[bool]:
        """Return for each post whether the viewer likes it.

        One round trip. For posts that are older than the newest archived like of the viewer, one query, and a second
        round trip if the archive holds likes of them. Raises ArchiveUnavailable.
        """
        held = held_in(posts, await self._store.read(read_held(viewer, posts)) if posts else ())
        old = held.to_look_up(posts)
        archived = await self._archived(viewer, old, held.floor) if old else ()
        return [post in held.likes or post in archived for post in posts]

    async def _archived(self, viewer: int, posts: Sequence[int], floor: int) -> set[int]:
        """Return the posts that the viewer likes according to the archive, except those with an unlike in the store.

        The archive is read first, because only the store knows whether an archived like has since been removed.
        """
        found = list(await (await self._binding.archive()).liked_among(viewer, posts, floor))
        if not found:
            return set()
        held = held_in(found, await self._store.read(read_held(viewer, found)))
        return {post for post in found if post not in held.unlikes}


def read_held(viewer: int, posts: Sequence[int]) -> list[Command]:
    """Return the commands that read a user's likes of posts from the store."""
    name = keys.liked(viewer)
    return [("ZMSCORE", name, "f", *posts), ("ZMSCORE", keys.gone(name), "f", *posts)]


def held_in(posts: Sequence[int], rows: Sequence[Any]) -> KnownLikes:
    """Return the state of the likes from the replies to `read_held`."""
    if not rows:
        return KnownLikes({}, {}, 0)
    (floor, *likes), (_, *unlikes) = rows
    return KnownLikes(
        {post: int(score) for post, score in zip(posts, likes, strict=True) if score is not None},
        {post: int(score) for post, score in zip(posts, unlikes, strict=True) if score is not None},
        int(floor or 0),
    )


def after(viewer: int, post: int, is_liked: bool | None, event: Event) -> bool | None:
    """Return whether a viewer likes a post after an event. An unrelated event leaves `is_liked` unchanged."""
    match event.body:
        case Liked(user, liked) | Unliked(user, liked) if (user, liked) == (viewer, post):
            return isinstance(event.body, Liked)
        case _:
            return is_liked
