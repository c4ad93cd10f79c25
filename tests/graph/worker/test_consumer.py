"""The entries that a consumer claims, and the deliveries that count."""

import asyncio
import secrets

import pytest

from graph import Graph, keys
from graph.home.pacing import Pacer
from graph.log.events import ProfileChanged
from graph.log.numbers import entry_id
from graph.worker.consumer import GROUP, Consumer, EntryLease, create_groups
from graph.worker.retries import LeasePace
from tests.support.graph_worlds import append_events

LONG_MS = 3_600_000


def consumer(graph: Graph, lease_ms: int = 0, batch: int = 10) -> Consumer:
    """Return a new consumer. With a lease of 0, any consumer may claim its entries at once."""
    return Consumer(graph.store, graph.dead_letters, keys.LOG, secrets.token_hex(4), batch=batch, lease_ms=lease_ms)


async def taken(graph: Graph, by: Consumer, count: int = 1) -> list[str]:
    """Let a consumer read new entries, and return their ids."""
    await create_groups(graph.store)
    events = await append_events(graph, [ProfileChanged(1, "text")] * count)
    await by.read(graph.store)
    return [entry_id(event.number) for event in events]


async def claimed(by: Consumer) -> list[str]:
    return [entry for entry, _ in await by.claim()]


async def deliveries(graph: Graph) -> list[int]:
    return [row[3] for row in await graph.store.run("XPENDING", keys.LOG, GROUP, "-", "+", 100)]


async def test_entries_that_a_consumer_holds_are_not_claimed_again(graph: Graph) -> None:
    """Entries after them are claimed."""
    one, other = consumer(graph, batch=1), consumer(graph)
    first, second = await taken(graph, other, 2)

    async with one.lease([first]):
        assert await claimed(one) == [second]
    assert await claimed(one) == [first]


async def test_entries_that_a_consumer_gave_up_are_left_to_others(graph: Graph) -> None:
    one, other = consumer(graph, LONG_MS), consumer(graph, LONG_MS)
    entries = await taken(graph, one)

    await one.give_up(entries)

    assert await deliveries(graph) == [1]
    assert await claimed(one) == []
    assert await claimed(other) == entries


async def test_only_this_delivery_is_not_counted_when_entries_are_released(graph: Graph) -> None:
    """Earlier deliveries count."""
    one, other = consumer(graph), consumer(graph, LONG_MS)
    entries = await taken(graph, one)
    assert await claimed(other) == []
    assert await claimed(one) == entries
    assert await deliveries(graph) == [2]

    await one.release(entries)

    assert await deliveries(graph) == [1]
    assert await claimed(other) == entries


@pytest.mark.parametrize(("is_counted", "left"), [(True, 0), (False, 1)])
async def test_a_cancelled_delivery_is_not_counted(graph: Graph, is_counted: bool, left: int) -> None:
    """If the delivery was not counted in the first place, nothing is subtracted."""
    one = consumer(graph, LONG_MS)
    entries = await taken(graph, one)

    with pytest.raises(asyncio.CancelledError):
        async with one.lease(entries, is_counted=is_counted):
            raise asyncio.CancelledError

    assert await deliveries(graph) == [left]
    assert await claimed(consumer(graph, LONG_MS)) == entries


async def test_entries_that_another_consumer_has_claimed_stay_with_it(graph: Graph) -> None:
    one, other = consumer(graph), consumer(graph)
    entries = await taken(graph, one)
    assert await claimed(other) == entries

    assert not await one.uncount(entries)

    assert await deliveries(graph) == [2]


async def test_a_lease_without_progress_ends_for_good() -> None:
    """Another consumer may have the entries by then."""
    lease = EntryLease(["1-0"], 0.05)
    await asyncio.sleep(0.06)
    assert lease.is_stale
    lease.progress()
    assert lease.is_stale


async def test_a_delivered_chunk_is_progress(graph: Graph) -> None:
    lease = EntryLease(["1-0"], 60)
    lease._progress_at -= 100
    LeasePace(Pacer(graph.store), lease).after([])
    assert not lease.is_stale
