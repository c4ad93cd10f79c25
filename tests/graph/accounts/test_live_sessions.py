"""The sessions that users see: times and user agents, and ending one of them."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.accounts.sessions import MAX_SESSIONS, MAX_USER_AGENT, USE_SECONDS, clean_user_agent
from graph.errors import ProblemCode, Rejected
from graph.log.events import SessionsEnded
from graph.model import Session
from tests.support.graph_worlds import Open, codes, counted, people, reached


async def set_age(raw: Redis, user: int, session: str, seconds: int) -> int:
    """Set the age of a session's creation and last use, and return that time."""
    then = int(time.time()) - seconds
    await raw.hset(keys.session_details(user), mapping={f"{session}:created": then, f"{session}:used": then})
    return then


async def fields_of(raw: Redis, user: int) -> set[str]:
    """Return the names of the fields with the details of a user's sessions."""
    return {str(field) for field in await raw.hkeys(keys.session_details(user))}


async def used(graph: Graph, user: int) -> int:
    """Return the time at which the user's only session was last used."""
    [info] = await graph.sessions.live_sessions(user)
    return int(info.last_used_at.timestamp())


async def test_sessions_are_listed_newest_first(graph: Graph, raw: Redis) -> None:
    """The list has times and user agents, and takes 1 round trip. Expired and others' sessions are left out."""
    alice, bob = await people(graph, "alice", "bob")
    phone, laptop = await graph.sessions.start(alice, "Phone 1.0"), await graph.sessions.start(alice)
    await graph.sessions.start(bob, "Bob's")
    then = await set_age(raw, alice, phone.id, 100)
    await raw.hset(keys.sessions(alice), "old", int(time.time()) - 1)

    async with counted(graph) as cost:
        found = await graph.sessions.live_sessions(alice)

    assert cost.round_trips == 1
    assert [(info.token_id, info.user_agent) for info in found] == [(laptop.id, None), (phone.id, "Phone 1.0")]
    at = datetime.fromtimestamp(then, UTC)
    assert (found[1].created_at, found[1].last_used_at) == (at, at)
    assert abs(found[0].created_at - datetime.now(UTC)) < timedelta(seconds=5)
    assert len({info.id for info in found}) == 2
    assert await graph.sessions.live_sessions(7) == []


async def test_an_id_does_not_reveal_the_session(graph: Graph) -> None:
    """The id is a stable number of 53 bits."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)

    [[first], [again]] = [await graph.sessions.live_sessions(alice) for _ in range(2)]

    assert first.id == again.id < 2**53
    assert str(first.id) not in session.id


async def test_a_session_without_details_has_times(graph: Graph, raw: Redis) -> None:
    """An older version started the session: its start is its expiry minus its lifetime."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice, "Phone")
    await raw.delete(keys.session_details(alice))

    [info] = await graph.sessions.live_sessions(alice)

    since = session.expires_at - timedelta(days=30)
    assert info == Session(info.id, session.id, since, since, None)


async def test_a_use_is_noted_once_an_hour(graph: Graph, another: Open, raw: Redis) -> None:
    """The note does not delay the check. Every process notes uses, and the latest time is kept."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    then = await set_age(raw, alice, session.id, USE_SECONDS + 1)

    async with counted(graph) as cost:
        assert await graph.sessions.is_live(alice, session.id)
        await asyncio.sleep(0.05)
    assert cost.round_trips == 1
    assert await used(graph, alice) == then

    other = await another()
    async with counted(other) as cost:
        assert await other.sessions.is_live(alice, session.id)
    assert cost.round_trips == 1
    await reached(lambda: used(graph, alice), then + USE_SECONDS)

    third = await another()
    noted = await set_age(raw, alice, session.id, USE_SECONDS - 60)
    assert await third.sessions.are_live([(alice, session.id)]) == [True]
    await asyncio.sleep(0.05)
    assert await used(third, alice) == noted


async def test_the_use_of_an_ended_session_is_not_noted(graph: Graph, another: Open, raw: Redis) -> None:
    """No use is noted, even if the session ends between the check and the note."""
    [alice] = await people(graph, "alice")
    session, stays = await graph.sessions.start(alice), await graph.sessions.start(alice)
    other = await another()

    await graph.sessions.end(alice, session.id)
    assert not await other.sessions.is_live(alice, session.id)
    other.sessions._note_use(alice, session.id)
    await asyncio.sleep(0.05)

    kept = {field.partition(":")[0] for field in await fields_of(raw, alice)}
    assert kept == {stays.id}


async def test_the_end_of_a_session_removes_its_details(graph: Graph, raw: Redis) -> None:
    [alice] = await people(graph, "alice")
    sessions = [await graph.sessions.start(alice, f"Phone {n}") for n in range(3)]

    await graph.sessions.end(alice, sessions[0].id)

    details = ("created", "used", "agent")  # the password was not changed
    fields = {f"{session.id}:{name}" for session in sessions[1:] for name in details}
    assert await fields_of(raw, alice) == fields


async def test_a_log_in_removes_the_details_of_sessions_that_are_gone(graph: Graph, raw: Redis) -> None:
    """The details of sessions that expired, were replaced, or were ended by an older version are removed."""
    [alice] = await people(graph, "alice")
    now = int(time.time())
    await raw.hset(keys.sessions(alice), mapping={f"s{n}": now + 100 + n for n in range(MAX_SESSIONS)})
    await raw.hset(keys.sessions(alice), "old", 1)
    for name in ("s0", "s1", "old", "unknown"):
        await set_age(raw, alice, name, 50)

    new = await graph.sessions.start(alice)

    kept = {field.partition(":")[0] for field in await fields_of(raw, alice)}
    assert kept == {"s1", new.id}


async def test_details_live_as_long_as_the_sessions(graph: Graph, another: Open, raw: Redis) -> None:
    """Details do not expire before the session, even if it is extended or was started by an older version."""
    short = await another(session_ttl=timedelta(hours=1))
    alice, bob = await people(graph, "alice", "bob")
    session = await short.sessions.start(alice)
    assert 0 < await raw.ttl(keys.session_details(alice)) <= 3600

    assert await graph.sessions.renew(alice, session.id, session.expires_at)

    expires_at = await raw.expiretime(keys.sessions(alice))
    assert await raw.expiretime(keys.session_details(alice)) == expires_at > time.time() + 29 * 86400
    old = await short.sessions.start(bob)
    await raw.delete(keys.session_details(bob))
    assert await graph.sessions.is_live(bob, old.id)
    await reached(lambda: raw.exists(keys.session_details(bob)), 1)
    assert 0 < await raw.ttl(keys.session_details(bob)) <= 3600


async def test_a_session_can_be_ended_by_its_id(graph: Graph) -> None:
    """Ending a session by its id takes 3 round trips. Other sessions stay."""
    [alice] = await people(graph, "alice")
    phone, laptop = await graph.sessions.start(alice), await graph.sessions.start(alice)
    number = {info.token_id: info.id for info in await graph.sessions.live_sessions(alice)}[phone.id]

    async with counted(graph) as cost:
        assert await graph.sessions.end_by_id(alice, number) == phone.id

    assert cost.round_trips == 3
    assert [info.token_id for info in await graph.sessions.live_sessions(alice)] == [laptop.id]
    last = await graph.log.get(await graph.log.last())
    assert last is not None
    assert last.body == SessionsEnded(alice, [phone.id])


async def test_other_sessions_cannot_be_ended(graph: Graph) -> None:
    """The ids of others' sessions, ended sessions and unknown sessions are refused. Nothing is written."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.sessions.start(bob)
    [bobs] = await graph.sessions.live_sessions(bob)
    session = await graph.sessions.start(alice)
    [ended] = await graph.sessions.live_sessions(alice)
    await graph.sessions.end(alice, session.id)
    last = await graph.log.last()

    for number in (bobs.id, ended.id, 1):
        with pytest.raises(Rejected) as rejected:
            await graph.sessions.end_by_id(alice, number)
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]

    assert await graph.log.last() == last


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("  a \t\r\n b\x00c\x1b[31m", "a b c [31m"),
        ("ä€\ud800\u202e", ""),
        ("", ""),
        ("x" * 10_000, "x" * MAX_USER_AGENT),
        ("x" * (MAX_USER_AGENT - 1) + " y", "x" * (MAX_USER_AGENT - 1)),
    ],
)
def test_a_user_agent_is_cleaned(given: str, kept: str) -> None:
    """Only printable ASCII characters are kept, and the length is limited."""
    assert clean_user_agent(given) == kept
