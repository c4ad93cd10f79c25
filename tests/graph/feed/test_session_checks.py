"""Tests of the single check of a subscription's session, and of the watch that follows it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from graph import Graph, keys
from graph.errors import SessionOver
from graph.feed.updates import Checkpoint, GapReason, HomeUpdate
from graph.log.numbers import entry_id
from graph.store.commands import Command
from tests.graph.feed.watching import Watcher, feed_of
from tests.support.graph_worlds import PATIENCE, Open, people, posts
from tests.support.stores import Fault, HookedStore, Stop, sends


def session_reads(graph: Graph, user: int) -> list[Command]:
    """Return a list to which later reads of a user's sessions are added."""
    reads: list[Command] = []
    assert isinstance(graph.store, HookedStore)

    async def record(commands: Sequence[Command]) -> None:
        reads.extend(filter(sends("HGET", keys.sessions(user)), commands))

    graph.store.before.append(record)
    return reads


async def consume(stream: AsyncGenerator[HomeUpdate]) -> None:
    """Take updates until the stream ends."""
    async for _ in stream:
        pass


@pytest.mark.parametrize("stopped_at", ["watermark", "session"])
async def test_a_session_that_ends_while_its_stream_joins_ends_it(graph: Graph, another: Open, stopped_at: str) -> None:
    """The log-out is committed before the check or right after it."""
    process = await another()
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    command = ("GET", keys.WATERMARK) if stopped_at == "watermark" else ("HGET", keys.sessions(alice))
    async with feed_of(process, checkpoint_seconds=60) as feed:
        stop = Stop(process.store, sends(*command), after=True)
        consuming = asyncio.create_task(consume(feed.home(alice, None, session.id)))
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        await graph.sessions.end(alice, session.id)
        stop.resume()
        with pytest.raises(SessionOver):
            await asyncio.wait_for(consuming, PATIENCE)


async def test_a_slow_client_that_joins_again_is_not_checked_again(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1000)
    monkeypatch.setattr("graph.feed.feed.THROTTLE_SECONDS", 0)
    process = await another()
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    reads = session_reads(process, alice)
    async with feed_of(process, checkpoint_seconds=60) as feed:
        watcher = Watcher(feed.home(alice, None, session.id))
        await watcher.next()
        assert len(reads) == 1
        first = asyncio.ensure_future(watcher.next())
        await posts(graph, alice, "first")
        await first
        await posts(graph, alice, *"12345678")
        async with asyncio.timeout(PATIENCE):
            while not feed.cut_off:  # noqa: ASYNC110 - nothing signals this
                await asyncio.sleep(0.01)
        gap, checkpoint = await watcher.next(), await watcher.next()
        assert gap.reason is GapReason.SLOW_CONSUMER
        assert isinstance(checkpoint, Checkpoint)
        assert len(reads) == 1


async def test_a_stream_whose_events_were_lost_is_checked_again(graph: Graph, another: Open) -> None:
    """A log-out may be among the lost events."""
    process = await another()
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with feed_of(process, checkpoint_seconds=60) as feed:
        watcher = Watcher(feed.home(alice, None, session.id))
        await watcher.next()
        waiting = asyncio.ensure_future(watcher.next())
        fault = Fault(process.store, sends("XREAD"), times=10**6)
        await posts(graph, alice, "wakes the reader")
        await waiting
        waiting = asyncio.ensure_future(watcher.next())
        await graph.sessions.end(alice, session.id)
        lost = await graph.log.last()
        [left] = await posts(graph, alice, "left")
        await graph.store.send([("SET", keys.TRIMMED, lost), ("XTRIM", keys.LOG, "MINID", entry_id(left))])
        fault.left = 0
        with pytest.raises(SessionOver):
            await waiting
