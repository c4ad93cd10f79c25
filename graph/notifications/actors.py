"""The actors of groups of notifications: the newest users of each group, and their number.

Users who follow, like or repost are read from the sets that hold them, so undoing such an action changes no list of
notifications. Users who are hidden from or muted by the recipient are left out, and so are recipients who like their
own posts.

Each set is read with one plain command: a script that reads a hundred sets would take the store longer.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from graph import keys
from graph.log.notification_groups import MAX_ACTORS, Group, NotificationKind, numbers_of_day
from graph.model import Post
from graph.posts.posts import Posts
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import View

FEW_ACTORS = 3
"""How many of the newest entries of a set are read at first to find one visible user."""
MAX_SEARCHED = 250
"""The maximum number of newest entries of a set that are searched for a visible user."""
FOLLOW, LIKE, REPOST = NotificationKind.FOLLOW, NotificationKind.LIKE, NotificationKind.REPOST
CROWDS = frozenset({FOLLOW, LIKE, REPOST})
"""The kinds of groups in which many users can act. In the other kinds, only the author of the post acts."""
SETS = {LIKE: keys.likes, REPOST: keys.reposts}
"""The functions that return the key of a post's set of entries, by kind of group."""


class Entries(NamedTuple):
    """The newest entries of a group's set, newest first.

    In a group of reposts, an entry is a plain repost, otherwise a user. In a group of follows, `total` is the number of
    followers of that day, if it was requested. `is_cut` is True if the set may have more than these entries.
    """

    numbers: Sequence[int]
    total: int = 0
    is_cut: bool = False


class Crowd(NamedTuple):
    """The newest visible users who act in a group.

    `left_out` is the number of entries that were read and show no such user. `total` is `Entries.total`. `is_cut` is
    True if older entries were not read.
    """

    users: tuple[int, ...] = ()
    left_out: int = 0
    total: int = 0
    is_cut: bool = False

    def size(self, kind: NotificationKind, post: Post | None) -> int:
        """Return the number of users who act, without those that are known to be left out."""
        entries = self.total
        if post is not None:
            entries = post.likes if kind is LIKE else post.reposts
        return max(len(self.users), entries - self.left_out)


NOBODY = Crowd()


class Actors:
    """Finds the users who act in groups."""

    def __init__(self, store: Store, posts: Posts) -> None:
        self._store = store
        self._posts = posts

    async def of(self, view: View, groups: Mapping[Group, int]) -> dict[Group, Crowd]:
        """Return the users who act in each of the viewer's groups, which are given with their numbers.

        One round trip, and one more for the authors of reposts other than the newest of a group. The newest counts even
        if it is only in the archive. The same again if none of the newest users of a group is visible. Up to two
        queries of the archive for the authors of archived reposts. Raises ArchiveUnavailable.
        """
        newest = [number for group, number in groups.items() if group.kind is REPOST]
        entries, authors = await asyncio.gather(
            self._entries(view, groups, MAX_ACTORS, counted=True), self._authors(view, newest, {})
        )
        for group, some in entries.items():
            if authors.get(groups[group]) is not None and groups[group] not in some.numbers:
                entries[group] = some._replace(numbers=sorted((*some.numbers, groups[group]), reverse=True))
        crowds = await self._crowds(view, entries, authors)
        return crowds | await self._further(view, groups, crowds, counted=True)

    async def some(self, view: View, groups: Mapping[Group, int]) -> dict[Group, Crowd]:
        """Return at least one visible user of each group that has any. The users are not counted.

        One round trip of one command per group. More for groups whose newest users are not visible, as for `of`. Raises
        ArchiveUnavailable.
        """
        reposts = {group: number for group, number in groups.items() if group.kind is REPOST}
        others = {group: number for group, number in groups.items() if group.kind is not REPOST}
        entries, authors = await asyncio.gather(
            self._entries(view, others, FEW_ACTORS), self._authors(view, reposts.values(), {})
        )
        known = {group: Entries((number,)) for group, number in reposts.items()}
        crowds = await self._crowds(view, {**entries, **known}, authors)
        unsure = {group: number for group, number in reposts.items() if not crowds[group].users}
        if unsure:
            older = await self._entries(view, unsure, MAX_ACTORS)
            crowds |= await self._crowds(view, older, authors)
        return crowds | await self._further(view, groups, crowds)

    async def _further(
        self, view: View, groups: Mapping[Group, int], crowds: Mapping[Group, Crowd], *, counted: bool = False
    ) -> dict[Group, Crowd]:
        """Return the users in older entries of the groups whose newest users are not visible."""
        unsure = {group: groups[group] for group, crowd in crowds.items() if not crowd.users and crowd.is_cut}
        if not unsure:
            return {}
        return await self._crowds(view, await self._entries(view, unsure, MAX_SEARCHED, counted=counted), {})

    async def _entries(
        self, view: View, groups: Mapping[Group, int], limit: int, *, counted: bool = False
    ) -> dict[Group, Entries]:
        """Return the newest `limit` entries of each group. One round trip."""
        viewer = view.viewer or 0
        follows = [group for group in groups if group.kind is FOLLOW]
        posts = [group for group in groups if group.kind is not FOLLOW]
        counts = [count_of(viewer, group) for group in follows] if counted else []
        by_day = self._store.ask([*(followers_of(viewer, group, limit) for group in follows), *counts], list)
        names = [SETS[group.kind](group.subject) for group in posts]
        by_post = self._store.ask_each("ZRANGE", names, ("0", str(limit), "REV"), list)
        replies, rows = await asyncio.gather(by_day, by_post)
        sizes = replies[len(follows) :] or [0] * len(follows)
        found = {
            group: Entries(list(map(int, reply)), size, len(reply) == limit)
            for group, reply, size in zip(follows, replies, sizes, strict=False)
        }
        for group, reply in zip(posts, rows, strict=True):
            found[group] = Entries(numbers_in(reply)[:limit], 0, len(reply) > limit)
        return found

    async def _crowds(
        self, view: View, entries: Mapping[Group, Entries], authors: Mapping[int, int | None]
    ) -> dict[Group, Crowd]:
        """Return the visible users of entries. `authors` has known authors of reposts; one round trip for others."""
        reposts = chain.from_iterable(some.numbers for group, some in entries.items() if group.kind is REPOST)
        authors = await self._authors(view, reposts, authors)
        users: dict[Group, Sequence[int]] = {
            group: authors_of(some.numbers, authors) if group.kind is REPOST else some.numbers
            for group, some in entries.items()
        }
        left_out = {*await view.silenced(set(chain.from_iterable(users.values()))), view.viewer}
        crowds = {}
        for group, (numbers, total, is_cut) in entries.items():
            visible = tuple([user for user in users[group] if user not in left_out])
            crowds[group] = Crowd(visible, len(numbers) - len(visible), total, is_cut)
        return crowds

    async def _authors(
        self, view: View, reposts: Iterable[int], known: Mapping[int, int | None]
    ) -> Mapping[int, int | None]:
        """Return the known authors and those of other reposts; None for undone ones. At most one round trip."""
        unknown = [post for post in reposts if post not in known]
        if not unknown:
            return known
        return {**known, **dict.fromkeys(unknown), **await self._posts.authors(view, unknown)}


def numbers_in(reply: Sequence[Any]) -> list[int]:
    """Return the entries of a post's set, without its floor."""
    return [int(entry) for entry in reply if entry != "f"]


def authors_of(reposts: Iterable[int], authors: Mapping[int, int | None]) -> list[int]:
    """Return the authors of the reposts that still exist."""
    return [author for post in reposts if (author := authors[post]) is not None]


def followers_of(recipient: int, group: Group, limit: int) -> Command:
    """Return the command that reads the newest users who followed on one day."""
    low, high = numbers_of_day(group.subject)
    return ("ZRANGE", keys.followers(recipient), f"({high}", low, "BYSCORE", "REV", "LIMIT", 0, limit)


def count_of(recipient: int, group: Group) -> Command:
    """Return the command that counts the users who followed on one day."""
    low, high = numbers_of_day(group.subject)
    return ("ZCOUNT", keys.followers(recipient), low, f"({high}")
