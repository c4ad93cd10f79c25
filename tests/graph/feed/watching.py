"""Subscribers of the live feed, for its tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.updates import Checkpoint
from tests.support.graph_worlds import PATIENCE

QUIET = 0.1


class Watcher:
    """One subscriber, which takes updates when it likes."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self._stream = stream

    async def next(self) -> Any:
        """Wait for the next update, checkpoints included."""
        async with asyncio.timeout(PATIENCE):
            return await anext(self._stream)

    async def take(self, count: int) -> list[Any]:
        """Wait for so many updates that are not checkpoints."""
        found: list[Any] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                update = await self.next()
                found += [] if isinstance(update, Checkpoint) else [update]
        return found

    async def until(self, number: int) -> list[Any]:
        """Take all updates up to the one with this number, checkpoints left out."""
        found = await self.take(1)
        while found[-1].number < number:
            found += await self.take(1)
        return found

    async def silent(self) -> bool:
        """Tell whether nothing but a checkpoint comes."""
        return isinstance(await self.next(), Checkpoint)


@asynccontextmanager
async def watching(
    feed: Feed, viewer: int, after: int | None = None, session: str | None = None
) -> AsyncIterator[Watcher]:
    """Subscribe to somebody's home, and take the checkpoint that comes first; without a cursor, be live."""
    stream = feed.home(viewer, after, session)
    watcher = Watcher(stream)
    try:
        assert isinstance(await watcher.next(), Checkpoint)
        assert after is not None or await watcher.silent()
        yield watcher
    finally:
        await stream.aclose()


@asynccontextmanager
async def feed_of(graph: Graph, quiet: float = QUIET) -> AsyncIterator[Feed]:
    """Run a feed that is soon called quiet."""
    feed = Feed(
        graph.store,
        graph.log,
        graph.posts,
        graph.follows,
        graph.sessions,
        graph.users,
        graph.projections,
        checkpoint_seconds=quiet,
    )
    try:
        yield feed
    finally:
        await feed.close()


def numbers(updates: list[Any]) -> list[int]:
    return [update.number for update in updates]


async def blocked(raw: Redis) -> int:
    """Count the connections that wait for the log to grow."""
    return sum(client["cmd"] == "xread" and "b" in client["flags"] for client in await raw.client_list())
