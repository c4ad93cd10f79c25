"""The worker as a process runs it: for ever, or until the log is drained."""

import asyncio
import logging

from graph import Graph

RESTART_SECONDS = 1.0

logger = logging.getLogger("fanline.worker")


async def work(graph: Graph) -> None:
    """Project the log until cancelled; whatever ends a worker is logged, and another takes its place."""
    while True:
        try:
            await graph.worker().run()
        except Exception:
            logger.exception("The worker failed; another starts in a second")
        await asyncio.sleep(RESTART_SECONDS)
