"""When a worker is killed, another one takes over its events within five seconds."""

import asyncio
import os
import signal
import sys
from datetime import timedelta

from graph import Graph
from graph.log.events import Followed
from graph.worker.worker import CLAIM_SECONDS, LEASE
from tests.graph.worker.unprojected import append, pending
from tests.support.graph_worlds import background, people, reached

HANGING_WORKER = """
import asyncio, sys
from functools import partial
from tests.support.graphs import CHEAP, open_graph
from tests.support.stores import HookedStore, Stop, runs

async def main():
    graph = await open_graph(sys.argv[1], CHEAP, partial(HookedStore, single_slot=True))
    Stop(graph.store, runs("add_follows"))
    await graph.worker().run()

asyncio.run(main())
"""


async def test_the_events_of_a_killed_worker_are_taken_over(graph: Graph, store_url: str) -> None:
    """Another worker takes over the events after its own lease time, which is short here."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HANGING_WORKER, store_url)
    [number] = await append(graph, Followed(alice, bob))
    await reached(lambda: pending(graph), 1)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()

    async with background(graph.worker(timedelta(seconds=0.2)).run()):
        await reached(graph.log.watermark, number)


def test_events_are_taken_over_within_five_seconds() -> None:
    """The lease and the longest pause between checks for expired leases add up to less than five seconds."""
    assert LEASE + timedelta(seconds=CLAIM_SECONDS) < timedelta(seconds=5)
