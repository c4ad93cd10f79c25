"""Worker processes, each of which runs the graph's worker.

They are forked from one process that has imported everything, so that they start at once.
"""

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess

from benchmarks.stores import open_graph, raw
from graph import Tuning
from graph.home.pacing import Pace, Pacer

TIMEOUT_SECONDS = 20.0  # seconds that starting or ending a worker may take
POLL_SECONDS = 0.02
SETTLED_POLLS = 5


@contextlib.contextmanager
def workers(url: str, count: int, push_limit: float = float("inf"), *, paced: bool = True) -> Iterator[list[int]]:
    """Run worker processes for the duration of the block. Yield their ids when all of them wait for the log."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "benchmarks.workers"])
    processes = [context.Process(target=work, args=(url, push_limit, paced), daemon=True) for _ in range(count)]
    try:
        for process in processes:
            process.start()
        if processes:
            wait_for(processes, url)
        yield [process.pid for process in processes if process.pid]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(TIMEOUT_SECONDS)


def wait_for(processes: Sequence[BaseProcess], url: str) -> None:
    """Wait until at least one client per process is blocked on the store's streams, and their number is steady."""
    until, settled, before = time.monotonic() + TIMEOUT_SECONDS, 0, 0
    with raw(url) as client:
        while settled < SETTLED_POLLS:
            if time.monotonic() > until or not all(process.is_alive() for process in processes):
                raise RuntimeError("A worker process did not start.")
            time.sleep(POLL_SECONDS)
            blocked = int(client.info("clients")["blocked_clients"])
            settled = settled + 1 if blocked == before and blocked >= len(processes) else 0
            before = blocked


def work(url: str, push_limit: float, paced: bool) -> None:
    """Project the log until terminated. Fan-outs are paced, or as fast as possible."""
    if not paced:
        setattr(Pacer, "wait", Pace.before)  # noqa: B010 - replaces a method

    async def run() -> None:
        graph = await open_graph(url, Tuning(push_limit=push_limit))
        await graph.worker().run()

    asyncio.run(run())
