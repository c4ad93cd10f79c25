"""Sessions: start, expiry and end."""

import time
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from graph import Graph
from graph.accounts.sessions import MAX_SESSIONS
from graph.log.events import SessionsEnded
from tests.support.graph_worlds import Open, counted, people


async def test_a_session_is_live_for_thirty_days(graph: Graph) -> None:
    """A session is live for its whole lifetime. Checking it takes 1 round trip."""
    [alice] = await people(graph, "alice")

    session = await graph.sessions.start(alice)

    assert session.user == alice
    assert abs(session.expires_at - datetime.now(UTC) - timedelta(days=30)) < timedelta(seconds=5)
    async with counted(graph) as cost:
        assert await graph.sessions.is_live(alice, session.id)
    assert cost.round_trips == 1


async def test_a_session_belongs_to_one_user(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    session = await graph.sessions.start(alice)

    assert not await graph.sessions.is_live(bob, session.id)
    assert not await graph.sessions.is_live(alice, "")
    assert not await graph.sessions.is_live(alice, session.id + "x")


async def test_logging_out_ends_one_session_at_once(graph: Graph, another: Open) -> None:
    """The session ends in every process. Other sessions stay live."""
    [alice] = await people(graph, "alice")
    phone, laptop = await graph.sessions.start(alice), await graph.sessions.start(alice)
    other = await another()

    await graph.sessions.end(alice, phone.id)

    assert not await other.sessions.is_live(alice, phone.id)
    assert await other.sessions.is_live(alice, laptop.id)
    await graph.sessions.end(alice, phone.id)


async def test_a_user_cannot_end_the_session_of_another(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    session = await graph.sessions.start(alice)

    await graph.sessions.end(bob, session.id)
    await graph.worker().drain()

    assert await graph.sessions.is_live(alice, session.id)


async def test_all_sessions_of_a_user_can_be_ended(graph: Graph) -> None:
    """One event ends all sessions. Sessions started later are live."""
    alice, bob = await people(graph, "alice", "bob")
    sessions = [await graph.sessions.start(alice) for _ in range(3)]
    bobs = await graph.sessions.start(bob)

    await graph.sessions.end(alice)

    assert not any([await graph.sessions.is_live(alice, session.id) for session in sessions])
    assert await graph.sessions.is_live(bob, bobs.id)
    [event] = [f async for f in graph.log.replay(0, await graph.log.last()) if isinstance(f.body, SessionsEnded)]
    assert event.body == SessionsEnded(alice, sorted(session.id for session in sessions))
    new = await graph.sessions.start(alice)
    await graph.worker().drain()
    assert await graph.sessions.is_live(alice, new.id)


async def test_ending_no_session_writes_nothing(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    last = await graph.log.last()

    await graph.sessions.end(alice)

    assert await graph.log.last() == last


async def test_an_expired_session_is_not_live(graph: Graph, raw: Redis) -> None:
    """An expired session is not live, even if its record still exists."""
    [alice] = await people(graph, "alice")
    await raw.hset(f"session:{{{alice}}}", "old", str(int(time.time()) - 1))

    assert not await graph.sessions.is_live(alice, "old")


async def test_a_session_without_a_lifetime_is_never_live(another: Open) -> None:
    graph = await another(session_ttl=timedelta(0))
    [alice] = await people(graph, "alice")

    session = await graph.sessions.start(alice)

    assert not await graph.sessions.is_live(alice, session.id)


async def test_expired_sessions_are_removed_at_log_in(graph: Graph, raw: Redis) -> None:
    [alice] = await people(graph, "alice")
    key = f"session:{{{alice}}}"
    await raw.hset(key, mapping={f"old {n}": int(time.time()) - n for n in range(50)})

    session = await graph.sessions.start(alice)

    assert await raw.hkeys(key) == [session.id]


async def test_beyond_a_hundred_sessions_the_first_to_expire_ends(graph: Graph, raw: Redis) -> None:
    [alice] = await people(graph, "alice")
    key, now = f"session:{{{alice}}}", int(time.time())
    await raw.hset(key, mapping={f"old {n}": now + 100 + n for n in range(MAX_SESSIONS)})

    new = await graph.sessions.start(alice)

    assert await raw.hlen(key) == MAX_SESSIONS
    assert await graph.sessions.is_live(alice, new.id)
    assert not await graph.sessions.is_live(alice, "old 0")
    assert await graph.sessions.is_live(alice, "old 1")


async def test_a_short_session_does_not_shorten_a_long_one(another: Open, raw: Redis) -> None:
    """The key of a user's sessions expires with the last of them."""
    long, short = await another(session_ttl=timedelta(days=30)), await another(session_ttl=timedelta(hours=1))
    [alice] = await people(long, "alice")
    key = f"session:{{{alice}}}"

    await short.sessions.start(alice)
    assert 0 < await raw.ttl(key) <= 3600
    session = await long.sessions.start(alice)
    await short.sessions.start(alice)

    assert await raw.ttl(key) > 29 * 86400
    assert await short.sessions.is_live(alice, session.id)
