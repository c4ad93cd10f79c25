"""Pages of the users who like a post, and of the posts that a user likes: newest likes first.

The newest likes, down to the archive floor of the list, are in the store, and all likes are in the archive. The store
is read first, so that a like that moves to the archive in the meantime is found in at least one of the two. Rows of the
archive are left out if the store knows that the like has since been removed or repeated.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from graph import keys
from graph.archive.rows import LikeRow
from graph.binding import Binding
from graph.model import Like, LikedPost, Page
from graph.pages.full_pages import beyond, full_pages
from graph.pages.user_pages import range_of
from graph.paging import Window
from graph.posts.posts import Posts
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import View

if TYPE_CHECKING:
    from graph.archive.archive import Archive

L = TypeVar("L", Like, LikedPost)

Visible: TypeAlias = Callable[[Sequence[Sequence[Like]]], Awaitable[list[list[L]]]]
"""A function that returns the likes that a viewer may see in each list of likes."""

NO_LIKE = 0


@dataclass(frozen=True, slots=True)
class LikeList:
    """A kind of like list: its key, the archive column that holds its owner, and how to get its member from a row."""

    key: Callable[[int], str]
    owner: str
    member: Callable[[LikeRow], int]


LIKERS = LikeList(keys.likes, "subject", lambda row: row.user)
LIKED = LikeList(keys.liked, "actor", lambda row: row.post)


class LikePages:
    """Reads pages of likes."""

    def __init__(self, store: Store, binding: Binding, posts: Posts) -> None:
        self._store = store
        self._binding = binding
        self._posts = posts

    async def of_posts(self, view: View, posts: Sequence[int], window: Window) -> list[Page[Like]]:
        """Return a page of the likes of each post, newest first, without the users hidden from the view.

        One round trip if nothing is hidden, shared with the first reads of the view. For pages that reach the archived
        likes, a query for each and one more round trip. Raises ArchiveUnavailable.
        """

        async def visible(lists: Sequence[Sequence[Like]]) -> list[list[Like]]:
            hidden = await view.hidden({like.user for likes in lists for like in likes})
            return [[like for like in likes if like.user not in hidden] for likes in lists]

        view.begin()
        return await self._pages(LIKERS, posts, window, visible)

    async def of_user(self, view: View, user: int, window: Window) -> Page[LikedPost]:
        """Return a page of the posts that a user likes, newest likes first.

        Deleted posts and those hidden from the view are left out. Two round trips, and more if there are such posts.
        For a page that reaches archived likes, a query and one more round trip. Raises ArchiveUnavailable.
        """

        async def visible(lists: Sequence[Sequence[Like]]) -> list[list[LikedPost]]:
            posts, _ = await self._posts.hydrate(view, [like.user for likes in lists for like in likes], {})
            return [
                [LikedPost(posts[like.user], like.number) for like in likes if like.user in posts] for likes in lists
            ]

        [page] = await self._pages(LIKED, [user], window, visible)
        return page

    async def _pages(self, kind: LikeList, owners: Sequence[int], window: Window, visible: Visible[L]) -> list[Page[L]]:
        """Return a page of each list, with the likes that `visible` returns (`graph.pages.full_pages`)."""

        async def show(_owners: Sequence[int], lists: Sequence[Sequence[Like]]) -> Sequence[Sequence[L]]:
            return await visible(lists)

        return await full_pages(owners, window, partial(self._likes, kind), show)

    async def _likes(self, kind: LikeList, windows: Mapping[int, Window]) -> list[list[Like]]:
        """Return the first likes of each list in its window, in the direction of paging. Their `user` is the member."""
        commands: list[Command] = []
        for owner, window in windows.items():
            commands += [
                ("ZSCORE", kind.key(owner), "f"),
                range_of(kind.key(owner), window, window.count + 1),
            ]  # one may be the floor
        replies = await self._store.read(commands)
        lists = []
        for (owner, window), floor, rows in zip(windows.items(), replies[::2], replies[1::2], strict=True):
            hot = [Like(int(member), int(score)) for member, score in rows if member != "f"][: window.count]
            below = window_below(window, hot, int(floor or 0))
            cold = await self._archived(kind, owner, below) if below is not None else []
            likes = [*hot, *cold] if window.forward else [*cold, *hot]
            lists.append(likes[: window.count])
        return lists

    async def _archived(self, kind: LikeList, owner: int, window: Window) -> list[Like]:
        """Return the first likes of a list in the archive, in the direction of paging."""
        archive: Archive = await self._binding.archive()
        found: list[Like] = []
        rest = window
        while True:
            [rows] = await archive.likes(kind.owner, [(owner, rest)])
            likes = [Like(kind.member(row), row.number) for row in rows]
            found += await self._without_changed(kind, owner, likes)
            if len(found) >= window.count or len(likes) < rest.count:
                return found
            rest = beyond(rest, likes[-1].number)

    async def _without_changed(self, kind: LikeList, owner: int, likes: Sequence[Like]) -> list[Like]:
        """Return the archived likes that were not changed by a later event in the store. One round trip."""
        if not likes:
            return []
        name, members = kind.key(owner), [like.user for like in likes]
        scores: Sequence[Sequence[Any]] = await self._store.read(
            [("ZMSCORE", name, *members), ("ZMSCORE", keys.gone(name), *members)]
        )
        later = [max(int(member or NO_LIKE), int(gone or NO_LIKE)) for member, gone in zip(*scores, strict=True)]
        return [like for like, number in zip(likes, later, strict=True) if number <= like.number]


def window_below(window: Window, hot: Sequence[Like], floor: int) -> Window | None:
    """Return the window of archived likes that complete a page, or None if the page needs none or there are none."""
    if floor <= window.low or (window.forward and len(hot) >= window.count):
        return None
    count = window.count - len(hot) if window.forward else window.count
    below = replace(window, count=count, high=min(window.high, floor + 1))
    return below if below.low + 1 < below.high else None
