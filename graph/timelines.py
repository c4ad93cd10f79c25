"""Pages of timelines: the one algorithm behind push, pull and hybrid, across hot and archived posts.

A page older than a cursor: take what the viewer's cache holds; merge the timelines of the authors marked in it; if
that is short, merge the timelines of all others below the cache's floor; without a cache merge everybody's. Where
a timeline reaches the archive floor inside the page, the archive is asked, once for all authors, and always after
the store: a post on its way from the one to the other is in at least one of them. Then look the posts up, drop the
deleted, and go on until the page is full and one post more is known, or nothing is left. A page newer than a cursor
is the mirror image.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graph.archive.binding import ArchiveBinding
from graph.errors import StoreUnavailable
from graph.home.cache import CacheState, HomeCache
from graph.home.merge import cut, merge_hot
from graph.model import Page, Post
from graph.paging import Window
from graph.posts import Posts
from graph.store.store import Store
from graph.tasks import end

MOST_ASKED = 500

logger = logging.getLogger("fanline.timelines")


@dataclass(frozen=True, slots=True)
class Found:
    """The next posts of a timeline, deleted ones included: ids in paging direction, and the archive's records."""

    ids: list[int]
    archived: dict[int, Post]


class Timelines:
    """Reads home and user timelines, page by page."""

    def __init__(self, store: Store, binding: ArchiveBinding, posts: Posts, cache: HomeCache) -> None:
        self._store = store
        self._binding = binding
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
        rest, growing = Window(window.count + 1, window.forward, window.low, window.high), 1
        while True:
            some, state = await self._home_ids(viewer, rest)
            posts, deleted = await self._posts.hydrate(some.ids, some.archived)
            found += [posts[post] for post in some.ids if post in posts]
            if deleted and state == "settled":
                await self._cache.drop(viewer, deleted)
            if state == "none":
                self._rebuild_later(viewer)
            if len(found) > window.count or len(some.ids) < rest.count:
                return window.page(found)
            rest = beyond(some.ids, rest, max(window.count + 1 - len(found), growing))
            growing *= 2

    async def _home_ids(self, viewer: int, window: Window) -> tuple[Found, CacheState]:
        """Find the next posts of a home timeline."""
        cached = await self._cache.slice(viewer, window)
        if cached.following is None and not cached.marked:  # the cache knows it all, in order
            return Found(cached.posts, {}), cached.state
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
        rows: list[Post] = []
        if cold is not None:
            archive = await self._binding.archive()
            rows = await archive.merge([author for author, floor in floors.items() if floor > cold.low], cold)
        return joined(ids, rows, window), cached.state

    async def user(self, authors: Sequence[int], window: Window) -> list[Page[Post]]:
        """Read a page of each author's own timeline. Two round trips for all; more only for deleted posts.

        Beyond the hot posts, one query of the archive for all; raises ArchiveUnavailable if it does not answer.
        """
        wanted = replace(window, count=window.count + 1)
        pending = dict.fromkeys(authors, wanted)
        found: dict[int, list[Post]] = {author: [] for author in pending}
        growing = 1
        while pending:
            some = await self._user_ids(pending)
            archived = {id_: post for each in some.values() for id_, post in each.archived.items()}
            posts, _ = await self._posts.hydrate([post for each in some.values() for post in each.ids], archived)
            rest: dict[int, Window] = {}
            for author, asked in pending.items():
                ids = some[author].ids
                found[author] += [posts[post] for post in ids if post in posts]
                if len(found[author]) <= window.count and len(ids) == asked.count:
                    rest[author] = beyond(ids, asked, max(window.count + 1 - len(found[author]), growing))
            pending = rest
            growing *= 2
        return [window.page(found[author]) for author in authors]

    async def _user_ids(self, reads: Mapping[int, Window]) -> dict[int, Found]:
        """Find the next posts of each author's timeline."""
        hot = await merge_hot(self._store, [([author], window) for author, window in reads.items()])
        cold = [
            (author, beneath(window, merged.posts, merged.floors))
            for (author, window), merged in zip(reads.items(), hot, strict=True)
        ]
        wanted = [(author, window) for author, window in cold if window is not None]
        rows = await (await self._binding.archive()).slices(wanted) if wanted else []
        archived = dict(zip((author for author, _ in wanted), rows, strict=True))
        return {
            author: joined(merged.posts, archived.get(author, []), window)
            for (author, window), merged in zip(reads.items(), hot, strict=True)
        }

    def _rebuild_later(self, viewer: int) -> None:
        """Rebuild a cache in the background, once at a time for each viewer."""
        if viewer not in self._rebuilding:
            task = asyncio.get_running_loop().create_task(self._cache.rebuild(viewer))
            self._rebuilding[viewer] = task
            task.add_done_callback(lambda done: self._rebuilt(viewer, done))

    def _rebuilt(self, viewer: int, task: "asyncio.Task[bool]") -> None:
        del self._rebuilding[viewer]
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, StoreUnavailable):
            logger.error("The home cache of %d could not be rebuilt", viewer, exc_info=failure)

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


def beyond(ids: Sequence[int], asked: Window, count: int) -> Window:
    """Give the window of so many posts that goes on after these ids, in paging direction."""
    more = replace(asked, count=min(MOST_ASKED, count))
    return replace(more, high=ids[-1]) if asked.forward else replace(more, low=ids[-1])
