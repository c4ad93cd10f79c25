"""Batch functions of page loaders. They also add the posts of each page to the post loader."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from executor.loader import DataLoader
from graph import Graph
from graph.archive.usage import ScanLimit
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.notification_groups import Notification, NotificationKind
from graph.model import BookmarkedPost, LikedPost, Page, Post
from graph.paging import Window
from graph.post_lists import PostList
from graph.visibility.views import View

K = TypeVar("K")
M = TypeVar("M", LikedPost, BookmarkedPost)
O = TypeVar("O", bound=Hashable)  # noqa: E741 - the owner of a list
T = TypeVar("T")
V = TypeVar("V")

PageKey: TypeAlias = tuple[int, Window]


async def pages_within_budget(
    read: Callable[[int, Window], Awaitable[Page[Post]]], posts: DataLoader[int, Post | None], keys: Sequence[PageKey]
) -> Sequence[Page[Post] | Exception]:
    """Return pages of timelines, each read by a separate call to `read`, and prime their posts.

    If there are several pages, ScanLimit takes the place of each page that exceeds the operation's budget. If there is
    only one page, its error is raised.
    """
    if len(keys) == 1:
        return prime_posts(posts, [await read(*keys[0])])
    pages = await asyncio.gather(*(page_or_limit(read, key) for key in keys))
    prime_posts(posts, [page for page in pages if not isinstance(page, Exception)])
    return pages


async def page_or_limit(read: Callable[[int, Window], Awaitable[Page[Post]]], key: PageKey) -> Page[Post] | Exception:
    """Return a page, or ScanLimit if the page exceeds the operation's budget."""
    try:
        return await read(*key)
    except ScanLimit as limit:
        return limit


KindsOfUser: TypeAlias = tuple[int, frozenset[NotificationKind] | None]
"""The owner of a list of notifications, and the kinds that a page shows; None for all kinds."""


async def notification_pages(
    graph: Graph, view: View, posts: DataLoader[int, Post | None], keys: Sequence[tuple[KindsOfUser, Window]]
) -> list[Page[Notification]]:
    """Return pages of notifications and prime their posts."""
    pages = await asyncio.gather(*(graph.notifications.page(view, window, kinds) for (_, kinds), window in keys))
    for page in pages:
        posts.prime_many({each.post.id: each.post for each in page.items if each.post is not None})
    return pages


async def unread_counts(graph: Graph, view: View, users: Sequence[int]) -> list[int]:
    """Return the number of the viewer's unread notifications for each of `users`, all of which are the viewer's id."""
    return [await graph.notifications.unread_count(view)] * len(users)


async def list_pages(
    graph: Graph, view: View, posts: DataLoader[int, Post | None], post_list: PostList, keys: Sequence[PageKey]
) -> list[Page[Post]]:
    """Return pages of post lists of one kind, such as replies, and prime the posts."""
    return prime_posts(posts, await pages_by_window(partial(graph.timelines.pages_of, view, post_list), keys))


async def scanned_pages(
    read: Callable[[O, Window], Awaitable[Page[Post]]],
    posts: DataLoader[int, Post | None],
    keys: Sequence[tuple[O, Window]],
) -> list[Page[Post] | Exception]:
    """Return pages that are read from the archive one after another, and prime their posts.

    ScanLimit or ArchiveUnavailable takes the place of each page whose read raises it.
    """
    found: list[Page[Post] | Exception] = []
    for key in keys:
        try:
            found.append(await read(*key))
        except (ScanLimit, ArchiveUnavailable) as failure:
            found.append(failure)
    prime_posts(posts, [page for page in found if not isinstance(page, Exception)])
    return found


async def marked_pages(
    read: Callable[[int, Window], Awaitable[Page[M]]], posts: DataLoader[int, Post | None], keys: Sequence[PageKey]
) -> list[Page[M]]:
    """Return pages of the posts that users like or have bookmarked, and prime the posts."""
    pages = await each_page(read, keys)
    posts.prime_many({each.post.id: each.post for page in pages for each in page.items})
    return pages


async def each_page(read: Callable[[int, Window], Awaitable[Page[T]]], keys: Sequence[PageKey]) -> list[Page[T]]:
    """Return pages, each read by a separate call to `read`. The calls run concurrently and share round trips."""
    return await asyncio.gather(*(read(*key) for key in keys))


def prime_posts(posts: DataLoader[int, Post | None], pages: list[Page[Post]]) -> list[Page[Post]]:
    """Add the posts of pages and the originals of reposts to the loader of posts, and return the pages."""
    found: dict[int, Post | None] = {}
    for page in pages:
        found.update(page.related)
    found |= {post.id: post for page in pages for post in page.items}
    posts.prime_many(found)
    return pages


async def pages_by_window(
    load: Callable[[Sequence[int], Window], Awaitable[list[V]]], keys: Sequence[PageKey]
) -> list[V]:
    """Return pages of different windows, calling `load` once for each window."""
    users: dict[Window, list[int]] = {}
    for user, window in keys:
        users.setdefault(window, []).append(user)
    if len(users) == 1:
        [(window, all_users)] = users.items()
        return await load(all_users, window)
    answers = await asyncio.gather(*(load(ids, window) for window, ids in users.items()))
    pages = {
        (user, window): page
        for (window, ids), found in zip(users.items(), answers, strict=True)
        for user, page in zip(ids, found, strict=True)
    }
    return [pages[key] for key in keys]


@dataclass(frozen=True, slots=True)
class UnshownFailures(Generic[K, V]):
    """A look-up that fails for ids in `unshown`: changed objects whose new state the store cannot show yet.

    Keys are ids, or tuples that begin with the id of an owner.
    """

    get_many: Callable[[list[K]], Awaitable[Sequence[V | Exception]]]
    unshown: Collection[int]

    async def __call__(self, wanted: list[K]) -> Sequence[V | Exception]:
        """Return the values, with StoreUnavailable in place of those for ids in `unshown`."""
        shown = [key for key in wanted if not self._is_unshown(key)]
        values = iter(await self.get_many(shown) if shown else [])
        outage = StoreUnavailable("a change is not projected yet")
        return [outage if self._is_unshown(key) else next(values) for key in wanted]

    def _is_unshown(self, key: object) -> bool:
        return (key[0] if isinstance(key, tuple) and key else key) in self.unshown


class IsolatedFailures(Generic[K, V]):
    """A batch function that retries each key alone if the archive is down, so that only keys that need it fail."""

    def __init__(self, load: Callable[[Sequence[K]], Awaitable[Sequence[V | Exception]]]) -> None:
        self._load = load

    async def __call__(self, keys: Sequence[K]) -> Sequence[V | Exception]:
        """Return the values of keys, or ArchiveUnavailable for each key that needs the archive."""
        try:
            return await self._load(keys)
        except ArchiveUnavailable as outage:
            return [outage] if len(keys) == 1 else await asyncio.gather(*map(self._load_alone, keys))

    async def _load_alone(self, key: K) -> V | Exception:
        try:
            return (await self._load([key]))[0]
        except ArchiveUnavailable as outage:
            return outage
