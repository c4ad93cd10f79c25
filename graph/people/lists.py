"""Lists of users: changes, deletions and members. A list is private: only its owner sees that it exists.

A request that changes nothing appends no event (`graph.relations.latest`). All keys of a user's lists are in one slot.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from graph import keys
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log.events import Event, ListChanged, ListCreated, ListDeleted
from graph.log.log import IdempotencyKey, Log, deleted_since
from graph.log.requests import key_of, of_request, repetition
from graph.model import Follow, Page, UserList, new_follow
from graph.paging import Window
from graph.relations.latest import read_latest
from graph.store.commands import Command
from graph.store.store import Store
from graph.text.validation import Check
from graph.visibility.suspensions import existence, exists
from graph.visibility.views import View

MAX_LISTS = 50
MAX_MEMBERS = 500


@dataclass(frozen=True, slots=True)
class KnownList:
    """The known state of a list: whether it was deleted, its name (None if it does not exist), and its members.

    `members` contains at least those of the looked-up users who are members. `count` is the number of members in the
    store.
    """

    is_deleted: bool = False
    name: str | None = None
    members: frozenset[int] = frozenset()
    count: int = 0


class Lists:
    """The lists of users. A user has at most 50, each with at most 500 members."""

    def __init__(self, store: Store, log: Log, commit: Commit) -> None:
        self._store = store
        self._log = log
        self._commit = commit

    async def create(
        self, viewer: int, name: str, users: Sequence[int] = (), *, idempotency_key: str | None = None
    ) -> UserList:
        """Create a list and return it. A repeated idempotency key returns the list as it is now, and creates nothing.

        Raises Rejected: INVALID for the name or the key, NOT_FOUND for an unknown user, TOO_MANY for the 51st list,
        IDEMPOTENCY_MISMATCH if the key was used with another name or other users, and NOT_FOUND if the list of a
        repeated key was deleted. Concurrent calls may together exceed the limit. Three round trips, one more with a
        key.
        """
        check = Check()
        name, idempotency_key = check.name(name), check.idempotency_key(idempotency_key)
        members = tuple(dict.fromkeys(users))
        key = None if check.problems else key_of(ListCreated, viewer, idempotency_key, (name, sorted(members)))
        try:
            await self._check_new(check, viewer, users, members)
        except Rejected:
            if (repeated := await repetition(self._log, key)) is None:
                raise
            return await self._created(repeated, is_repeatable=True)
        [event] = await self._commit([of_request(ListCreated(viewer, name, members), key)], key)
        return await self._created(event, is_repeatable=key is not None)

    async def _check_new(self, check: Check, viewer: int, users: Sequence[int], members: Collection[int]) -> None:
        """Raise Rejected if there are problems, a user does not exist, or the viewer has too many lists.

        One round trip.
        """
        commands: list[Command] = [("ZCARD", keys.lists(viewer)), *map(existence, members)]
        count, *known = await self._store.read(commands)
        require_users(check, "userIds", users, {u for u, found in zip(members, known, strict=True) if exists(found)})
        if count >= MAX_LISTS:
            message = f"You have {count} lists; the limit is {MAX_LISTS}. Delete one first."
            check.fail(ProblemCode.TOO_MANY, message, max=MAX_LISTS, length=count + 1)
        check.done()

    async def _created(self, event: Event, *, is_repeatable: bool) -> UserList:
        """Return the list of a committed event. Raises Rejected (NOT_FOUND) if a repeated request finds it deleted.

        One round trip if the event may be a repetition. If the store does not answer, the name is taken from the event.
        """
        created = cast("ListCreated", event.body)
        name = created.name
        if is_repeatable:
            with suppress(StoreUnavailable):
                rows = await self._store.read([("GET", keys.WATERMARK), *read_held(created.owner, event.number, [])])
                held = held_in([], rows[1:])
                if held.name is None and not held.is_deleted:
                    held = await self._confirmed(created.owner, event.number, [], int(rows[0] or 0)) or held
                if held.is_deleted:
                    raise deleted_since("list")
                name = held.name or name
        return UserList(event.number, created.owner, name)

    async def update(
        self,
        viewer: int,
        list_id: int,
        *,
        name: str | None = None,
        added: Sequence[int] = (),
        removed: Sequence[int] = (),
    ) -> UserList:
        """Rename a list unless the name is None, add and remove members, and return the list.

        Raises Rejected without changing anything: INVALID for the name, and for a user who is both added and removed;
        NOT_FOUND for the list, and for a user to add; TOO_MANY for the 501st member. Concurrent calls may together
        exceed the limit. Three round trips; more for a list that is not in the store, or if the store says that part of
        the change is already done.
        """
        check = Check()
        name = None if name is None else check.name(name)
        users = list(dict.fromkeys([*added, *removed]))
        candidates = list(dict.fromkeys(added))
        commands: list[Command] = [("GET", keys.WATERMARK), *read_held(viewer, list_id, users)]
        rows = await self._store.read([*commands, *map(existence, candidates)])
        held, known = held_in(users, rows[1 : 1 + READS]), rows[1 + READS :]
        require_users(
            check, "addUserIds", added, {u for u, found in zip(candidates, known, strict=True) if exists(found)}
        )
        for index, user in enumerate(removed):
            if user in added:
                message = "This user is also in `addUserIds`. Add or remove a user, not both."
                check.fail(ProblemCode.INVALID, message, "removeUserIds", str(index))
        check.done()
        body = ListChanged(viewer, list_id, name, tuple(candidates), tuple(dict.fromkeys(removed)))
        if held.name is None or effective(body, held) != body:
            confirmed = await self._confirmed(viewer, list_id, users, int(rows[0] or 0))
            held, body = confirmed or held, effective(body, confirmed) if confirmed else body
        if held.name is None:
            raise not_found()
        refuse_too_many(held, body)
        if body != ListChanged(viewer, list_id):
            await self._commit([body])
        return UserList(list_id, viewer, body.name or held.name)

    async def delete(self, viewer: int, list_id: int) -> None:
        """Permanently delete a list. While its tombstone is kept, deleting it again succeeds and appends nothing.

        Raises Rejected (NOT_FOUND). Three round trips; more for a list that is not in the store.
        """
        watermark, *rows = await self._store.read([("GET", keys.WATERMARK), *read_held(viewer, list_id, [])])
        held = held_in([], rows)
        if held.name is None and not held.is_deleted:
            held = await self._confirmed(viewer, list_id, [], int(watermark or 0)) or held
        if held.is_deleted:
            return
        if held.name is None:
            raise not_found()
        await self._commit([ListDeleted(viewer, list_id)], IdempotencyKey("-", f"list-deletion:{list_id}"))

    async def _confirmed(self, viewer: int, list_id: int, users: Sequence[int], watermark: int) -> KnownList | None:
        """Return the state of a list after the last event (`graph.relations.latest`), or None if it is uncertain."""
        latest = await read_latest(self._store, self._log, read_held(viewer, list_id, users), watermark)
        if latest.events is None:
            return None
        return latest.after(held_in(users, latest.rows), partial(after, viewer, list_id))

    async def of_user(self, owner: int) -> list[UserList]:
        """Return the lists of a user, newest first. One round trip."""
        found, names = await self._store.read(
            [("ZRANGE", keys.lists(owner), 0, -1, "REV"), ("HGETALL", keys.list_names(owner))]
        )
        return [UserList(int(each), owner, names[each]) for each in found if each in names]

    async def get_many(self, owner: int, lists: Sequence[int]) -> list[UserList | None]:
        """Return a user's lists by id, or None for ids that do not belong to lists of this user. One round trip."""
        if not lists:
            return []
        scores, names = await self._store.read(
            [("ZMSCORE", keys.lists(owner), *lists), ("HMGET", keys.list_names(owner), *lists)]
        )
        return [
            None if score is None or name is None else UserList(id_, owner, name)
            for id_, score, name in zip(lists, scores, names, strict=True)
        ]

    async def member_ids(self, owner: int, list_id: int) -> list[int]:
        """Return the ids of all members of a list. One round trip."""
        [members] = await self._store.read([("ZRANGE", keys.list_members(owner, list_id), 0, -1)])
        return [int(user) for user in members]

    async def counts(self, owner: int, lists: Sequence[int]) -> list[int]:
        """Return the number of members of each list, hidden users included. One round trip."""
        return await self._store.read([("ZCARD", keys.list_members(owner, each)) for each in lists]) if lists else []

    async def members(self, view: View, owner: int, lists: Sequence[int], window: Window) -> list[Page[Follow]]:
        """Return a page of the members of each list, newest users first, without users hidden from the view.

        The position of a member in the list is the user's id. One round trip, which reads all members of the lists.
        """
        view.begin()
        rows = await self._store.read([("ZRANGE", keys.list_members(owner, each), 0, -1) for each in lists])
        members = [[int(user) for user in row] for row in rows]
        hidden = await view.hidden({user for some in members for user in some})
        return [
            window.page([new_follow((user, user)) for user in within(window, set(some) - hidden)]) for some in members
        ]


READS = 5
"""The number of replies to `read_held`."""


def read_held(owner: int, list_id: int, users: Sequence[int]) -> list[Command]:
    """Return the commands that read the state of a list and check which of these users are its members."""
    lists, members = keys.lists(owner), keys.list_members(owner, list_id)
    return [
        ("ZSCORE", lists, list_id),
        ("ZSCORE", keys.gone(lists), list_id),
        ("HGET", keys.list_names(owner), list_id),
        ("ZCARD", members),
        ("ZMSCORE", members, list_id, *users),
    ]


def held_in(users: Sequence[int], rows: Sequence[Any]) -> KnownList:
    """Return the state of a list from the replies to `read_held`."""
    live, deleted, name, count, (_, *scores) = rows
    members = frozenset(user for user, score in zip(users, scores, strict=True) if score is not None)
    return KnownList(deleted is not None, None if live is None else name, members, count)


def after(owner: int, list_id: int, held: KnownList, event: Event) -> KnownList:
    """Return the state of a list after a later event. An unrelated event leaves the state unchanged."""
    match event.body:
        case ListCreated(creator, name, members) if (creator, event.number) == (owner, list_id) and held.name is None:
            return replace(held, name=name, members=frozenset(members), count=len(members))
        case ListChanged(changer, changed, name) as body if (changer, changed) == (owner, list_id) and held.name:
            return replace(held, name=name or held.name, members=(held.members | {*body.added}) - {*body.removed})
        case ListDeleted(deleter, deleted) if (deleter, deleted) == (owner, list_id):
            return KnownList(is_deleted=True)
        case _:
            return held


def effective(body: ListChanged, held: KnownList) -> ListChanged:
    """Return a change without the parts that are already in effect."""
    return replace(
        body,
        name=None if body.name == held.name else body.name,
        added=tuple(user for user in body.added if user not in held.members),
        removed=tuple(user for user in body.removed if user in held.members),
    )


def require_users(check: Check, field: str, users: Sequence[int], known: Collection[int]) -> None:
    """Add a problem for each user in an input field who does not exist."""
    for index, user in enumerate(users):
        if user not in known:
            check.fail(ProblemCode.NOT_FOUND, "This user does not exist.", field, str(index))


def refuse_too_many(held: KnownList, body: ListChanged) -> None:
    """Raise Rejected (TOO_MANY) if a change that adds members would leave a list with too many."""
    after = held.count + len(body.added) - len(body.removed)
    if body.added and after > MAX_MEMBERS:
        message = f"The list would have {after} members; the limit is {MAX_MEMBERS}. Remove some first."
        raise Rejected.because(ProblemCode.TOO_MANY, message, "addUserIds", max=MAX_MEMBERS, length=after)


def within(window: Window, users: Collection[int]) -> list[int]:
    """Return the users in a window, in paging direction: at most one more than the window's count."""
    inside = sorted((user for user in users if window.low < user < window.high), reverse=window.forward)
    return inside[: window.count + 1]


def not_found() -> Rejected:
    """Return the rejection for a list that does not exist or belongs to another user."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This list does not exist.", "listId")
