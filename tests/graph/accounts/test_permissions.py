"""Permissions: the last event in the log decides, whatever the order of projection."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.accounts.users import Users
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, EventBody, PermissionGranted, PermissionRevoked
from graph.model import Permission
from graph.projections.mode import Mode
from tests.support.graph_worlds import Open, codes, counted, people
from tests.support.stores import Stop, runs

FIREHOSE = Permission.FIREHOSE
Change = Callable[[Users, int, Permission], Awaitable[bool]]


async def test_users_have_no_permission_at_first(graph: Graph) -> None:
    """A new user has no permissions. The check takes 1 round trip."""
    [alice] = await people(graph, "alice")

    async with counted(graph) as cost:
        assert await graph.users.permissions(alice) == frozenset()

    assert cost.round_trips == 1
    assert await graph.users.permissions(7) == frozenset()


async def test_a_permission_holds_until_it_is_revoked(graph: Graph) -> None:
    """A permission holds from the grant to the revocation, before and after a drain. A change takes 3 round trips."""
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


async def test_granting_or_revoking_twice_returns_false(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    granted = [await graph.users.grant(alice, FIREHOSE) for _ in range(2)]
    revoked = [await graph.users.revoke(alice, FIREHOSE) for _ in range(2)]

    assert (granted, revoked) == ([True, False], [True, False])


@pytest.mark.parametrize("change", [Users.grant, Users.revoke])
async def test_an_unknown_user_gets_no_permission(graph: Graph, raw: Redis, change: Change) -> None:
    with pytest.raises(Rejected) as rejected:
        await change(graph.users, 7, FIREHOSE)

    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert [key async for key in raw.scan_iter()] == [keys.BINDING]


async def test_permissions_are_not_part_of_profiles(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    before = await graph.users.get_many([alice])

    await graph.users.grant(alice, FIREHOSE)

    assert await graph.users.get_many([alice]) == before


@pytest.mark.parametrize("seed", range(3))
async def test_in_any_order_the_highest_number_counts(graph: Graph, seed: int) -> None:
    """The event with the highest number decides, even with repeated events."""
    [alice] = await people(graph, "alice")
    rng = random.Random(seed)  # noqa: S311 - reproducible
    first = await graph.log.last() + 1
    bodies: list[EventBody] = [
        PermissionGranted(alice, FIREHOSE.value) if rng.random() < 0.5 else PermissionRevoked(alice, FIREHOSE.value)
        for _ in range(20)
    ]
    events = [Event(first + n, body) for n, body in enumerate(bodies)]

    for event in rng.sample(events, len(events)) + rng.sample(events, 10):
        await graph.projections.project([event], Mode.WORKER)

    assert await graph.users.permissions(alice) == (
        {FIREHOSE} if isinstance(events[-1].body, PermissionGranted) else frozenset()
    )


async def test_concurrent_grants_and_revocations_end_with_the_last_in_the_log(graph: Graph, another: Open) -> None:
    """The last event in the log decides, before and after a drain and in every process."""
    [alice] = await people(graph, "alice")
    processes = [graph, await another()]
    changes = [(process.users.grant, process.users.revoke)[n % 2] for n in range(20) for process in processes]

    await asyncio.gather(*(change(alice, FIREHOSE) for change in changes))

    events = [event.body async for event in graph.log.replay(0, await graph.log.last())]
    expected = {FIREHOSE} if isinstance(events[-1], PermissionGranted) else frozenset()
    for _ in range(2):
        assert [await process.users.permissions(alice) for process in processes] == [expected, expected]
        await graph.worker().drain()


async def test_an_earlier_grant_that_is_projected_late_does_not_undo_a_revocation(graph: Graph, another: Open) -> None:
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
