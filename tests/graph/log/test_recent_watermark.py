"""The watermark in the memory of a process: its cost, its age, and the effect of an outage."""

import asyncio
import time

import pytest

from graph import Graph, keys
from graph.errors import StoreUnavailable
from tests.support.graph_worlds import PATIENCE, Open, counted, people, posts, reached
from tests.support.stores import Fault, Stop, sends

READ = sends("GET", keys.WATERMARK)


@pytest.fixture(autouse=True)
def slow_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the first answer as much time as a busy machine needs."""
    monkeypatch.setattr("graph.log.log.FIRST_ANSWER_SECONDS", 60)


async def test_the_watermark_in_memory_takes_no_round_trip(graph: Graph) -> None:
    """Only the first use waits for the store."""
    await people(graph, "alice")
    last = await graph.worker().drain()
    graph.log._read_at = -1e9

    assert await graph.log.recent_watermark() == last
    async with counted(graph) as cost:
        assert [await graph.log.recent_watermark() for _ in range(50)] == 50 * [last]
        await asyncio.sleep(0.01)  # reads that were started in the background would be sent now
    assert cost.commands == 0


async def test_concurrent_first_uses_read_once(graph: Graph) -> None:
    async with counted(graph) as cost:
        await asyncio.gather(*(graph.log.recent_watermark() for _ in range(50)))
    assert cost.round_trips == 1


async def test_the_watermark_is_refreshed_in_the_background(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call returns the known watermark, and a later call the new one."""
    monkeypatch.setattr("graph.log.log.REFRESH_SECONDS", 0.05)
    reading = await another()
    [alice] = await people(graph, "alice")
    before = await graph.worker().drain()
    assert await reading.log.recent_watermark() == before
    await posts(graph, alice, "hi")
    last = await graph.worker().drain()
    await asyncio.sleep(0.06)

    assert await reading.log.recent_watermark() == before
    await reached(reading.log.recent_watermark, last)


async def test_an_outage_leaves_the_last_watermark(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first call waits, whether the log's shard refuses or hangs. Then the watermark is refreshed again."""
    monkeypatch.setattr("graph.log.log.REFRESH_SECONDS", 0.01)
    monkeypatch.setattr("graph.log.log.STALE_SECONDS", 0.02)
    reading = await another()
    [alice] = await people(graph, "alice")
    before = await graph.worker().drain()
    assert await reading.log.recent_watermark() == before
    await posts(graph, alice, "hi")
    last = await graph.worker().drain()
    fault = Fault(reading.store, READ, times=10**6)
    await asyncio.sleep(0.03)
    for _ in range(10):
        assert await reading.log.recent_watermark() == before
        await asyncio.sleep(0.02)
    silence = Stop(reading.store, READ)
    fault.left = 0
    await asyncio.sleep(0.03)
    await reading.log.recent_watermark()
    await silence.reached.wait()

    started = time.monotonic()
    for _ in range(100):
        assert await reading.log.recent_watermark() == before
    assert time.monotonic() - started < PATIENCE

    silence.resume()
    await reached(reading.log.recent_watermark, last)


async def test_during_an_outage_the_store_is_asked_once_a_second(another: Open) -> None:
    reading = await another()
    fault = Fault(reading.store, READ, times=100)

    for _ in range(20):
        await reading.log.recent_watermark()
        await asyncio.sleep(0.005)

    assert fault.left == 99


async def test_the_watermark_is_zero_while_the_store_has_never_answered(another: Open) -> None:
    """A cursor of 0 replays the whole log."""
    reading = await another()
    Fault(reading.store, READ, times=10**6)

    assert [await reading.log.recent_watermark() for _ in range(3)] == [0, 0, 0]
    with pytest.raises(StoreUnavailable):
        await reading.log.watermark()


async def test_a_cancelled_use_does_not_affect_others(another: Open) -> None:
    reading = await another()
    stop = Stop(reading.store, READ, after=True)
    one, other = (asyncio.ensure_future(reading.log.recent_watermark()) for _ in range(2))
    await stop.reached.wait()
    one.cancel()
    await asyncio.sleep(0)
    stop.resume()

    assert await other == 0
    assert reading.log._answers


async def test_after_a_failover_the_watermark_goes_back(graph: Graph) -> None:
    """A cursor from the lost end of the log would hide the events that replace that end."""
    await people(graph, "alice")
    last = await graph.worker().drain()
    await graph.log.watermark()
    await graph.store.run("SET", keys.WATERMARK, last - 5)

    await graph.log.watermark()

    assert await graph.log.recent_watermark() == last - 5
