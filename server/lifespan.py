"""The resources of a serving process: the store, the graph, the worker and garbage collection."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum

from graph import Graph
from graph.archive.archive import Archive
from graph.archive.migrations import SchemaState
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.tasks import end
from server.embedded import EmbeddedStore, EmbeddedStoreError
from server.process.garbage import collect_when_grown
from server.settings import Settings
from server.worker import work

WATCH_SECONDS = 1.0

logger = logging.getLogger("fanline.server")


class ArchiveUse(Enum):
    """Whether opening the graph may create and migrate the archive."""

    READ_AND_WRITE = "read and write"
    READ_ONLY = "read only"


@asynccontextmanager
async def open_graph(
    settings: Settings, *, archive: ArchiveUse = ArchiveUse.READ_AND_WRITE, with_worker: bool = False
) -> AsyncIterator[Graph]:
    """Open the graph, with an embedded store if the settings name no other; close everything in reverse order.

    Raises WrongArchive, SchemaTooNew, and, if the archive is read only, SchemaOutdated.
    """
    async with AsyncExitStack() as stack:
        url = settings.store_url
        if url is None:
            store = EmbeddedStore(settings.data_dir, settings.durability)
            await asyncio.to_thread(store.start)
            stack.push_async_callback(asyncio.to_thread, store.stop)
            url = store.url
        graph = await Graph.open(url, settings.tuning, archive=await _archive(settings, archive))
        stack.push_async_callback(graph.close)
        await _check_archive(graph)
        tasks = [asyncio.create_task(work(graph))] if with_worker else []
        if settings.store_url is None:
            tasks.append(asyncio.create_task(_watch(store)))
        try:
            yield graph
        finally:
            await end(tasks)


@asynccontextmanager
async def collecting() -> AsyncIterator[None]:
    """Collect garbage when the process has grown, for the duration of the block."""
    task = asyncio.create_task(collect_when_grown())
    try:
        yield
    finally:
        await end([task])


async def _archive(settings: Settings, use: ArchiveUse) -> Archive | None:
    """Return the archive, or None if it may not be created and does not exist."""
    archive = Archive(settings.archive, migrates=use is ArchiveUse.READ_AND_WRITE)
    if use is ArchiveUse.READ_AND_WRITE:
        return archive
    try:
        if await archive.schema_state() is SchemaState.ABSENT:
            await archive.close()
            return None
    except ArchiveUnavailable:
        pass  # the caller finds out, and reports it
    return archive


async def _check_archive(graph: Graph) -> None:
    """Migrate the archive, and check that it belongs to the store.

    If the archive does not answer, newer posts are served without it, and its first use tries again.
    """
    if graph.archive is not None:
        try:
            await graph.archive.migrate()
            await graph.binding.check()
        except ArchiveUnavailable as outage:
            logger.error("The archive does not answer; newer posts are served without it: %s", outage.reason)
        except StoreUnavailable:
            return  # the first use of the store reports it


async def _watch(store: EmbeddedStore) -> None:
    """Restart the embedded store whenever its process has ended."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            if await asyncio.to_thread(store.ensure):
                logger.error("The embedded store stopped and was restarted; see %s", store.folder / "store.log")
        except (EmbeddedStoreError, OSError) as error:
            logger.error("The embedded store cannot be restarted: %s", error)
