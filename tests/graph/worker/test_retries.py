"""Retries of entries that meet an outage: how often, how many at a time, and for how long."""

import asyncio
from collections.abc import Sequence

from graph import Graph
from graph.errors import StoreUnavailable
from graph.home.pacing import Pace, Pacer
from graph.worker.retries import FIRST_SECONDS, GROUPS, LONGEST_SECONDS, Backoff, Retries, Work
from tests.graph.worker.test_consumer import LONG_MS, consumer, taken
from tests.support.graph_worlds import PATIENCE


async def fail(_: Pace) -> None:
    raise StoreUnavailable("an outage of the test")


async def acknowledge(_: Sequence[str]) -> None:
    return


async def retries(graph: Graph, count: int, lease_ms: int = LONG_MS) -> tuple[Retries, list[Work]]:
    """Return retries without entries, and work that never succeeds."""
    holder = consumer(graph, lease_ms, batch=count)
    works = [Work(entry, fail) for entry in await taken(graph, holder, count)]
    return Retries(holder, Pacer(graph.store), acknowledge, count), works


def test_delays_double_up_to_a_limit_and_differ() -> None:
    """The retries of several workers must not coincide."""
    backoffs = [Backoff() for _ in range(20)]
    for nth in range(12):
        most = min(LONGEST_SECONDS, FIRST_SECONDS * 2**nth)
        delays = [backoff.next() for backoff in backoffs]
        assert most / 2 <= min(delays) < max(delays) <= most


async def test_entries_that_fail_one_after_the_other_share_groups(graph: Graph) -> None:
    """If there are enough of them, the worker takes no other entries."""
    retrying, works = await retries(graph, 2 * GROUPS)
    for work in works:
        assert not retrying.is_full
        await retrying.add([work])
    assert len(retrying._groups) == GROUPS
    assert len(retrying) == len(works)
    assert retrying.is_full
    await retrying.close()


async def test_entries_without_success_are_given_up(graph: Graph) -> None:
    """The worker gives up entries after three leases, and then holds none of them."""
    retrying, works = await retries(graph, 2, lease_ms=20)
    await retrying.add(works)
    async with asyncio.timeout(PATIENCE):
        while len(retrying):  # noqa: ASYNC110 - the tasks send no notification
            await asyncio.sleep(0.01)
