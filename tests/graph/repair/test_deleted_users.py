"""Tests of repairs of deleted users."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.numbers import entry_id
from graph.repair import defects
from graph.repair.defects import Defect
from tests.graph.repair.broken import check, kinds_found, repair
from tests.support.graph_worlds import PASSWORD, archive_log, people, state

Damage = Callable[["Deleted"], Awaitable[Any]]
LIVE = 4_000_000_000


@dataclass
class Deleted:
    """A deleted user, whose credentials were archived."""

    raw: Redis
    id: int
    login: str


DAMAGES: dict[str, tuple[Damage, set[Defect]]] = {
    "no tombstone": (lambda bob: bob.raw.delete(keys.user(bob.id)), {defects.PROFILE_WRONG}),
    "a profile": (
        lambda bob: bob.raw.hset(
            keys.user(bob.id), mapping={"id": bob.id, "id:at": bob.id, "login": bob.login, "name": "Bob"}
        ),
        {defects.PROFILE_WRONG},
    ),
    "a login": (lambda bob: bob.raw.hset(keys.login(bob.login), mapping={"user": bob.id}), {defects.LOGIN_WRONG}),
    "no reservation": (lambda bob: bob.raw.delete(keys.reserved(login_hash(bob.login))), {defects.LOGIN_WRONG}),
    "a session": (lambda bob: bob.raw.hset(keys.sessions(bob.id), "s", LIVE), {defects.SESSION_LIVE}),
    "not hidden": (lambda bob: bob.raw.hdel(keys.SUSPENDED, str(bob.id)), {defects.PROFILE_WRONG}),
    "not in the log": (lambda bob: bob.raw.hdel(keys.DELETED, str(bob.id)), {defects.PROFILE_WRONG}),
    "not to be erased": (lambda bob: bob.raw.zrem(keys.ERASING, str(bob.id)), {defects.PROFILE_WRONG}),
}


async def everything(raw: Redis) -> dict[str, Any]:
    """Return the content that a repair must restore."""
    return await state(raw, ("{log}", "{suspended}:version", "home:"))


async def deleted(graph: Graph, raw: Redis, *logins: str) -> list[Deleted]:
    """Delete users after their credentials were archived, and return them. Also erase another user."""
    users = await people(graph, *logins)
    await drain(graph)
    [carol] = await people(graph, "carol")
    them = zip([*users, carol], [*logins, "carol"], strict=True)
    await graph.commit([UserDeleted(user, login_hash(login)) for user, login in them])
    await graph.commit([UserErased(carol)], erasing=True)
    await drain(graph)
    return [Deleted(raw, user, login) for user, login in zip(users, logins, strict=True)]


async def drain(graph: Graph) -> None:
    """Run the worker and the archiver."""
    await graph.worker().drain()
    await archive_log(graph)


async def test_damage_of_deleted_users_is_repaired(graph: Graph, raw: Redis) -> None:
    """Each user's data is damaged in a different way. Undamaged data shows no difference."""
    users = await deleted(graph, raw, *(f"bob{place}" for place in range(len(DAMAGES))))
    damaged = dict(zip(DAMAGES, users, strict=True))
    assert (await check(graph)).clean
    healthy = await everything(raw)
    for damage, user in damaged.items():
        await DAMAGES[damage][0](user)
    owners = {user.id: damage for damage, user in damaged.items()}
    expected = {damage: kinds for damage, (_, kinds) in DAMAGES.items()}

    assert await kinds_found(graph, owners, correct=False) == expected
    assert await kinds_found(graph, owners, correct=True) == expected

    assert await everything(raw) == healthy
    assert (await check(graph)).clean


async def test_everything_lost_of_a_deleted_user_is_restored(graph: Graph, raw: Redis) -> None:
    """This also holds for a user whose credentials were never archived."""
    await deleted(graph, raw, "bob")
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
    assert report.up_to < report.last
    assert await everything(raw) == before


async def test_a_deletion_that_a_failover_has_lost_is_undone(graph: Graph, raw: Redis) -> None:
    """The archive has later events, but not the deletion. The user can log in again."""
    [alice, bob] = await people(graph, "alice", "bob")
    await drain(graph)
    before = await everything(raw)
    [event] = await graph.commit([UserDeleted(bob, login_hash("bob"))])
    await raw.xdel(keys.LOG, entry_id(event.number))
    await graph.users.update_profile(alice, name="Alice")
    await drain(graph)

    corrected = await repair(graph)

    assert set(corrected.found) == {defects.PROFILE_WRONG, defects.LOGIN_WRONG}
    assert corrected.clean
    after = await everything(raw)
    assert {key: value for key, value in after.items() if str(alice) not in key} == {
        key: value for key, value in before.items() if str(alice) not in key
    } | {keys.login("bob"): after[keys.login("bob")]}
    assert (await graph.users.check_password("bob", PASSWORD)).id == bob
