"""The worker loop of a process."""

import asyncio
import logging

from graph import Graph
from graph.errors import StoreTooNew

RESTART_SECONDS = 1.0

logger = logging.getLogger("fanline.worker")


async def work(graph: Graph) -> None:
    """Project and archive the log until cancelled. If the worker fails, log the error and restart it after a second.

    Raises StoreTooNew if a later version has changed the format of the store.
    """
    while True:
        try:
            await graph.worker().run()
        except StoreTooNew as stop:
            logger.error("The worker has stopped: %s", stop)
            raise
        except Exception:
            logger.exception("The worker failed and will be restarted in a second")
        await asyncio.sleep(RESTART_SECONDS)
