"""The worker loop of a process."""

import asyncio
import logging

from graph import Graph

RESTART_SECONDS = 1.0

logger = logging.getLogger("fanline.worker")


async def work(graph: Graph) -> None:
    """Project the log until cancelled. A worker that fails is logged and replaced after a second."""
    while True:
        try:
            await graph.worker().run()
        except Exception:
            logger.exception("The worker failed and will be restarted in a second")
        await asyncio.sleep(RESTART_SECONDS)
