"""Garbage collection: rare in servers, with a full collection when the process has grown, and frequent in workers."""

import asyncio
import gc
import resource
import sys
from pathlib import Path

SERVER = (100_000, 20, 50)  # new objects (more than many concurrent requests create), young and middle collections
WORKER = (5_000, 10, 10)  # a batch of events leaves a few hundred objects that refer to each other
GROWTH = 64 * 1024 * 1024  # bytes since the last full collection
BLOCKS = 250_000  # blocks of memory allocated since the last full collection
BLOCK_SHARE = 4  # or a quarter of the blocks that were left, if more, so that large processes do not collect constantly
LOOK_SECONDS = 10.0


def freeze(thresholds: tuple[int, int, int]) -> None:
    """Freeze long-lived objects, such as code and the schema, and set the thresholds of the collector.

    A server's sockets amount to millions of objects, and scanning them repeatedly took a third of the CPU time. A
    worker has few objects: with high thresholds, it grew by 8 MB a minute under load. There is no collection before
    freezing, because imports leave hardly any garbage.
    """
    gc.freeze()
    gc.set_threshold(*thresholds)


async def collect_when_grown(seconds: float = LOOK_SECONDS, growth: int = GROWTH) -> None:
    """Run a full collection whenever the process has grown, until cancelled.

    With raised thresholds alone, full collections become rarer as the number of live objects grows. Freed memory is not
    returned to the system, so the number of allocated blocks is checked in addition to the size of the process.
    """
    size, blocks = resident(), sys.getallocatedblocks()
    while True:
        await asyncio.sleep(seconds)
        more = sys.getallocatedblocks() - blocks
        if resident() > size + growth or more > max(BLOCKS, blocks // BLOCK_SHARE):
            gc.collect()
            size, blocks = resident(), sys.getallocatedblocks()


def resident() -> int:
    """Return the resident memory of this process in bytes, or the peak where the system reports only the peak."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
