"""Permissions: granted and revoked by events, of which the last one in the log counts, whoever projects them when."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, PermissionGranted, PermissionRevoked
from graph.model import Permission
from graph.projections.mode import Mode
from graph.users import Users
from tests.support.graph_worlds import Open, codes, counted, people
from tests.support.stores import Stop, runs

FIREHOSE = Permission.FIREHOSE
Change = Callable[[Users, int, Permission], Awaitable[bool]]


async def test_nobody_has_a_permission_at_first(graph: Graph) -> None:
    """Neither a new person nor somebody who does not exist; asking costs one round trip."""
    [alice] = await people(graph, "alice")

    async with counted(graph) as cost:
        assert await graph.users.permissions(alice) == frozenset()

    assert cost.round_trips == 1
    assert await graph.users.permissions(7) == frozenset()


async def test_a_permission_holds_until_it_is_revoked(graph: Graph) -> None:
    """For the person who was given it, before and after the worker has come by; three round trips a change."""
    alice, bob = await people(graph, "alice", "bob")

    async with counted(graph) as cost:
        assert await graph.users.grant(alice, FIREHOSE)

    assert cost.round_trips == 3
    for _ in range(2):
        assert await graph.users.permissions(alice) == {FIREHOSE}
        assert await graph.users.permissions(bob) == frozenset()
        await graph.worker().drain()
    assert await graph.users.revoke(alice, FIREHOSE)
    for _ in range(2):
        assert await graph.users.permissions(alice) == frozenset()
        await graph.worker().drain()


async def test_granting_or_revoking_twice_is_told(graph: Graph) -> None:
    """The second time changes nothing, and says so."""
    [alice] = await people(graph, "alice")

    granted = [await graph.users.grant(alice, FIREHOSE) for _ in range(2)]
    revoked = [await graph.users.revoke(alice, FIREHOSE) for _ in range(2)]

    assert (granted, revoked) == ([True, False], [True, False])


@pytest.mark.parametrize("change", [Users.grant, Users.revoke])
async def test_an_account_that_is_not_there_gets_no_permission(graph: Graph, raw: Redis, change: Change) -> None:
    """NOT_FOUND means that nothing was written."""
    with pytest.raises(Rejected) as rejected:
        await change(graph.users, 7, FIREHOSE)

    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert await raw.dbsize() == 0


async def test_a_profile_is_what_it_was(graph: Graph) -> None:
    """Permissions are no part of what others see of a person."""
    [alice] = await people(graph, "alice")
    before = await graph.users.get_many([alice])

    await graph.users.grant(alice, FIREHOSE)

    assert await graph.users.get_many([alice]) == before


@pytest.mark.parametrize("seed", range(3))
async def test_any_order_and_any_repetition_of_changes_gives_the_last(graph: Graph, seed: int) -> None:
    """Late, doubled and re-ordered events change nothing: the highest number counts."""
    [alice] = await people(graph, "alice")
    rng = random.Random(seed)  # noqa: S311 - reproducible
    first = await graph.log.last() + 1
    events = [
        Event(first + n, rng.choice([PermissionGranted, PermissionRevoked])(alice, FIREHOSE.value)) for n in range(20)
    ]

    for event in rng.sample(events, len(events)) + rng.sample(events, 10):
        await graph.projections.project([event], Mode.WORKER)

    assert await graph.users.permissions(alice) == (
        {FIREHOSE} if isinstance(events[-1].body, PermissionGranted) else frozenset()
    )


async def test_processes_that_grant_and_revoke_at_once_end_as_the_log_does(graph: Graph, another: Open) -> None:
    """Whichever is last in the log stands, before and after a drain, and each process reads the same."""
    [alice] = await people(graph, "alice")
    processes = [graph, await another()]
    changes = [(process.users.grant, process.users.revoke)[n % 2] for n in range(20) for process in processes]

    await asyncio.gather(*(change(alice, FIREHOSE) for change in changes))

    events = [event.body async for event in graph.log.replay(0, await graph.log.last())]
    expected = {FIREHOSE} if isinstance(events[-1], PermissionGranted) else frozenset()
    for _ in range(2):
        assert [await process.users.permissions(alice) for process in processes] == [expected, expected]
        await graph.worker().drain()


async def test_who_revokes_is_not_overtaken_by_a_grant_that_came_first(graph: Graph, another: Open) -> None:
    """A grant that is committed but hangs before it is projected is undone, although nobody could see it."""
    slow = await another()
    [alice] = await people(graph, "alice")
    stop = Stop(slow.store, runs("set_permission"))
    granting = asyncio.create_task(slow.users.grant(alice, FIREHOSE))
    await stop.reached.wait()

    assert not await graph.users.revoke(alice, FIREHOSE)
    stop.resume()
    await granting
    await graph.worker().drain()

    assert await graph.users.permissions(alice) == frozenset()
