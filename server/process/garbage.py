"""Garbage collection: rare while requests are served, and complete when the process has grown."""

import asyncio
import gc
import resource
import sys
from pathlib import Path

THRESHOLDS = (100_000, 20, 50)  # new objects, more than many requests at once have; collections; older ones
GROWTH = 64 * 1024 * 1024  # bytes since the last complete collection
BLOCKS = 250_000  # of memory, likewise
BLOCK_SHARE = 4  # or this part of the blocks that were left, so that large processes do not collect all the time
LOOK_SECONDS = 10.0


def freeze() -> None:
    """Exempt what lives as long as the process, the code and the schema, from collection, and collect rarely.

    Thousands of sockets are millions of objects; to look through them again and again took a third of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


async def collect_when_grown(seconds: float = LOOK_SECONDS, growth: int = GROWTH) -> None:
    """Collect completely whenever the process has grown, until cancelled.

    The thresholds alone postpone complete collections for longer the more objects live, and garbage with them. The
    system does not get back what a collection frees, so the size alone would rise with each: blocks in use count too.
    """
    size, blocks = resident(), sys.getallocatedblocks()
    while True:
        await asyncio.sleep(seconds)
        more = sys.getallocatedblocks() - blocks
        if resident() > size + growth or more > max(BLOCKS, blocks // BLOCK_SHARE):
            gc.collect()
            size, blocks = resident(), sys.getallocatedblocks()


def resident() -> int:
    """Return the bytes of memory that this process has; where the system does not tell, the most it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
