"""Housekeeping: retention and the watermark."""

from datetime import timedelta

from graph import Graph
from graph.log.events import Followed
from graph.model import MAX_NUMBER
from tests.graph.worker.unprojected import append
from tests.support.graph_worlds import Open, many_posts, people


async def test_events_above_the_watermark_stay_in_the_log(another: Open) -> None:
    """Whatever the retention."""
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    await graph.housekeeping.tidy()
    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == [alice, bob]
    watermark = await graph.worker().drain()
    number, *_ = later = await append(graph, Followed(alice, bob), Followed(bob, alice))

    await graph.housekeeping.tidy()

    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == later
    assert await graph.log.trimmed() == watermark < number
    assert await graph.worker().drain() == later[-1]
    await graph.housekeeping.tidy()
    assert await graph.log.trimmed() == later[-1]
    assert await graph.store.run("XLEN", "{log}") == 0


async def test_events_within_the_retention_stay_in_the_log(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    written = await many_posts(graph, alice, 10)
    worker = graph.worker()
    await worker.drain()

    await graph.housekeeping.tidy()

    assert [event.number async for event in graph.log.replay(0, MAX_NUMBER)] == [alice, *written]
    assert await graph.log.trimmed() == 0
