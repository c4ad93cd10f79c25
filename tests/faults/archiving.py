"""A program that archives without a pause, whether or not another process holds the lease.

Its arguments are the URLs of the store and of the archive. Each line of standard input is a number of seconds: the
program forks a process, which is much faster than starting one, kills it that long after it began to archive, and
prints `killed` or `failed`. Without standard input, it archives in its own process, and prints the number of archived
events at intervals.
"""

import asyncio
import os
import signal
import sys
import time

from graph import Graph
from graph.errors import ArchiveUnavailable, StoreUnavailable
from tests.faults.archive_world import open_on

BATCH = 40
REPORT_SECONDS = 0.2


async def archive(graph: Graph, begun: int | None = None) -> None:
    """Archive events, in small batches so that processes often overlap. Write to a pipe at the start."""
    await graph.binding.check()
    if begun is not None:
        os.write(begun, b"x")
    graph.archiver._batch = graph.archiver._size = BATCH
    reported = 0.0
    while True:
        try:
            await graph.archiver.archive_batch()
        except (ArchiveUnavailable, StoreUnavailable) as outage:
            print(f"outage {outage.reason}", flush=True)
        if time.monotonic() > reported + REPORT_SECONDS:
            reported = time.monotonic()
            print(graph.archiver.archived, flush=True)
        await asyncio.sleep(0.001)


def main(url: str, archive_url: str) -> None:
    """Archive, or fork processes that archive and kill them."""
    if sys.stdin.isatty() or os.fstat(0).st_rdev:
        asyncio.run(archive(open_on(url, archive_url)))
    for line in sys.stdin:
        has_begun, begun = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            asyncio.run(archive(open_on(url, archive_url), begun))
        os.close(begun)
        os.read(has_begun, 1)
        os.close(has_begun)
        time.sleep(float(line))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "failed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
