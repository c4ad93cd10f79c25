"""Lists of users: their visibility, their limits, and the number of events."""

import asyncio

import pytest

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, EventBody, ListChanged, ListCreated, ListDeleted
from graph.model import Follow, Page, UserList
from graph.paging import Window
from graph.people.lists import MAX_LISTS, MAX_MEMBERS
from graph.projections.mode import Mode
from graph.relations.list_changes import change_lists
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, counted, crowd, newest, oldest, people

NOT_FOUND, TOO_MANY, INVALID = ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY, ProblemCode.INVALID


async def members(graph: Graph, owner: int, list_id: int, window: Window | None = None) -> list[int]:
    """Return the members of a list, and assert that their number is right if none of them is hidden."""
    page = await member_page(graph, owner, list_id, window or newest(100))
    return [each.user for each in page.items]


async def member_page(graph: Graph, owner: int, list_id: int, window: Window) -> Page[Follow]:
    """Return a page of the members of a list, as its owner sees them."""
    [page] = await graph.lists.members(graph.visibility.of(owner), owner, [list_id], window)
    return page  # a page is treated as one of any entries


async def refused(graph: Graph, work: object) -> list[tuple[ProblemCode, tuple[str, ...]]]:
    """Return the codes and fields of a refused change, and assert that nothing was written."""
    last = await graph.log.last()
    with pytest.raises(Rejected) as refusal:
        await work  # type: ignore[misc]  # a coroutine
    assert await graph.log.last() == last
    return [(problem.code, problem.field) for problem in refusal.value.problems]


async def test_a_list_is_created_changed_and_deleted(graph: Graph) -> None:
    """Members are ordered by their ids. Owners can add themselves."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")

    friends = await graph.lists.create(alice, " friends\u200a", [carol, bob, carol])

    assert friends == UserList(friends.id, alice, "friends")
    assert await members(graph, alice, friends.id) == [carol, bob]
    changed = await graph.lists.update(alice, friends.id, name="the others", added=[alice, dave], removed=[bob])
    assert changed == UserList(friends.id, alice, "the others")
    assert await members(graph, alice, friends.id) == [dave, carol, alice]
    assert await graph.lists.counts(alice, [friends.id]) == [3]
    second = await graph.lists.create(alice, "the others")
    assert await graph.lists.of_user(alice) == [second, changed]
    assert await graph.lists.get_many(alice, [second.id, 7, friends.id]) == [second, None, changed]
    await graph.lists.delete(alice, friends.id)
    assert await graph.lists.of_user(alice) == [second]
    assert await members(graph, alice, friends.id) == []


async def test_a_list_of_another_user_does_not_exist(graph: Graph) -> None:
    """Reads find nothing, and changes are refused like those of an unknown list."""
    alice, bob = await people(graph, "alice", "bob")
    friends = await graph.lists.create(alice, "friends", [alice])
    for list_id in (friends.id, 7):
        assert await graph.lists.get_many(bob, [list_id]) == [None]
        assert await members(graph, bob, list_id) == []
        assert await graph.lists.counts(bob, [list_id]) == [0]
        assert await refused(graph, graph.lists.update(bob, list_id, name="x")) == [(NOT_FOUND, ("listId",))]
        assert await refused(graph, graph.lists.update(bob, list_id)) == [(NOT_FOUND, ("listId",))]
        assert await refused(graph, graph.lists.delete(bob, list_id)) == [(NOT_FOUND, ("listId",))]
    assert await graph.lists.of_user(bob) == []
    assert await graph.lists.of_user(alice) == [friends]


async def test_invalid_names_and_unknown_users_are_refused_together(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    friends = await graph.lists.create(alice, "friends")

    for name in ("", " ", "x" * 51, "two\nlines", "\ud800", "\0"):
        assert (INVALID, ("name",)) in await refused(graph, graph.lists.create(alice, name))
        assert (INVALID, ("name",)) in await refused(graph, graph.lists.update(alice, friends.id, name=name))
    expected = [(INVALID, ("name",)), (NOT_FOUND, ("userIds", "1")), (NOT_FOUND, ("userIds", "2"))]
    assert await refused(graph, graph.lists.create(alice, "", [bob, 7, 7])) == expected
    change = graph.lists.update(alice, friends.id, name="", added=[7, bob], removed=[8, bob])
    assert await refused(graph, change) == [
        (INVALID, ("name",)),
        (NOT_FOUND, ("addUserIds", "0")),
        (INVALID, ("removeUserIds", "1")),
    ]


async def test_the_51st_list_is_refused_until_one_is_deleted(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    events = await graph.commit([ListCreated(alice, f"list {n}") for n in range(MAX_LISTS)])
    assert len(await graph.lists.of_user(alice)) == MAX_LISTS

    assert await refused(graph, graph.lists.create(alice, "one more")) == [(TOO_MANY, ())]
    await graph.lists.delete(alice, events[7].number)
    await graph.lists.create(alice, "one more")


async def test_the_501st_member_is_refused_unless_another_is_removed(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    fans = await crowd(graph, MAX_MEMBERS + 1)
    friends = await graph.lists.create(alice, "friends", fans[:100])
    for start in range(100, MAX_MEMBERS, 100):
        await graph.lists.update(alice, friends.id, added=fans[start : start + 100])
    assert await graph.lists.counts(alice, [friends.id]) == [MAX_MEMBERS]

    last = fans[MAX_MEMBERS]
    for added in ([last], [fans[0], last]):
        change = graph.lists.update(alice, friends.id, added=added)
        assert await refused(graph, change) == [(TOO_MANY, ("addUserIds",))]
    await graph.lists.update(alice, friends.id, name="many")
    await graph.lists.update(alice, friends.id, added=[fans[0]])
    await graph.lists.update(alice, friends.id, added=[last], removed=[fans[0]])
    assert await graph.lists.counts(alice, [friends.id]) == [MAX_MEMBERS]


async def test_what_changes_nothing_writes_nothing(graph: Graph) -> None:
    """This holds before and after the projection of the events. Of a mixed change, only the new part is written."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    last = await graph.log.last()
    for _ in range(2):
        assert await graph.lists.update(alice, friends.id, name="friends", added=[bob], removed=[carol]) == friends
        assert await graph.lists.update(alice, friends.id) == friends
        await graph.worker().drain()
    assert await graph.log.last() == last

    await graph.lists.update(alice, friends.id, name="friends", added=[bob, carol], removed=[alice])
    event = await graph.log.get(await graph.log.last())
    assert event is not None
    assert event.body == ListChanged(alice, friends.id, added=(carol,))

    await graph.lists.delete(alice, friends.id)
    last = await graph.log.last()
    for _ in range(2):
        await graph.lists.delete(alice, friends.id)
        assert await refused(graph, graph.lists.update(alice, friends.id, added=[bob])) == [(NOT_FOUND, ("listId",))]
        await graph.worker().drain()
    assert await graph.log.last() == last


async def test_the_last_event_counts_and_not_the_store(graph: Graph) -> None:
    """Events that are committed but not projected count: a change, a new list, and a deletion."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    friends = await graph.lists.create(alice, "friends", [bob])
    bodies: list[EventBody] = [ListChanged(alice, friends.id, "others", (carol,), (bob,)), ListCreated(alice, "new")]
    [_, created] = await append_events(graph, bodies)

    changed = await graph.lists.update(alice, friends.id, name="friends", added=[bob])
    assert changed == friends
    assert await graph.lists.update(alice, created.number, added=[bob]) == UserList(created.number, alice, "new")
    assert await refused(graph, graph.lists.update(bob, created.number)) == [(NOT_FOUND, ("listId",))]
    await append_events(graph, [ListDeleted(alice, created.number)])
    last = await graph.log.last()
    await graph.lists.delete(alice, created.number)
    assert await graph.log.last() == last
    await graph.worker().drain()

    assert await graph.lists.of_user(alice) == [friends]
    assert await members(graph, alice, friends.id) == [carol, bob]


async def test_two_tabs_end_in_the_state_of_the_last_event(graph: Graph, another: Open) -> None:
    """The tabs add and remove the same user and delete the same list concurrently."""
    other = await another()
    alice, bob = await people(graph, "alice", "bob")
    friends = await graph.lists.create(alice, "friends")
    for _ in range(5):
        await asyncio.gather(
            graph.lists.update(alice, friends.id, added=[bob]), other.lists.update(alice, friends.id, removed=[bob])
        )
        before = await members(graph, alice, friends.id)
        await graph.worker().drain()
        assert await members(graph, alice, friends.id) == before
    await asyncio.gather(graph.lists.delete(alice, friends.id), other.lists.delete(alice, friends.id))
    events = [event async for event in graph.log.replay(0, await graph.log.last())]
    assert sum(isinstance(event.body, ListDeleted) for event in events) == 1


async def test_members_are_paged_and_hidden_users_left_out(graph: Graph) -> None:
    alice, *others = await people(graph, "alice", "bob", "carol", "dave", "erin")
    friends = await graph.lists.create(alice, "friends", others)
    await graph.blocks.block(others[1], alice)
    await graph.blocks.mute(alice, others[2])
    bob, _, dave, erin = others

    assert await members(graph, alice, friends.id) == [erin, dave, bob]
    first = await member_page(graph, alice, friends.id, newest(2))
    assert ([each.user for each in first.items], first.has_next) == ([erin, dave], True)
    assert await members(graph, alice, friends.id, newest(2, after=dave)) == [bob]
    assert await members(graph, alice, friends.id, oldest(2)) == [dave, bob]
    assert await members(graph, alice, friends.id, oldest(2, before=dave)) == [erin]
    assert await graph.lists.counts(alice, [friends.id]) == [4]


async def test_a_deleted_list_stays_deleted(graph: Graph) -> None:
    """Late and repeated events change nothing, even after the list's tombstone was trimmed."""
    alice, bob = await people(graph, "alice", "bob")
    events: list[Event] = await graph.commit([ListCreated(alice, "friends", (bob,))])
    number = events[0].number
    events += await graph.commit([ListChanged(alice, number, "x", (alice,)), ListDeleted(alice, number)])
    for bodies in (events, events[::-1], events[:2], events[1:2]):
        await graph.projections.project(bodies, Mode.WORKER)
        assert await graph.lists.get_many(alice, [number]) == [None]
        assert await members(graph, alice, number) == []
    await graph.worker().drain()


async def test_costs(graph: Graph) -> None:
    """A change takes 3 round trips: look-up, append, projection. Reads take 1."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.binding.token()
    async with counted(graph) as cost:
        friends = await graph.lists.create(alice, "friends", [bob])
    assert cost.round_trips == 3
    async with counted(graph) as cost:
        await graph.lists.update(alice, friends.id, name="x", added=[carol], removed=[bob])
    assert cost.round_trips == 3
    async with counted(graph) as cost:
        await asyncio.gather(
            graph.lists.of_user(alice),
            graph.lists.counts(alice, [friends.id]),
            graph.lists.members(graph.visibility.of(alice), alice, [friends.id], newest(9)),
        )
    assert cost.round_trips == 1
    async with counted(graph) as cost:
        await graph.lists.delete(alice, friends.id)
    assert cost.round_trips == 3
    assert await graph.lists.members(SYSTEM, alice, [], newest(9)) == []


async def test_trimmed_tombstones_leave_a_floor(graph: Graph) -> None:
    """Late events up to the floor restore neither a deleted list nor a removed member."""
    alice, bob = await people(graph, "alice", "bob")
    bodies: list[EventBody] = [ListCreated(alice, "kept", (bob,)), ListCreated(alice, "gone", (bob,))]
    created = await graph.commit(bodies)
    kept, gone = (event.number for event in created)
    changes: list[EventBody] = [ListChanged(alice, kept, removed=(bob,)), ListDeleted(alice, gone)]
    changed = await graph.commit(changes)
    late = [*created, Event(changed[0].number - 1, ListChanged(alice, gone, "x", (bob,)))]

    for trim_up_to in (0, changed[1].number):
        await change_lists(graph.store, [(each.number, each.body) for each in changed], trim_up_to)  # type: ignore[misc]
        await change_lists(graph.store, [(each.number, each.body) for each in late], trim_up_to)  # type: ignore[misc]
        assert await graph.lists.of_user(alice) == [UserList(kept, alice, "kept")]
        assert await graph.lists.counts(alice, [kept, gone]) == [0, 0]
        assert await graph.lists.get_many(alice, [gone]) == [None]
