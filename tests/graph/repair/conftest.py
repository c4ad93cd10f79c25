"""A small world that is created once and restored for each test."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.conftest import SharedStore
from tests.graph.repair.broken import RepairWorld, Snapshot, opened
from tests.support.graphs import empty
from tests.support.raw import open_raw


@pytest.fixture(scope="package")
def world_and_snapshot(running_store: SharedStore) -> tuple[RepairWorld, Snapshot]:
    """Create the small world once, and take a snapshot."""
    url = running_store.url
    empty(url)

    async def make() -> RepairWorld:
        async with open_raw(url) as raw, opened(url) as graph:
            world = RepairWorld(graph, raw)
            await world.begin()
            await world.drain()
            await world.change()
            await world.drain()
            await world.check_pages()
            return world

    world = asyncio.run(make())
    return world, Snapshot.take(url)


@pytest.fixture
async def world(
    store_url: str, world_and_snapshot: tuple[RepairWorld, Snapshot], raw: Redis
) -> AsyncIterator[RepairWorld]:
    """Restore the small world."""
    world_and_snapshot[1].restore(store_url)
    async with opened(store_url) as graph:
        yield world_and_snapshot[0].copy(graph, raw)
