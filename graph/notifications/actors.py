"""Who acts in a group of notifications: the newest users, and how many there are.

Users who follow, like or repost are read from the sets that hold them, so taking something back needs no change of a
list of notifications. Users who are hidden from or muted by the recipient are left out, and so is the recipient, who
may like the own post.
"""

from collections.abc import Sequence
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

    `left_out` is the number of entries that were read and show no such user, and `followers` that of the followers of a
    day, if they were counted.
    """

    users: tuple[int, ...] = ()
    left_out: int = 0
    followers: int = 0

    def size(self, kind: NotificationKind, post: Post | None) -> int:
        """Return the number of users who act, without those that are known to be left out."""
        entries = self.followers
        if post is not None:
            entries = post.likes if kind is NotificationKind.LIKE else post.reposts
        return max(len(self.users), entries - self.left_out)


NOBODY = Crowd()


class Actors:
    """Finds the users who act in groups."""

    def __init__(self, store: Store, posts: Posts) -> None:
        self._store = store
        self._posts = posts

    async def of(self, view: View, groups: Sequence[Group], *, counted: bool) -> dict[Group, Crowd]:
        """Return who acts in each group of the viewer. Followers of a day are `counted` or not.

        One round trip, and one for groups of reposts. As many again if none of the newest users of a group is visible.
        One query of the archive for archived reposts. Raises ArchiveUnavailable.
        """
        crowds = await self._read(view, groups, MAX_ACTORS, counted=counted)
        unsure = [group for group, crowd in crowds.items() if not crowd.users and crowd.left_out == MAX_ACTORS]
        for group, crowd in (await self._read(view, unsure, MAX_SEARCHED, counted=False)).items():
            crowds[group] = Crowd(crowd.users[:MAX_ACTORS], crowd.left_out, crowds[group].followers)
        return crowds

    async def _read(self, view: View, groups: Sequence[Group], most: int, *, counted: bool) -> dict[Group, Crowd]:
        """Return who acts in each group, from the newest `most` entries of its set."""
        if not groups:
            return {}
        viewer = view.viewer or 0
        commands = [newest_entries(viewer, group, most) for group in groups]
        days = [group for group in groups if counted and group.kind is NotificationKind.FOLLOW]
        replies = await self._store.read([*commands, *(count_of_day(viewer, day) for day in days)])
        followers = dict(zip(days, replies[len(groups) :], strict=True))
        entries = {
            group: [int(entry) for entry in reply if entry != "f"][:most]
            for group, reply in zip(groups, replies, strict=False)
        }
        users = await self._users(entries)
        left_out = await view.silenced({user for some in users.values() for user in some}) | {viewer}
        crowds = {}
        for group, some in users.items():
            visible = tuple(user for user in some if user not in left_out)
            crowds[group] = Crowd(visible, len(entries[group]) - len(visible), followers.get(group, 0))
        return crowds

    async def _users(self, entries: dict[Group, list[int]]) -> dict[Group, list[int]]:
        """Return the users of the entries of sets. Those of reposts are posts, and the quotes among them are no users.

        No round trip without reposts, else one.
        """
        reposts = [post for group, some in entries.items() if group.kind is NotificationKind.REPOST for post in some]
        if not reposts:
            return entries
        authors = await self._posts.reposters(reposts)
        return {
            group: [authors[post] for post in some if post in authors]
            if group.kind is NotificationKind.REPOST
            else some
            for group, some in entries.items()
        }


def newest_entries(recipient: int, group: Group, most: int) -> Command:
    """Return the command that reads the newest entries of a group's set. A floor can take the place of one of them."""
    if group.kind is NotificationKind.FOLLOW:
        low, high = numbers_of_day(group.subject)
        return ("ZRANGE", keys.followers(recipient), f"({high}", low, "BYSCORE", "REV", "LIMIT", 0, most)
    key = keys.likes if group.kind is NotificationKind.LIKE else keys.reposts
    return ("ZRANGE", key(group.subject), 0, most, "REV")


def count_of_day(recipient: int, group: Group) -> Command:
    """Return the command that counts the users who followed on one day."""
    low, high = numbers_of_day(group.subject)
    return ("ZCOUNT", keys.followers(recipient), low, f"({high}")
