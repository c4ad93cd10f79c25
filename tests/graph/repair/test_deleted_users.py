"""Tests of repairs of deleted users."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.numbers import entry_id
from graph.repair.repair import Kind
from tests.graph.repair.broken import check, repair
from tests.support.graph_worlds import PASSWORD, archive_log, people, state

Damage = Callable[[Redis, int], Awaitable[Any]]
LIVE = 4_000_000_000

DAMAGES: dict[str, tuple[Damage, set[Kind]]] = {
    "no tombstone": (lambda raw, bob: raw.delete(keys.user(bob)), {Kind.PROFILE_WRONG}),
    "a profile": (
        lambda raw, bob: raw.hset(keys.user(bob), mapping={"id": bob, "id:at": bob, "login": "bob", "name": "Bob"}),
        {Kind.PROFILE_WRONG},
    ),
    "a login": (lambda raw, bob: raw.hset(keys.login("bob"), mapping={"user": bob}), {Kind.LOGIN_WRONG}),
    "no reservation": (lambda raw, bob: raw.delete(keys.reserved(login_hash("bob"))), {Kind.LOGIN_WRONG}),
    "a session": (lambda raw, bob: raw.hset(keys.sessions(bob), "s", LIVE), {Kind.SESSION_LIVE}),
    "not hidden": (lambda raw, bob: raw.hdel(keys.SUSPENDED, str(bob)), {Kind.PROFILE_WRONG}),
    "not in the log": (lambda raw, bob: raw.delete(keys.DELETED), {Kind.PROFILE_WRONG}),
    "not to be erased": (lambda raw, bob: raw.delete(keys.ERASING), {Kind.PROFILE_WRONG}),
}


async def everything(raw: Redis) -> dict[str, Any]:
    """Return what a repair must restore."""
    return await state(raw, ("{log}", "{suspended}:version", "home:"))


@pytest.fixture
async def bob(graph: Graph) -> int:
    """Delete two users, one of whom is erased, and return the other one, whose credentials were archived."""
    [bob] = await people(graph, "bob")
    await drain(graph)
    [carol] = await people(graph, "carol")
    await graph.commit([UserDeleted(user, login_hash(login)) for user, login in ((bob, "bob"), (carol, "carol"))])
    await graph.commit([UserErased(carol)], erasing=True)
    await drain(graph)
    return bob


async def drain(graph: Graph) -> None:
    """Run the worker and the archiver."""
    await graph.worker().drain()
    await archive_log(graph)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_of_deleted_users_is_repaired(graph: Graph, raw: Redis, bob: int, damage: str) -> None:
    """Without damage there is no difference."""
    apply, kinds = DAMAGES[damage]
    assert (await check(graph)).clean
    healthy = await everything(raw)
    await apply(raw, bob)

    found = await check(graph)
    corrected = await repair(graph)

    assert set(found.found) == kinds, found.examples
    assert corrected.clean
    assert await everything(raw) == healthy
    assert (await check(graph)).clean


async def test_everything_lost_of_a_deleted_user_is_restored(graph: Graph, raw: Redis, bob: int) -> None:
    """Also of a user whose credentials were never archived."""
    healthy = await everything(raw)
    for key in list(healthy):
        await raw.delete(key)

    assert (await repair(graph)).clean

    assert await everything(raw) == healthy


async def test_a_deletion_that_the_archive_does_not_know_yet_is_no_difference(graph: Graph, raw: Redis) -> None:
    [bob] = await people(graph, "bob")
    await drain(graph)
    await graph.commit([UserDeleted(bob, login_hash("bob"))])
    before = await everything(raw)
    checking = graph.repair()
    checking.timeout = 0

    report = await checking.run(correct=True)

    assert report.clean, report.examples
    assert report.upto < report.last
    assert await everything(raw) == before


async def test_a_deletion_that_a_failover_has_lost_is_undone(graph: Graph, raw: Redis) -> None:
    """The archive knows later events, but not the deletion. The user can log in again."""
    [alice, bob] = await people(graph, "alice", "bob")
    await drain(graph)
    before = await everything(raw)
    [event] = await graph.commit([UserDeleted(bob, login_hash("bob"))])
    await raw.xdel(keys.LOG, entry_id(event.number))
    await graph.users.update_profile(alice, name="Alice")
    await drain(graph)

    corrected = await repair(graph)

    assert set(corrected.found) == {Kind.PROFILE_WRONG, Kind.LOGIN_WRONG}
    assert corrected.clean
    after = await everything(raw)
    assert {key: value for key, value in after.items() if str(alice) not in key} == {
        key: value for key, value in before.items() if str(alice) not in key
    } | {keys.login("bob"): after[keys.login("bob")]}
    assert (await graph.users.check_password("bob", PASSWORD)).id == bob
