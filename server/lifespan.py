"""The resources of a serving process: the store, the graph, the worker and garbage collection."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from functools import partial

from redis.exceptions import RedisError

from graph import Graph
from graph.archive.archive import Archive
from graph.archive.database import TIMEOUT_SECONDS
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.store.store import Store
from graph.store.urls import servers_of
from graph.tasks import end
from server.embedded import EmbeddedStore, EmbeddedStoreError
from server.process.garbage import collect_when_grown
from server.settings import Settings
from server.worker import work

WATCH_SECONDS = 1.0
BULK_SECONDS = 60.0
"""The timeout of the archive for bulk commands, which only the operator waits for."""
NEAR_CACHE = 50_000

logger = logging.getLogger("fanline.server")


class ArchiveUse(Enum):
    """How a command uses the archive."""

    READ_AND_WRITE = "read and write"
    READ_ONLY = "read only"
    """The archive's schema is not created or upgraded."""
    REBUILD = "rebuild"
    """The store may be empty, so the binding is not checked. The archive may take a minute to answer."""


@asynccontextmanager
async def open_graph(
    settings: Settings, *, archive: ArchiveUse = ArchiveUse.READ_AND_WRITE, with_worker: bool = False
) -> AsyncIterator[Graph]:
    """Open the graph, with an embedded store if the settings name no other; close everything when the block ends.

    Raises WrongArchive, SchemaTooNew, and, if the archive is read only, SchemaOutdated.
    """
    async with AsyncExitStack() as stack:
        url = settings.store_url
        if url is None:
            store = EmbeddedStore(settings.data_dir, settings.embedded_durability)
            await asyncio.to_thread(store.start)
            stack.push_async_callback(asyncio.to_thread, store.stop)
            url = store.url
        migrates = archive is not ArchiveUse.READ_ONLY
        timeout = BULK_SECONDS if archive is ArchiveUse.REBUILD else TIMEOUT_SECONDS
        database = Archive(settings.archive, timeout=timeout, migrates=migrates)
        near_cache = near_cache_of(settings, url)
        store_class = partial(Store, wait_for_replicas=settings.wait_for_replicas, near_cache=near_cache)
        graph = await Graph.open(url, database, settings.tuning, store_class)
        stack.push_async_callback(graph.close)
        await _check_archive(graph, archive)
        tasks = [asyncio.create_task(work(graph))] if with_worker else []
        if settings.store_url is None:
            tasks.append(asyncio.create_task(_watch(store)))
        try:
            yield graph
        finally:
            await end(tasks)


def near_cache_of(settings: Settings, store_url: str) -> int:
    """Return the maximum number of values in the near cache of a process."""
    if settings.near_cache is not None:
        return settings.near_cache
    return 0 if servers_of(store_url).is_cluster else NEAR_CACHE


@asynccontextmanager
async def collecting() -> AsyncIterator[None]:
    """Collect garbage whenever the process has grown, for the duration of the block."""
    task = asyncio.create_task(collect_when_grown())
    try:
        yield
    finally:
        await end([task])


async def _check_archive(graph: Graph, use: ArchiveUse) -> None:
    """Migrate the archive, and check that it belongs to the store.

    An archive or store that does not answer is not an error: the first use tries again.
    """
    try:
        await graph.archive.migrate()
        if use is not ArchiveUse.REBUILD:
            await graph.binding.check()
    except ArchiveUnavailable as outage:
        logger.error(
            "The archive does not answer. Only recent posts are served; changes are accepted until the log is full: %s",
            outage.reason,
        )
    except StoreUnavailable as outage:
        logger.error("The store cannot be used yet: %s", outage.reason)


async def _watch(store: EmbeddedStore) -> None:
    """Restart the embedded store whenever it has stopped, and make it refuse writes while its disk is nearly full."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            if await asyncio.to_thread(store.ensure):
                logger.error("The embedded store stopped and was restarted; see %s", store.folder / "store.log")
        except (EmbeddedStoreError, OSError, RedisError) as error:
            logger.error("The embedded store cannot be restarted: %s", error)
