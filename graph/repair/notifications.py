"""Comparison of notifications: the newest groups of each user, and the number up to which they are read.

Groups of deleted posts are ignored: the archive does not return such groups, and reads leave them out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graph import keys
from graph.archive.rows import POST, USER_ERASURE
from graph.chunks import chunks
from graph.fold.reading import ROWS
from graph.log.notification_groups import Group, NotificationKind
from graph.notifications.notifications import groups_of
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Comparison, number
from graph.store.commands import Command, script

FEW_GROUPS = 20
USERS_AT_ONCE = 10
"""The number of users with many groups that are compared at once."""


@dataclass(frozen=True, slots=True)
class NotificationLists:
    """A user's newest groups in the archive, at most one more than a list holds, and the user's list in the store.

    `archived_read_to` and `read_to` are the numbers up to which the user has read notifications, according to the
    archive and to the store. `floor` is the floor in the store, or None if there is none.
    """

    user: int
    archived: Mapping[Group, int]
    archived_read_to: int
    listed: Mapping[Group, int]
    floor: int | None
    read_to: str | None


class NotificationComparison(Comparison):
    """Compares each user's list of notifications with the newest groups in the archive.

    For 500 users: four queries and two round trips, plus two queries and one round trip for every ten users with many
    groups, and one query for groups without events.
    """

    part = defects.NOTIFICATIONS
    key = staticmethod(keys.notifications)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in groups, floors, and numbers up to which users have read. Skip erased users."""
        archive, kept = self.scope.archive, self.scope.tuning.notifications_kept
        erased = {row.actor for row in await archive.by_actor(subjects, [USER_ERASURE], 0, ROWS)}
        subjects = [user for user in subjects if user not in erased]
        few = await archive.notifications(subjects, FEW_GROUPS)
        sizes = await self.scope.send([("ZCARD", keys.notifications(user)) for user in subjects])
        large = {user for user, size in zip(subjects, sizes, strict=True) if size >= FEW_GROUPS}
        large |= {user for user, groups in few.items() if len(groups) == FEW_GROUPS}
        found: list[Difference] = []
        small = [user for user in subjects if user not in large]
        for users in [small, *chunks([user for user in subjects if user in large], USERS_AT_ONCE)]:
            archived = few if users is small else await archive.notifications(users, kept + 1)
            lists = await self._read(users, archived, await archive.notifications_read(users))
            unknown = {group.subject for each in lists for group in each.listed if group not in each.archived}
            kinds = await archive.kinds_of(unknown)
            live = {post for post, kind in kinds.items() if kind == POST}
            found += [difference for each in lists for difference in self._differences(each, live)]
        return found

    async def _read(
        self, users: Sequence[int], archived: Mapping[int, Mapping[Group, int]], read_to_of: Mapping[int, int]
    ) -> list[NotificationLists]:
        """Return each user's notification list, from the archive and from the store. One round trip."""
        commands: list[Command] = []
        for user in users:
            commands.append(("ZRANGE", keys.notifications(user), 0, -1, "WITHSCORES"))
            commands.append(("GET", keys.notifications_read(user)))
        replies = await self.scope.send(commands)
        return [
            NotificationLists(
                user, archived.get(user, {}), read_to_of.get(user, 0), groups_of(rows), floor_of(rows), read_to
            )
            for user, rows, read_to in zip(users, replies[::2], replies[1::2], strict=True)
        ]

    def _differences(self, lists: NotificationLists, live: set[int]) -> Iterator[Difference]:
        """Yield the differences of one user. `live` has the posts of groups without events that are not deleted."""
        kept, up_to, floor = self.scope.tuning.notifications_kept, self.scope.up_to, lists.floor
        newest = list(lists.archived.items())
        if floor and len(lists.listed) < kept:
            lower = newest[kept][1] if len(newest) > kept else 0
            command = script("repair_floor").call([keys.notifications(lists.user)], floor, lower)
            text = f"the floor of the notifications of user {lists.user}: {floor}, not {lower}"
            floor = lower
            yield Difference(defects.NOTIFICATION_WRONG, lists.user, "f", text, [command])
        for group, expected in newest[:kept]:
            held = lists.listed.get(group)
            if expected > (floor or 0) and (held is None or held < expected or expected < held <= up_to):
                yield wrong(lists, group, held, expected, floor)
        lowest = newest[kept][1] if len(newest) > kept else 0
        for group, held in lists.listed.items():
            is_shown = group.kind is NotificationKind.FOLLOW or group.subject in live
            if group not in lists.archived and lowest < held <= up_to and is_shown:
                yield wrong(lists, group, held, None, floor)
        if number(lists.read_to) < lists.archived_read_to:
            command = script("raise_read").call([keys.notifications_read(lists.user)], lists.archived_read_to)
            text = f"user {lists.user} has read notifications up to {lists.archived_read_to}, not {lists.read_to}"
            yield Difference(defects.READ_MARK_WRONG, lists.user, "read", text, [command])


def wrong(
    lists: NotificationLists, group: Group, held: int | None, expected: int | None, floor: int | None
) -> Difference:
    """Return the difference that reports a group. `floor` is the right floor: a wrong one must be corrected first."""
    name = keys.notifications(lists.user)
    words = ("" if word is None else word for word in (held, expected, floor))
    command = script("repair_element").call([name, keys.gone(name)], group.member, *words)
    text = f"notification {group.member} of user {lists.user}: {held or 'none'} instead of {expected or 'none'}"
    return Difference(defects.NOTIFICATION_WRONG, lists.user, group.member, text, [command])


def floor_of(rows: Sequence[tuple[str, float]]) -> int | None:
    """Return the floor stored among the members of a list, or None if there is none."""
    return next((int(score) for member, score in rows if member == "f"), None)
