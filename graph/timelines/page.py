"""Pages of timelines: the one algorithm behind push, pull and hybrid, across hot and archived posts.

A page older than a cursor: take what the viewer's cache holds; merge the timelines of the authors marked in it; if
that is short, merge the timelines of all others below the cache's floor; without a cache merge everybody's. Where
a timeline reaches the archive floor inside the page, the archive is asked, once for all authors, and always after
the store: a post on its way from the one to the other is in at least one of them. Then look the posts up, drop the
deleted, and go on until the page is full and one post more is known, or nothing is left. A page newer than a cursor
is the mirror image.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graph.model import Page, Post
from graph.paging import Window
from graph.posts import Posts
from graph.store import Store
from graph.tasks import end
from graph.timelines.cache import CacheState, HomeCache
from graph.timelines.merge import cut, merge_hot


@dataclass(frozen=True, slots=True)
class Found:
    """The next posts of a timeline, deleted ones included: ids in paging direction, and the archive's records."""

    ids: list[int]
    archived: dict[int, Post]


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
        a cache the answer comes from a merge, and the cache is rebuilt in the background. Beyond the hot posts, one
        query of the archive; raises ArchiveUnavailable if it does not answer.
        """
        found: list[Post] = []
        rest = replace(window, count=window.count + 1)
        while True:
            some, state = await self._home_ids(viewer, rest)
            live, gone = await self._hydrate(some.ids, some.archived)
            found += live
            if gone and state == "settled":
                await self._cache.drop(viewer, gone)
            if state == "none":
                self._rebuild_later(viewer)
            if len(found) > window.count or len(some.ids) < rest.count:
                return window.page(found)
            rest = beyond(some.ids, replace(window, count=window.count + 1 - len(found)))

    async def _home_ids(self, viewer: int, window: Window) -> tuple[Found, CacheState]:
        """Find the next posts of a home timeline."""
        cached = await self._cache.slice(viewer, window)
        reads = [(cached.marked, window)]
        if cached.following is not None:
            below = window
            if cached.state == "settled" and window.forward:
                below = replace(window, high=min(window.high, cached.floor + 1))
            reads.append((list({viewer, *cached.following} - set(cached.marked)), below))
        ids, floors = list(cached.posts), {}
        for merged in await merge_hot(self._store, reads):
            ids += merged.posts
            floors.update(merged.floors)
        ids = cut(ids, window)
        cold = beneath(window, ids, floors)
        rows = (
            [] if cold is None else await self._posts.archive.merge([a for a in floors if floors[a] > cold.low], cold)
        )
        return joined(ids, rows, window), cached.state

    async def user(self, authors: Sequence[int], window: Window) -> list[Page[Post]]:
        """Read a page of each author's own timeline. Two round trips for all; more only for deleted posts.

        Beyond the hot posts, one query of the archive for all; raises ArchiveUnavailable if it does not answer.
        """
        wanted = replace(window, count=window.count + 1)
        pending = dict.fromkeys(authors, wanted)
        found: dict[int, list[Post]] = {author: [] for author in pending}
        while pending:
            some = await self._user_ids(pending)
            archived = {id_: post for each in some.values() for id_, post in each.archived.items()}
            live, _ = await self._hydrate([post for each in some.values() for post in each.ids], archived)
            posts = {post.id: post for post in live}
            rest: dict[int, Window] = {}
            for author, asked in pending.items():
                ids = some[author].ids
                found[author] += [posts[post] for post in ids if post in posts]
                if len(found[author]) <= window.count and len(ids) == asked.count:
                    rest[author] = beyond(ids, replace(window, count=window.count + 1 - len(found[author])))
            pending = rest
        return [window.page(found[author]) for author in authors]

    async def _user_ids(self, reads: Mapping[int, Window]) -> dict[int, Found]:
        """Find the next posts of each author's timeline."""
        hot = await merge_hot(self._store, [([author], window) for author, window in reads.items()])
        cold = [
            (author, beneath(window, merged.posts, merged.floors))
            for (author, window), merged in zip(reads.items(), hot, strict=True)
        ]
        wanted = [(author, window) for author, window in cold if window is not None]
        rows = await self._posts.archive.slices(wanted) if wanted else []
        archived = dict(zip((author for author, _ in wanted), rows, strict=True))
        return {
            author: joined(merged.posts, archived.get(author, []), window)
            for (author, window), merged in zip(reads.items(), hot, strict=True)
        }

    async def _hydrate(self, ids: Sequence[int], archived: Mapping[int, Post]) -> tuple[list[Post], list[int]]:
        """Look posts up: those that live, in order, and the ids of those that do not."""
        posts = await self._posts.get_many(ids, archived)
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


def beneath(window: Window, ids: Sequence[int], floors: Mapping[int, int]) -> Window | None:
    """Give the part of a window in which archived posts may stand among, or after, the posts found; None if none may.

    Only what is not farther than the last post found matters once enough are found.
    """
    low, high = window.low, window.high
    if len(ids) == window.count:
        low, high = (ids[-1], high) if window.forward else (low, ids[-1])
    high = min(high, max(floors.values(), default=0) + 1)
    return replace(window, low=low, high=high) if low + 1 < high else None


def joined(ids: Sequence[int], rows: Sequence[Post], window: Window) -> Found:
    """Join the posts of the store with those of the archive."""
    return Found(cut([*ids, *(row.id for row in rows)], window), {row.id: row for row in rows})


def beyond(ids: Sequence[int], window: Window) -> Window:
    """Give the window that goes on after the last of these ids, in paging direction."""
    return replace(window, high=ids[-1]) if window.forward else replace(window, low=ids[-1])
