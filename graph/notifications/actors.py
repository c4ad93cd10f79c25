"""Who acts in a group of notifications: the newest users, and how many there are.

Users who follow, like or repost are read from the sets that hold them, so taking something back needs no change of a
list of notifications. Users who are hidden from or muted by the recipient are left out, and so is the recipient, who
may like the own post.
"""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from graph import keys
from graph.model import Post
from graph.notifications.groups import MAX_ACTORS, Group, NotificationKind, numbers_of_day
from graph.posts import Posts
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility import View

MAX_SEARCHED = 250
"""The newest entries of a set among which one user must be visible."""
CROWDS = frozenset({NotificationKind.FOLLOW, NotificationKind.LIKE, NotificationKind.REPOST})
"""The kinds of groups in which many users can act. The author of its post acts in a group of another kind."""


class Crowd(NamedTuple):
    """The newest visible users who act in a group.

    `left_out` is the number of entries that were read and show no such user. `counted` is, if it was asked for, the
    number of the followers of a day, or that of the quotes that are newer than the newest repost. `is_whole` means that
    no other users act.
    """

    users: tuple[int, ...] = ()
    left_out: int = 0
    counted: int = 0
    is_whole: bool = False

    def size(self, kind: NotificationKind, post: Post | None) -> int:
        """Return the number of users who act, without those that are known to be left out."""
        if self.is_whole:
            return len(self.users)
        entries = self.counted
        if post is not None:
            entries = post.likes if kind is NotificationKind.LIKE else post.reposts - self.counted
        return max(len(self.users), entries - self.left_out)


NOBODY = Crowd()


class Actors:
    """Finds the users who act in groups."""

    def __init__(self, store: Store, posts: Posts) -> None:
        self._store = store
        self._posts = posts

    async def of(self, view: View, groups: Mapping[Group, int], *, counted: bool) -> dict[Group, Crowd]:
        """Return who acts in each group of the viewer; the groups have their numbers.

        If they are not `counted`, one user of a group is enough. One round trip, and one if there are older reposts to
        look at than the newest of a group. As many again if none of the newest users of a group is visible; if they are
        reposts, one or two more and, unless all of the post's reposts are in the store, a query of the archive for each
        such group. Up to two queries of the archive for archived reposts. Raises ArchiveUnavailable.
        """
        crowds = await self._read(view, groups, MAX_ACTORS, counted=counted)
        unsure = {
            group: groups[group] for group, crowd in crowds.items() if not crowd.users and crowd.left_out == MAX_ACTORS
        }
        further = await self._read(view, unsure, MAX_SEARCHED, counted=False)
        crowds |= {group: crowd._replace(counted=crowds[group].counted) for group, crowd in further.items()}
        nobody = {group: number for group, number in groups.items() if not crowds[group].users}
        archived = {group: number for group, number in nobody.items() if group.kind is NotificationKind.REPOST}
        return crowds | await self._archived(view, archived)

    async def _read(self, view: View, groups: Mapping[Group, int], most: int, *, counted: bool) -> dict[Group, Crowd]:
        """Return who acts in each group, from the newest `most` entries of its set.

        The number of a group of reposts is the id of its newest one, whose author is read at once.
        """
        if not groups:
            return {}
        viewer = view.viewer or 0
        commands = [newest_entries(viewer, group, number, most) for group, number in groups.items()]
        counts = {group: count_of(viewer, group, number) for group, number in groups.items()} if counted else {}
        asked = {group: command for group, command in counts.items() if command is not None}
        newest = {group: number for group, number in groups.items() if group.kind is NotificationKind.REPOST}
        replies, authors = await asyncio.gather(
            self._store.read([*commands, *asked.values()]), self._authors(newest.values(), {})
        )
        found = dict(zip(asked, replies[len(groups) :], strict=True))
        entries = {
            group: [int(entry) for entry in reply if entry != "f"][:most]
            for group, reply in zip(groups, replies, strict=False)
        }
        if not counted:
            entries |= await self._sufficient(view, newest, authors)
        users = await self._users(entries, authors)
        left_out = await view.silenced({user for some in users.values() for user in some}) | {viewer}
        crowds = {}
        for group, some in users.items():
            visible = tuple(user for user in some if user not in left_out)
            crowds[group] = Crowd(visible, len(entries[group]) - len(visible), found.get(group, 0))
        return crowds

    async def _sufficient(
        self, view: View, newest: Mapping[Group, int], authors: Mapping[int, int | None]
    ) -> dict[Group, list[int]]:
        """Return the newest repost of each group of which it shows a visible user. No round trip of its own."""
        by = {group: author for group, repost in newest.items() if (author := authors[repost]) is not None}
        left_out = await view.silenced(set(by.values())) | {view.viewer}
        return {group: [newest[group]] for group, author in by.items() if author not in left_out}

    async def _users(
        self, entries: Mapping[Group, list[int]], authors: Mapping[int, int | None]
    ) -> dict[Group, list[int]]:
        """Return the users of the entries of sets. Those of reposts are posts, and the quotes among them are no users.

        No round trip if the authors of all reposts are known, else one.
        """
        reposts = {group: some for group, some in entries.items() if group.kind is NotificationKind.REPOST}
        authors = await self._authors(chain.from_iterable(reposts.values()), authors)
        found = {
            group: [author for post in some if (author := authors[post]) is not None] for group, some in reposts.items()
        }
        return {**entries, **found}

    async def _authors(self, reposts: Iterable[int], known: Mapping[int, int | None]) -> Mapping[int, int | None]:
        """Return the known authors and those of further plain reposts; None for other posts. One round trip if any."""
        unknown = [post for post in reposts if post not in known]
        if not unknown:
            return known
        return {**known, **dict.fromkeys(unknown), **await self._posts.reposters(unknown)}

    async def _archived(self, view: View, groups: Mapping[Group, int]) -> dict[Group, Crowd]:
        """Return who acts in groups of reposts from the newest reposts in the archive, for lists that it continues.

        The newest entries of a list can all be quotes.
        """
        if not groups:
            return {}
        floors = await self._store.read([("ZSCORE", keys.reposts(group.subject), "f") for group in groups])
        some = [group for group, floor in zip(groups, floors, strict=True) if floor is not None]
        if not some:
            return {}
        reads = [(group.subject, groups[group]) for group in some]
        entries = dict(zip(some, await self._posts.archived_reposts(reads, MAX_SEARCHED), strict=True))
        users = await self._users(entries, {})
        left_out = await view.silenced({user for each in users.values() for user in each}) | {view.viewer}
        crowds = {}
        for group in some:
            visible = tuple(user for user in users[group] if user not in left_out)
            crowds[group] = Crowd(visible, is_whole=len(entries[group]) < MAX_SEARCHED)
        return crowds


def newest_entries(recipient: int, group: Group, number: int, most: int) -> Command:
    """Return the command that reads the newest entries of a group's set. A floor can take the place of one of them.

    The number of a group of reposts is that of its newest repost, so newer entries are quotes.
    """
    if group.kind is NotificationKind.FOLLOW:
        low, high = numbers_of_day(group.subject)
        return ("ZRANGE", keys.followers(recipient), f"({high}", low, "BYSCORE", "REV", "LIMIT", 0, most)
    if group.kind is NotificationKind.LIKE:
        return ("ZRANGE", keys.likes(group.subject), 0, most, "REV")
    return ("ZRANGE", keys.reposts(group.subject), number, "-inf", "BYSCORE", "REV", "LIMIT", 0, most + 1)


def count_of(recipient: int, group: Group, number: int) -> Command | None:
    """Return the command that counts the users who followed on one day, or the quotes newer than the newest repost."""
    if group.kind is NotificationKind.FOLLOW:
        low, high = numbers_of_day(group.subject)
        return ("ZCOUNT", keys.followers(recipient), low, f"({high}")
    if group.kind is NotificationKind.REPOST:
        return ("ZCOUNT", keys.reposts(group.subject), f"({number}", "+inf")
    return None
