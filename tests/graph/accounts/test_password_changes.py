"""Password changes: what they end, what is refused, and crashes and races between their steps."""

import asyncio
from contextlib import suppress
from itertools import count

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log.events import Event, PasswordChanged, SessionsEnded
from graph.projections.mode import Mode
from tests.support.graph_worlds import PASSWORD, Open, archive_log, codes, counted, people, state
from tests.support.stores import Crashed, Death, Stop, runs

NEW, NEWER = "a new password", "a newer password"
networks = map(str, count())


async def works(graph: Graph, password: str, login: str = "alice") -> bool:
    """Return True if a log-in with this password succeeds, from a network without failures."""
    try:
        await graph.users.check_password(login, password, network=next(networks))
    except Rejected:
        return False
    return True


async def test_a_change_ends_all_other_sessions(graph: Graph, another: Open) -> None:
    """A new session replaces all the user's, and no others, in every process. It takes 9 round trips and 2 hashes."""
    alice, bob = await people(graph, "alice", "bob")
    old, bobs = [await graph.sessions.start(alice) for _ in range(2)], await graph.sessions.start(bob)
    other = await another()

    hashes = graph.users.hashing.hashes
    async with counted(graph) as cost:
        session = await graph.passwords.change(alice, PASSWORD, NEW, user_agent="Phone")

    assert (cost.round_trips, graph.users.hashing.hashes - hashes) == (9, 2)
    assert [info.token_id for info in await other.sessions.live_sessions(alice)] == [session.id]
    assert not any(await other.sessions.are_live([(alice, each.id) for each in old]))
    assert await other.sessions.is_live(bob, bobs.id)
    assert [await works(other, password) for password in (NEW, PASSWORD)] == [True, False]
    assert await works(other, PASSWORD, "bob")


async def test_the_log_holds_no_secret(graph: Graph, raw: Redis) -> None:
    """The log does not hold the password either. The hash that waited for the event is deleted."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)

    await graph.passwords.change(alice, PASSWORD, NEW)

    entries = str(await raw.xrange(keys.LOG))
    secret = await raw.hget(keys.login("alice"), "secret")
    assert secret
    assert str(secret) not in entries
    assert "argon2" not in entries
    assert NEW not in entries
    bodies = [event.body async for event in graph.log.replay(alice, await graph.log.last())]
    assert [type(body) for body in bodies] == [PasswordChanged, SessionsEnded]
    assert bodies[1] == SessionsEnded(alice, [session.id])
    assert await raw.keys("login:*:next:*") == []


@pytest.mark.parametrize(
    ("current", "new", "code", "field"),
    [
        ("wrong password", NEW, ProblemCode.WRONG_CREDENTIALS, "currentPassword"),
        ("\ud800", NEW, ProblemCode.WRONG_CREDENTIALS, "currentPassword"),
        ("x" * 1000, NEW, ProblemCode.WRONG_CREDENTIALS, "currentPassword"),
        (PASSWORD, "short", ProblemCode.PASSWORD_TOO_WEAK, "newPassword"),
        (PASSWORD, "password1", ProblemCode.PASSWORD_TOO_WEAK, "newPassword"),
        (PASSWORD, "alice___", ProblemCode.PASSWORD_TOO_WEAK, "newPassword"),
        (PASSWORD, "x" * 129, ProblemCode.INVALID, "newPassword"),
        (PASSWORD, "\ud800" * 9, ProblemCode.INVALID, "newPassword"),
    ],
)
async def test_a_refused_change_writes_nothing(
    graph: Graph, raw: Redis, current: str, new: str, code: ProblemCode, field: str
) -> None:
    """A refused change writes nothing and ends no session. A weak password is refused before anything is checked."""
    [alice] = await people(graph, "alice___")
    session = await graph.sessions.start(alice)
    before, last = await state(raw, but=("{log}", "attempts")), await graph.log.last()

    with pytest.raises(Rejected) as rejected:
        await graph.passwords.change(alice, current, new)

    assert [(problem.code, problem.field) for problem in rejected.value.problems] == [(code, (field,))]
    assert (await state(raw, but=("{log}", "attempts")), await graph.log.last()) == (before, last)
    assert await graph.sessions.is_live(alice, session.id)


async def test_failures_are_counted_like_failed_log_ins(graph: Graph) -> None:
    """A client with a session cannot guess the password. Other networks can still log in."""
    [alice] = await people(graph, "alice")
    for _ in range(10):
        with suppress(Rejected):
            await graph.passwords.change(alice, "wrong password", NEW, network="here")

    with pytest.raises(Rejected) as rejected:
        await graph.passwords.change(alice, PASSWORD, NEW, network="here")

    [problem] = rejected.value.problems
    assert (problem.code, problem.field) == (ProblemCode.TOO_MANY_ATTEMPTS, ("currentPassword",))
    with pytest.raises(Rejected):
        await graph.users.check_password("alice", PASSWORD, network="here")
    assert await works(graph, PASSWORD)


async def test_an_unknown_user_cannot_change_a_password(graph: Graph) -> None:
    with pytest.raises(Rejected) as rejected:
        await graph.passwords.change(7, PASSWORD, NEW)
    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]


async def test_the_last_of_concurrent_changes_wins(graph: Graph, another: Open, raw: Redis) -> None:
    """The last change in the log wins in any order of projection, and ends the session that the other one started."""
    [alice] = await people(graph, "alice")
    slow = await another()
    stop = Stop(slow.store, runs("settle_secret"))
    first = asyncio.create_task(slow.passwords.change(alice, PASSWORD, NEW))
    await stop.reached.wait()

    session = await graph.passwords.change(alice, PASSWORD, NEWER)
    stop.resume()

    with pytest.raises(Rejected) as rejected:
        await first
    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
    assert [info.token_id for info in await graph.sessions.live_sessions(alice)] == [session.id]
    assert [await works(graph, password) for password in (NEWER, NEW, PASSWORD)] == [True, False, False]
    assert await raw.keys("login:*:next:*") == []


async def test_a_log_in_with_the_old_password_starts_no_session(graph: Graph, another: Open) -> None:
    """If the password was checked before the change, no session starts after it. Earlier sessions end."""
    [alice] = await people(graph, "alice")
    slow = await another()
    stop = Stop(slow.store, runs("settle_secret"))
    changing = asyncio.create_task(slow.passwords.change(alice, PASSWORD, NEW))
    await stop.reached.wait()
    _, version = await graph.users.log_in("alice", PASSWORD)
    early = await graph.sessions.start(alice, None, version)

    stop.resume()
    session = await changing

    assert not await graph.sessions.is_live(alice, early.id)
    with pytest.raises(Rejected) as rejected:
        await graph.sessions.start(alice, None, version)
    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
    assert [info.token_id for info in await graph.sessions.live_sessions(alice)] == [session.id]


async def test_a_log_in_with_the_new_password_survives_the_change(graph: Graph, another: Open) -> None:
    """The new session stays, although the sessions of the old password have not ended yet."""
    [alice] = await people(graph, "alice")
    slow = await another()
    stop = Stop(slow.store, runs("end_old_sessions"))
    changing = asyncio.create_task(slow.passwords.change(alice, PASSWORD, NEW))
    await stop.reached.wait()
    _, version = await graph.users.log_in("alice", NEW)
    early = await graph.sessions.start(alice, None, version)

    stop.resume()
    session = await changing

    assert {info.token_id for info in await graph.sessions.live_sessions(alice)} == {early.id, session.id}


async def test_a_repeated_projection_ends_no_later_session(graph: Graph) -> None:
    """A repeated projection of this change, or of an earlier one, ends no later session."""
    [alice] = await people(graph, "alice")
    await graph.passwords.change(alice, PASSWORD, NEW)
    await graph.passwords.change(alice, NEW, NEWER)
    user, version = await graph.users.log_in("alice", NEWER)
    session, dev = await graph.sessions.start(user.id, None, version), await graph.sessions.start(user.id)
    events = [event async for event in graph.log.replay(alice, await graph.log.last())]

    await graph.projections.project([event for event in events if isinstance(event.body, PasswordChanged)], Mode.WORKER)
    await graph.worker().drain()

    assert await graph.sessions.are_live([(alice, session.id), (alice, dev.id)]) == [True, True]
    assert await works(graph, NEWER)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("exchange", range(4, 9))
async def test_a_crash_leaves_one_password(graph: Graph, another: Open, exchange: int, after: bool) -> None:
    """After the worker has run, either the old password and its sessions are valid, or only the new password is."""
    [alice] = await people(graph, "alice")
    old = await graph.sessions.start(alice)
    dying = await another()
    death = Death(dying.store, exchange, after=after)
    with suppress(Crashed, StoreUnavailable):
        await dying.passwords.change(alice, PASSWORD, NEW)
    assert death.happened

    await graph.worker().drain()

    is_changed = await works(graph, NEW)
    assert await works(graph, PASSWORD) is not is_changed
    assert await graph.sessions.is_live(alice, old.id) is not is_changed
    await archive_log(graph)
    report = await graph.repair().run(correct=False)
    assert not report.found


async def test_a_change_whose_hash_has_expired_keeps_the_password(graph: Graph) -> None:
    """The change was never projected. The sessions end nevertheless, and log-ins work."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    number = await graph.log.last() + 1

    await graph.projections.project([Event(number, PasswordChanged(alice, "alice", "nonce"))], Mode.WORKER)

    assert not await graph.sessions.is_live(alice, session.id)
    user, version = await graph.users.log_in("alice", PASSWORD)
    assert version == number
    assert await graph.sessions.start(user.id, None, version)
