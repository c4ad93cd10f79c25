"""Pages of timelines and other post lists, from the store and the archive, with push, pull and hybrid delivery.

To read a page older than a cursor:

1. Read the window from the viewer's home cache.
2. Merge the timelines of the authors marked in the cache. If posts are missing, merge the timelines of all other
   authors below the floor of the cache. Without a cache, merge the timelines of all authors.
3. If the page reaches the archive floor of some timelines, query the archive once for these authors. The archive is
   read after the store, so a post that moves to the archive in the meantime is in at least one of the results.
4. Read the posts and drop the deleted ones. Repeat until the page is full and one more post is known, or the timeline
   ends.

A page newer than a cursor is read in the same way, in the opposite direction.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from typing import NamedTuple

from graph.binding import Binding
from graph.errors import StoreUnavailable
from graph.home.cache import CacheState, HomeCache
from graph.home.merge import Which, first_of, merge_hot, newest_of_each
from graph.model import Page, Post, Repost, TimelineKind
from graph.paging import Window
from graph.post_lists import REPLIED, REPOSTS, TIMELINE, PostList
from graph.posts.posts import Posts
from graph.recording import RECORDING, TimelinePage
from graph.store.store import Store
from graph.tasks import end
from graph.visibility.views import View, Visibility

MAX_WINDOW = 500
MOST_SCANNED = 2000
"""After scanning this number of posts of a list, a page ends, even if it is not full."""
FROM_CACHE = ("cache",)
FROM_AUTHORS = ("merge",)
FROM_CACHE_AND_AUTHORS = ("cache", "merge")
RECORDED = {TIMELINE: TimelineKind.USER, REPLIED: TimelineKind.REPLIES}

logger = logging.getLogger("fanline.timelines")


class Found(NamedTuple):
    """The next posts of a timeline, including deleted ones: ids in paging order, and records from the archive.

    `sources` names where the posts came from, and `merged` is the number of authors whose own timelines were merged.
    """

    ids: list[int]
    archived: dict[int, Post]
    sources: Sequence[str]
    merged: int = 0


class Timelines:
    """Reads timelines, and the lists of replies and reposts, page by page."""

    def __init__(self, store: Store, binding: Binding, posts: Posts, cache: HomeCache, visibility: Visibility) -> None:
        self._store = store
        self._visibility = visibility
        self._binding = binding
        self._posts = posts
        self._cache = cache
        self._rebuilds: dict[int, asyncio.Task[bool]] = {}

    async def home(self, viewer: int, window: Window, view: View | None = None) -> Page[Post]:
        """Return a page of the viewer's home timeline: posts by the viewer and by all followed users who are not muted.

        Plain reposts of posts by users who are silenced for the viewer are left out, too.

        Two round trips with a cache, three if authors are merged, one for the originals of plain reposts, and more if
        posts were deleted or are hidden. Without a cache, merge all authors and rebuild the cache in the background.
        One query of the archive if the page reaches archived posts. If very many posts are left out, the page may be
        short, or even empty, although more posts follow. Raises ArchiveUnavailable if the archive does not answer.

        `view` is the viewer's view, which a request shares between its reads.
        """
        view = view or self._visibility.of(viewer)
        view.begin()
        recording = RECORDING.get()
        page = recording.page(TimelineKind.HOME, viewer) if recording is not None else None
        found: list[Post] = []
        related: dict[int, Post] = {}
        rest, batch, scanned = Window(window.count + 1, window.forward, window.low, window.high), 1, 0
        while True:
            some, state = await self._home_ids(viewer, rest)
            posts, deleted = await self._posts.hydrate(view, some.ids, some.archived)
            kept = await without_silenced(view, [posts[post] for post in some.ids if post in posts], posts)
            found += kept
            if len(posts) > len(kept):
                related |= posts
            if page is not None:
                page.add(some.sources, some.merged, len(some.ids), len(some.ids) - len(kept))
            if deleted and state == "ready":
                await self._cache.remove(viewer, deleted)
            if state == "absent":
                self._start_rebuild(viewer)
            scanned += len(some.ids)
            ends = len(found) > window.count or len(some.ids) < rest.count
            if ends or scanned >= MOST_SCANNED:
                return window.page(found, None if ends else some.ids[-1], related)
            rest = next_window(some.ids, rest, max(window.count + 1 - len(found), batch))
            batch *= 2

    async def _home_ids(self, viewer: int, window: Window) -> tuple[Found, CacheState]:
        """Return the next posts of a home timeline, and the state of the cache."""
        cached = await self._cache.slice(viewer, window)
        if cached.following is None and not cached.marked:  # the cache holds the whole window, in order
            return Found(cached.posts, {}, FROM_CACHE), cached.state
        reads = [(cached.marked, window)]
        if cached.following is not None:
            below = window
            if cached.state == "ready" and window.forward:
                below = replace(window, high=min(window.high, cached.floor + 1))
            reads.append((list({viewer, *cached.following} - set(cached.marked)), below))
        ids, floors = list(cached.posts), {}
        for merged in await merge_hot(self._store, reads):
            ids += merged.posts
            floors.update(merged.floors)
        ids = first_of(ids, window)
        cold = archive_window(window, ids, floors)
        rows: list[Post] | None = None
        if cold is not None:
            archive = await self._binding.archive()
            rows = await archive.merge([author for author, floor in floors.items() if floor > cold.low], cold)
        sources = FROM_CACHE_AND_AUTHORS if cached.state == "ready" else FROM_AUTHORS
        return with_archived(ids, rows, window, sources, sum(len(authors) for authors, _ in reads)), cached.state

    async def user(self, view: View, authors: Sequence[int], window: Window) -> list[Page[Post]]:
        """Return a page of each author's own timeline. Costs the same as `pages_of`."""
        return await self.pages_of(view, TIMELINE, authors, window)

    async def pages_of(
        self, view: View, post_list: PostList, owners: Sequence[int], window: Window
    ) -> list[Page[Post]]:
        """Return a page of each owner's list of one kind: a timeline, an author's replies, or the replies to a post.

        Posts hidden from the view are left out, and so are the lists of hidden users. The view is read in the same
        round trip. The lists of a hidden post are not left out: a client that knows the post may see the posts in its
        lists that are not hidden from the view.

        Two round trips for all owners, and more if posts were deleted or are hidden, or if the hot posts of a list do
        not fill its first page. One query of the archive for all owners if a page reaches archived posts. If very many
        posts are left out, a page may be short, or even empty, although more posts follow. Raises ArchiveUnavailable if
        the archive does not answer.
        """
        users = set(owners) if post_list.is_of_users else set()
        view.begin(users)
        first = replace(window, count=window.count + 1)
        pending = dict.fromkeys(owners, first)
        found: dict[int, list[Post]] = {owner: [] for owner in pending}
        related: dict[int, Post] = {}
        pages = recorded_pages(post_list, pending)
        reached: dict[int, int] = {}
        batch, scanned = 1, 0
        while pending:
            some = await (
                self._listed_ids(post_list, pending) if scanned else self._first_ids(post_list, pending, first)
            )
            hidden = await view.hidden(users)
            archived = {id_: post for each in some.values() for id_, post in each.archived.items()}
            wanted = [post for each in some.values() for post in each.ids]
            posts, _ = await self._posts.hydrate(view, wanted, archived)
            if not posts.keys() <= set(wanted):
                related |= posts
            scanned += max(len(each.ids) for each in some.values())
            rest: dict[int, Window] = {}
            for owner, read in pending.items():
                ids = some[owner].ids
                kept = [posts[post] for post in ids if post in posts]
                if post_list is REPOSTS:  # a store that is not converted yet has quotes in these lists, too
                    kept = [post for post in kept if post.is_plain_repost]
                found[owner] += kept
                if pages:
                    pages[owner].add(some[owner].sources, 1, len(ids), len(ids) - len(kept))
                if len(found[owner]) > window.count or len(ids) < read.count or owner in hidden:
                    continue
                if scanned >= MOST_SCANNED:
                    reached[owner] = ids[-1]
                else:
                    rest[owner] = next_window(ids, read, max(window.count + 1 - len(found[owner]), batch))
            pending = rest
            batch *= 2
        return [window.page(found[owner], reached.get(owner), related) for owner in owners]

    async def _first_ids(self, post_list: PostList, reads: Mapping[int, Window], window: Window) -> dict[int, Found]:
        """Return the posts of each owner's list in one window. The newest posts are read without the merge script."""
        if not window.forward or window.bounded_above:
            return await self._listed_ids(post_list, reads)
        hot = await newest_of_each(self._store, post_list, list(reads), window)
        found = {owner: Found(ids, {}, FROM_AUTHORS, 1) for owner, ids in hot.items()}
        if len(found) < len(reads):
            found |= await self._listed_ids(
                post_list, {owner: read for owner, read in reads.items() if owner not in found}
            )
        return found

    async def _listed_ids(self, post_list: PostList, reads: Mapping[int, Window]) -> dict[int, Found]:
        """Return the next posts of each owner's list."""
        windows = [([owner], window) for owner, window in reads.items()]
        hot = await merge_hot(self._store, windows, Which.COUNTED, post_list)
        cold = [
            (owner, archive_window(window, merged.posts, merged.floors))
            for (owner, window), merged in zip(reads.items(), hot, strict=True)
        ]
        archive_reads = [(owner, window) for owner, window in cold if window is not None]
        rows = await (await self._binding.archive()).slices(archive_reads, post_list) if archive_reads else []
        archived = dict(zip((owner for owner, _ in archive_reads), rows, strict=True))
        return {
            owner: with_archived(merged.posts, archived.get(owner), window, FROM_AUTHORS, 1)
            for (owner, window), merged in zip(reads.items(), hot, strict=True)
        }

    def _start_rebuild(self, viewer: int) -> None:
        """Rebuild a cache in the background, unless this process is already rebuilding it."""
        if viewer not in self._rebuilds:
            # in its own context, so that its cost is not charged to the operation that starts it
            task = asyncio.get_running_loop().create_task(self._cache.rebuild(viewer), context=Context())
            self._rebuilds[viewer] = task
            task.add_done_callback(lambda done: self._end_rebuild(viewer, done))

    def _end_rebuild(self, viewer: int, task: "asyncio.Task[bool]") -> None:
        del self._rebuilds[viewer]
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, StoreUnavailable):
            logger.error("Rebuilding the home cache of user %d failed", viewer, exc_info=failure)

    async def wait_for_rebuilds(self) -> None:
        """Wait until this process is not rebuilding any cache."""
        while self._rebuilds:
            await asyncio.wait(list(self._rebuilds.values()))

    async def close(self) -> None:
        """Cancel the running rebuilds. Their unfinished caches expire."""
        await end(list(self._rebuilds.values()))


async def without_silenced(view: View, found: Sequence[Post], posts: Mapping[int, Post]) -> list[Post]:
    """Return the posts found, without plain reposts of posts by users who are silenced for the view.

    `posts` must contain their originals. No round trip, because hydration has already looked up the authors.
    """
    originals = {post.id: posts[post.repost_of or 0].author for post in found if isinstance(post, Repost)}
    silenced = await view.silenced(set(originals.values())) if originals else ()
    return [post for post in found if originals.get(post.id) not in silenced] if silenced else [*found]


def recorded_pages(post_list: PostList, owners: Iterable[int]) -> dict[int, TimelinePage]:
    """Return a page record for each owner; no records if nothing is being recorded, or if the lists belong to posts."""
    recording, kind = RECORDING.get(), RECORDED.get(post_list)
    if recording is None or kind is None:
        return {}
    return {owner: recording.page(kind, owner) for owner in owners}


def archive_window(window: Window, ids: Sequence[int], floors: Mapping[int, int]) -> Window | None:
    """Return the part of a window whose archived posts are needed to complete the page; None if none are needed.

    If the posts found fill the window, only archived posts before the last of them are needed.
    """
    low, high = window.low, window.high
    if len(ids) == window.count:
        low, high = (ids[-1], high) if window.forward else (low, ids[-1])
    high = min(high, max(floors.values(), default=0) + 1)
    return replace(window, low=low, high=high) if low + 1 < high else None


def with_archived(
    ids: Sequence[int], rows: Sequence[Post] | None, window: Window, sources: Sequence[str], merged: int
) -> Found:
    """Combine the ids from the store with `rows`, the posts from the archive; None if the archive was not read."""
    if rows is None:
        return Found(first_of(ids, window), {}, sources, merged)
    posts = first_of([*ids, *(row.id for row in rows)], window)
    return Found(posts, {row.id: row for row in rows}, (*sources, "archive"), merged)


def next_window(ids: Sequence[int], read: Window, count: int) -> Window:
    """Return the window of up to `count` posts that follows these ids, in the paging direction."""
    following = replace(read, count=min(MAX_WINDOW, count))
    return replace(following, high=ids[-1]) if read.forward else replace(following, low=ids[-1])
