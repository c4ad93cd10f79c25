"""Pages of timelines: the one algorithm behind push, pull and hybrid.

A page older than a cursor: take what the viewer's cache holds; merge the timelines of the authors marked in it; if
that is short, merge the timelines of all others below the cache's floor; without a cache merge everybody's. Then
look the posts up, drop the deleted, and go on until the page is full and one post more is known, or nothing is
left. A page newer than a cursor is the mirror image.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph import keys
from graph.model import Page, Post
from graph.paging import Window
from graph.posts import Posts
from graph.store import Command, Store
from graph.tasks import end
from graph.timelines.cache import HomeCache, Slice


class Timelines:
    """Reads home and user timelines, page by page."""

    def __init__(self, store: Store, posts: Posts, cache: HomeCache) -> None:
        self._store = store
        self._posts = posts
        self._cache = cache
        self._rebuilding: dict[int, asyncio.Task[bool]] = {}

    async def home(self, viewer: int, window: Window) -> Page[Post]:
        """Read a page of the viewer's home timeline: own posts and those of everyone followed now.

        Two round trips with a cache, three where authors are merged; more only for posts that were deleted. Without
        a cache the answer comes from a merge, and the cache is rebuilt in the background.
        """
        found: list[Post] = []
        rest = replace(window, count=window.count + 1)
        while True:
            ids, cached = await self._home_ids(viewer, rest)
            live, gone = await self._hydrate(ids)
            found += live
            if gone and cached.state == "settled":
                await self._cache.drop(viewer, gone)
            if cached.state == "none":
                self._rebuild_later(viewer)
            if len(found) > window.count or len(ids) < rest.count:
                return window.page(found)
            rest = beyond(ids, replace(window, count=window.count + 1 - len(found)))

    async def _home_ids(self, viewer: int, window: Window) -> tuple[list[int], Slice]:
        """Give the next ids of a home timeline in paging direction, deleted ones included."""
        cached = await self._cache.slice(viewer, window)
        reads = [(author, window) for author in cached.marked]
        if cached.following is not None:
            others = {viewer, *cached.following} - set(cached.marked)
            below = window
            if cached.state == "settled" and window.forward:
                below = replace(window, high=min(window.high, cached.floor + 1))
            reads += [(author, below) for author in others]
        ids = {post for slice_ in await self._slices(reads) for post in slice_} | set(cached.posts)
        return sorted(ids, reverse=window.forward)[: window.count], cached

    async def user(self, authors: Sequence[int], window: Window) -> list[Page[Post]]:
        """Read a page of each author's own timeline. Two round trips for all; more only for deleted posts."""
        wanted = replace(window, count=window.count + 1)
        pending = dict.fromkeys(authors, wanted)
        found: dict[int, list[Post]] = {author: [] for author in pending}
        while pending:
            slices = await self._slices(pending.items())
            hydrated = iter((await self._hydrate([post for ids in slices for post in ids]))[0])
            posts = {post.id: post for post in hydrated}
            rest: dict[int, Window] = {}
            for (author, asked), ids in zip(pending.items(), slices, strict=True):
                found[author] += [posts[post] for post in ids if post in posts]
                if len(found[author]) <= window.count and len(ids) == asked.count:
                    rest[author] = beyond(ids, replace(window, count=window.count + 1 - len(found[author])))
            pending = rest
        return [window.page(found[author]) for author in authors]

    async def _slices(self, reads: Iterable[tuple[int, Window]]) -> list[list[int]]:
        """Read a window of each author's timeline, in paging direction. One round trip."""
        commands: list[Command] = []
        for author, window in reads:
            low, high = f"({window.low}", f"({window.high}"
            bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
            commands.append(("ZRANGE", keys.posts(author), *bounds, "LIMIT", 0, window.count))
        replies = await self._store.read(commands)
        return [[int(post) for post in reply if post != "f"] for reply in replies]

    async def _hydrate(self, ids: Sequence[int]) -> tuple[list[Post], list[int]]:
        """Look posts up: those that live, in order, and the ids of those that do not."""
        posts = await self._posts.get_many(ids)
        live = [post for post in posts if post is not None]
        return live, [id_ for id_, post in zip(ids, posts, strict=True) if post is None]

    def _rebuild_later(self, viewer: int) -> None:
        """Rebuild a cache in the background, once at a time for each viewer."""
        if viewer not in self._rebuilding:
            task = asyncio.get_running_loop().create_task(self._cache.rebuild(viewer))
            self._rebuilding[viewer] = task
            task.add_done_callback(lambda done: self._rebuilt(viewer, done))

    def _rebuilt(self, viewer: int, task: "asyncio.Task[bool]") -> None:
        del self._rebuilding[viewer]
        if not task.cancelled():
            task.exception()  # an outage: the next read tries again

    async def settle(self) -> None:
        """Wait until no rebuild runs in this process."""
        while self._rebuilding:
            await asyncio.wait(list(self._rebuilding.values()))

    async def close(self) -> None:
        """Stop the rebuilds that run; their half-built caches expire by themselves."""
        await end(list(self._rebuilding.values()))


def beyond(ids: Sequence[int], window: Window) -> Window:
    """Give the window that goes on after the last of these ids, in paging direction."""
    return replace(window, high=ids[-1]) if window.forward else replace(window, low=ids[-1])
