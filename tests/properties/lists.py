"""Lists of users in the machine: the rules that change and read them, and the check of all lists."""

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import precondition, rule

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.model import UserList
from graph.paging import Window
from graph.people.lists import Lists
from tests.properties.disasters import Disaster
from tests.properties.model import History, Operation, decided
from tests.properties.notifications import NotificationRules
from tests.properties.reading import whole_list
from tests.properties.requests import apis, authors, calls, users
from tests.support.graph_worlds import codes
from tests.support.world import World

CREATE, ONCE = "create list", "create list once"
"""The kinds of operations that create a list, without and with an idempotency key."""
MOST_LISTS, MOST_MEMBERS = 2, 2
"""The limits in the machine, which users reach often."""

some_users = st.lists(users, max_size=2)


class ListRules(NotificationRules):
    """The part of the machine with lists of users. After a disaster, changes of lists may be among the lost events."""

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, owner=authors, members=some_users, calls=calls)
    def create_list(self, process: str, owner: int, members: list[int], calls: int) -> None:
        """A user creates a list of users."""
        self.texts += 1
        user, chosen = self.user_at(owner), tuple(self.user_at(member) for member in members)
        work = self.graph_of(process).lists.create(user, f"list {self.texts}", chosen)
        self._launch(self.history.start(process, CREATE, user, chosen), work, calls)

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, owner=authors, key=st.sampled_from(("k1", "k2")), calls=calls)
    def create_list_once(self, process: str, owner: int, key: str, calls: int) -> None:
        """A user creates an empty list with an idempotency key, perhaps again, with the same name."""
        user = self.user_at(owner)
        work = self.graph_of(process).lists.create(user, f"list of {key}", idempotency_key=key)
        self._launch(self.history.start(process, ONCE, user, key), work, calls)

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(
        process=apis,
        which=st.integers(0, 5),
        kind=st.sampled_from(("rename", "change", "change", "change", "delete")),
        added=some_users,
        removed=some_users,
        calls=calls,
    )
    def change_list(
        self, process: str, which: int, kind: str, added: list[int], removed: list[int], calls: int
    ) -> None:
        """A user renames or deletes a list, or adds and removes members."""
        if not (made := self._lists(CREATE, ONCE)):
            return
        self.texts += 1
        found, lists = made[which % len(made)], self.graph_of(process).lists
        if kind == "delete":
            operation = self.history.start(process, "delete list", found.id)
            self._launch(operation, lists.delete(found.owner, found.id), calls)
            return
        more = tuple(self.user_at(member) for member in added)
        less = tuple(user for user in map(self.user_at, removed) if user not in more)
        name = f"list {self.texts}" if kind == "rename" else None
        work = lists.update(found.owner, found.id, name=name, added=more, removed=less)
        self._launch(self.history.start(process, "change list", found.id, more, less), work, calls)

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, which=st.integers(0, 5), size=st.sampled_from((1, 2, 7)), forward=st.booleans(), calls=calls)
    def read_list(self, process: str, which: int, size: int, forward: bool, calls: int) -> None:
        """A user reads the timeline of a list to its end, page by page, in one direction."""
        if made := self._lists(CREATE):
            found = made[which % len(made)]
            operation = self.history.start(process, "read list", found.owner, found.id)
            work = whole_list(self.graph_of(process), found.owner, found.id, size, forward=forward)
            self._launch(operation, work, calls)

    def _lists(self, *kinds: str) -> list[UserList]:
        """Return all lists that operations of these kinds have created or returned, including deleted ones."""
        return [op.result for op in self.history.operations if op.kind in kinds and op.done]

    def check_result(self, operation: Operation) -> None:
        super().check_result(operation)
        if operation.kind == "read list":
            list_id = operation.subject[1]

            def includes(author: int, start: int, end: int) -> bool | None:
                return certainly_contains(self.history, list_id, author, start, end)

            self.history.check_timeline(operation, includes, is_complete=True)
        if operation.kind == CREATE:
            check_limit(self.history, operation)
        if operation.kind == ONCE:
            check_once(self.history, operation)


def certainly_contains(history: History, list_id: int, user: int, start: int, end: int) -> bool | None:
    """Return True if a list contained a user throughout a period, False if never, None if that is uncertain."""
    if any(op.started < end for op in history.of("delete list", list_id)):
        return None
    changes = [op for op in history.operations if op.kind == "change list" and op.subject[0] == list_id]
    changes = [op for op in changes if user in op.subject[1] + op.subject[2]]
    made = [op for op in history.operations if op.kind == CREATE and op.done and op.result.id == list_id]
    return decided([*made, *changes], lambda last: user in last.subject[1], start, end)


def check_limit(history: History, created: Operation) -> None:
    """Check that no list was created above the limit, and none refused below it."""
    if history.after_disaster or created.returned is None:
        return
    others = [op for op in history.operations if op.kind == CREATE and op is not created]
    others = [op for op in others if op.subject[0] == created.subject[0] and op.started < created.returned]
    certain = [op for op in others if op.done_before(created.started)]
    certain = [op for op in certain if all(e.started > created.returned for e in deletions_of(history, op))]
    assert not created.done or len(certain) < MOST_LISTS, "a user got more lists than the limit allows"
    if isinstance(created.result, Rejected) and ProblemCode.TOO_MANY in codes(created.result):
        once = [op for op in history.operations if op.kind == ONCE and op.subject[0] == created.subject[0]]
        possible = [op for op in [*others, *once] if not op.is_refused]
        done = [op for op in possible if op.done]
        gone = [op for op in done if any(e.done_before(created.started) for e in deletions_of(history, op))]
        assert len(possible) - len(gone) >= MOST_LISTS, "a user was refused a list below the limit"


def deletions_of(history: History, created: Operation) -> list[Operation]:
    """Return the deletions of a list that was created."""
    return history.of("delete list", created.result.id)


def check_once(history: History, created: Operation) -> None:
    """Check that all requests with one key return the same list, and find it deleted only if it may be deleted."""
    user, key = created.subject
    assert len({op.result.id for op in history.of(ONCE, user, key) if op.done}) <= 1, (
        f"key {key} of user {user} created two lists"
    )
    if isinstance(created.result, Rejected) and ProblemCode.NOT_FOUND in codes(created.result):
        assert any(op.kind == "delete list" for op in history.operations), f"list {key} of user {user} was lost"


async def check_lists(graph: Graph, world: World, owners: Sequence[int]) -> None:
    """Check the lists of all users, their members, counts and timelines in both directions, and the limits."""
    for owner in owners:
        view, expected = graph.visibility.of(owner), {i: each for i, each in world.lists.items() if each.owner == owner}
        ids = sorted(expected, reverse=True)
        assert await graph.lists.of_user(owner) == [UserList(id_, owner, expected[id_].name) for id_ in ids]
        if not ids:
            continue
        hidden = world.hidden(owner)
        assert await graph.lists.counts(owner, ids) == [len(expected[id_].members) for id_ in ids]
        for window in (Window(9, forward=True), Window(9, forward=False)):
            pages = await graph.lists.members(view, owner, ids, window)
            found = [[each.user for each in page.items] for page in pages]
            assert found == [sorted(expected[id_].members - hidden, reverse=True) for id_ in ids]
        for id_ in ids:
            timeline = world.merged(owner, expected[id_].members)
            for size, forward in ((2, True), (5, False)):
                posts = await whole_list(graph, owner, id_, size, forward=forward)
                assert [post.id for post in posts] == timeline
            await check_full(graph.lists, world, owner, id_, sorted({*owners} - expected[id_].members - hidden))
        if len(ids) >= MOST_LISTS:
            await refuses(graph.lists.create(owner, "one more"))


async def check_full(lists: Lists, world: World, owner: int, list_id: int, others: Sequence[int]) -> None:
    """Check that a full list refuses another member."""
    found = world.lists[list_id]
    if len(found.members) >= MOST_MEMBERS and others:
        await refuses(lists.update(owner, list_id, added=others[:1]))


async def refuses(work: Any) -> None:
    """Check that a call is refused with `TOO_MANY`."""
    with pytest.raises(Rejected) as refusal:
        await work
    assert codes(refusal.value) == [ProblemCode.TOO_MANY]
