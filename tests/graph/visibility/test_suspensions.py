"""The suspensions that a process knows: from reads, and from streams."""

import asyncio

from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.numbers import entry_id
from graph.projections.mode import Mode
from graph.visibility.suspensions import FEW
from tests.support.graph_worlds import append_events, counted, people, posts


async def hidden(graph: Graph, viewer: int | None, *users: int) -> set[int]:
    """Return the given users who are hidden from a viewer in a new request."""
    return set(await graph.visibility.of(viewer).hidden(users))


async def test_very_many_suspensions_are_read_once(graph: Graph, raw: Redis) -> None:
    """The requests of a process share the read."""
    alice, bob = await people(graph, "alice", "bob")
    await raw.hset(keys.SUSPENDED, mapping={str(user): "1" for user in range(1, FEW + 1)})
    await graph.moderation.suspend(bob)

    async with counted(graph) as cost:
        found = await asyncio.gather(*(hidden(graph, None, alice, bob, 7) for _ in range(20)))

    assert found == [{bob, 7}] * 20
    assert cost.round_trips <= 3
    async with counted(graph) as cost:
        assert await hidden(graph, None, alice, bob) == {bob}
    assert cost.round_trips == 1
    await graph.moderation.unsuspend(bob)
    assert await hidden(graph, None, alice, bob, 7) == {7}


async def test_a_process_that_never_reads_a_change_late_keeps_what_it_knows(graph: Graph) -> None:
    """While the shard of the suspensions does not answer, a process uses what it has read before."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.moderation.suspend(bob)
    assert await hidden(graph, alice, bob) == {bob}
    await append_events(graph, [UserUnsuspended(bob)])
    assert await hidden(graph, alice, bob) == {bob}
    await graph.worker().drain()
    assert not await hidden(graph, alice, bob)


async def test_a_suspension_that_a_failover_has_lost_ends_in_processes_that_know_it(graph: Graph, raw: Redis) -> None:
    """A stream has received the event, which counts until the watermark passes it. Then the store decides."""
    alice, bob = await people(graph, "alice", "bob")
    assert not await hidden(graph, alice, bob)
    [event] = await append_events(graph, [UserSuspended(bob)])
    graph.visibility.note_suspension(bob, event.number, suspended=True)
    for _ in range(2):
        assert await hidden(graph, alice, bob) == {bob}
    await raw.xdel(keys.LOG, entry_id(event.number))
    await posts(graph, alice, "later")
    assert await graph.worker().drain() > event.number
    await graph.log.watermark()

    assert not await hidden(graph, alice, bob)
    assert not graph.visibility.suspended_now({bob})


async def test_a_late_note_of_a_suspension_changes_nothing(graph: Graph) -> None:
    """The store has a later event, or the process has learnt of one."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    events = await append_events(graph, [UserSuspended(bob), UserUnsuspended(bob)])
    await graph.projections.project(events, Mode.WORKER)
    assert not await hidden(graph, alice, bob)
    graph.visibility.note_suspension(bob, events[0].number, suspended=True)
    last = events[1].number
    graph.visibility.note_suspension(carol, last + 2, suspended=True)
    graph.visibility.note_suspension(carol, last + 1, suspended=False)
    assert graph.visibility.suspended_now({bob, carol}) == {carol}
    assert await hidden(graph, alice, bob, carol) == {carol}
