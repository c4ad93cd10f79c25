"""Housekeeping: which events the log keeps, and which may be removed."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.encoding import encode
from graph.log.events import Followed
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER, number_at
from graph.worker.recovery import LAG
from tests.graph.worker.unprojected import append
from tests.support.graph_worlds import Open, archive_log, many_posts, people, posts


async def logged(graph: Graph) -> list[int]:
    return [event.number async for event in graph.log.replay(0, MAX_NUMBER)]


async def test_events_above_the_watermark_stay_in_the_log(another: Open) -> None:
    """Events stay whatever the retention is."""
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    await archive_log(graph)
    await graph.housekeeping.tidy()
    assert await logged(graph) == [alice, bob]
    watermark = await graph.worker().drain()
    await archive_log(graph)
    number, *_ = later = await append(graph, Followed(alice, bob), Followed(bob, alice))
    await archive_log(graph)

    await graph.housekeeping.tidy()

    assert await logged(graph) == later
    assert await graph.log.trimmed() == watermark < number
    assert await graph.worker().drain() == later[-1]
    await archive_log(graph)
    await graph.housekeeping.tidy()
    assert await graph.log.trimmed() == later[-1]
    assert await graph.store.run("XLEN", "{log}") == 0


async def test_events_that_are_not_archived_stay_in_the_log(another: Open, raw: Redis) -> None:
    """Events stay whatever the retention and the limit. The trimmed number is that of a removed event."""
    graph = await another(log_retention=timedelta(0), log_limit=4)
    first, *later = await people(graph, "alice", "bob", "carol")
    await graph.worker().drain()

    await graph.housekeeping.tidy()
    assert await logged(graph) == [first, *later]
    await raw.set(keys.ARCHIVED, later[0] - 1)
    await graph.housekeeping.tidy()

    assert await logged(graph) == later
    assert await graph.log.trimmed() == first


async def test_events_within_the_retention_stay_in_the_log(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    written = await many_posts(graph, alice, 10)
    await graph.worker().drain()
    await archive_log(graph)

    await graph.housekeeping.tidy()

    assert await logged(graph) == [alice, *written]
    assert await graph.log.trimmed() == 0


@pytest.mark.parametrize("excess", [1, 20, 41])
async def test_half_the_limit_is_kept_of_events_within_the_retention(
    another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch, excess: int
) -> None:
    """The log must have room for an outage of the archive. Events are removed in batches of 20."""
    monkeypatch.setattr("graph.worker.housekeeping.TRIM_BATCH", 20)
    graph = await another(log_limit=200)
    written = await log_before(raw, LAG + timedelta(minutes=1), 100 + excess)
    await graph.worker().drain()
    await archive_log(graph)

    await graph.housekeeping.tidy()

    assert await logged(graph) == written[excess:]
    assert await graph.log.trimmed() == written[excess - 1]


async def test_what_a_recovery_reads_again_is_kept_up_to_three_quarters_of_the_limit(another: Open, raw: Redis) -> None:
    graph = await another(log_limit=20)
    old = await log_before(raw, LAG + timedelta(minutes=1), 2)
    recent = await log_before(raw, LAG - timedelta(minutes=1), 15)
    await graph.worker().drain()
    await archive_log(graph)

    await graph.housekeeping.tidy()
    assert await logged(graph) == recent
    recent += await append(graph, Followed(1, 2), Followed(1, 3))
    await graph.worker().drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()

    assert await logged(graph) == recent[2:]
    assert old[-1] < await graph.log.trimmed() == recent[1]


async def log_before(raw: Redis, age: timedelta, events: int) -> list[int]:
    """Write follows to the log that are this old, and return their numbers."""
    first = number_at(datetime.now(UTC) - age)
    numbers = [first + n for n in range(events)]
    async with raw.pipeline(transaction=False) as pipeline:
        for number in numbers:
            words = zip(("kind", "actor", "subject", "body"), encode(Followed(1, number)), strict=True)
            pipeline.xadd(keys.LOG, {name: str(word) for name, word in words}, entry_id(number))
        await pipeline.execute()
    return numbers


async def test_the_text_of_a_deleted_post_stays_until_the_deletion_is_archived(graph: Graph) -> None:
    """The archiver reads the log in order, the post before its deletion."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "regret")
    await archive_log(graph)
    await graph.posts.delete(alice, post)
    await graph.worker().drain()

    await graph.housekeeping.tidy()

    assert await graph.log.get(post) is not None
    await archive_log(graph)
    await graph.housekeeping.tidy()
    assert await graph.log.get(post) is None
