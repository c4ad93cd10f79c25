"""Subscribers of the live feed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import Checkpoint
from graph.post_lists import TIMELINE, PostList
from tests.support.graph_worlds import PATIENCE

CHECKPOINT_SECONDS = 0.1


class Watcher:
    """Takes the updates of one subscription."""

    def __init__(self, stream: AsyncGenerator[Any]) -> None:
        self._stream = stream

    async def next(self) -> Any:
        """Return the next update."""
        async with asyncio.timeout(PATIENCE):
            return await anext(self._stream)

    async def take(self, count: int) -> list[Any]:
        """Return the next updates, without checkpoints."""
        found: list[Any] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                update = await self.next()
                found += [] if isinstance(update, Checkpoint) else [update]
        return found

    async def until(self, number: int) -> list[Any]:
        """Return the next updates up to this number, without checkpoints."""
        found = await self.take(1)
        while found[-1].number < number:
            found += await self.take(1)
        return found

    async def silent(self) -> bool:
        """Return True if the next update is a checkpoint."""
        return isinstance(await self.next(), Checkpoint)


@asynccontextmanager
async def watching(
    feed: Feed, viewer: int, after: int | None = None, session: str | None = None
) -> AsyncIterator[Watcher]:
    """Subscribe to a home timeline and take the first checkpoint. Without `after`, the subscription is live."""
    async with _begun(feed.home(viewer, after, session), after) as watcher:
        yield watcher


@asynccontextmanager
async def on_timeline(
    feed: Feed, owner: int, after: int | None = None, viewer: int | None = None, post_list: PostList = TIMELINE
) -> AsyncIterator[Watcher]:
    """Subscribe to a list of a user's posts and take the first checkpoint. Without `after`, it is live."""
    async with _begun(feed.timeline(viewer, post_list, owner, after), after) as watcher:
        yield watcher


@asynccontextmanager
async def on_thread(
    feed: Feed, post: int, after: int | None = None, viewer: int | None = None, author: int | None = None
) -> AsyncIterator[Watcher]:
    """Subscribe to the thread of a post and take the first checkpoint. Without `after`, the subscription is live."""
    async with _begun(feed.thread(viewer, post, author, after), after) as watcher:
        yield watcher


@asynccontextmanager
async def on_list(feed: Feed, viewer: int, list_id: int, after: int | None = None) -> AsyncIterator[Watcher]:
    """Subscribe to the timeline of a list and take the first checkpoint. Without `after`, the subscription is live."""
    async with _begun(feed.list_timeline(viewer, list_id, after), after) as watcher:
        yield watcher


@asynccontextmanager
async def following(
    feed: Feed,
    filter_: EventFilter,
    after: int | None = None,
    viewer: int | None = None,
    session: str | None = None,
    holder: str | None = None,
) -> AsyncIterator[Watcher]:
    """Subscribe to filtered events and take the first checkpoint. Without `after`, the subscription is live."""
    async with _begun(feed.events(viewer, filter_, after, session, holder=holder), after) as watcher:
        yield watcher


@asynccontextmanager
async def _begun(stream: AsyncGenerator[Any], after: int | None) -> AsyncIterator[Watcher]:
    watcher = Watcher(stream)
    try:
        assert isinstance(await watcher.next(), Checkpoint)
        assert after is not None or await watcher.silent()
        yield watcher
    finally:
        await stream.aclose()


@asynccontextmanager
async def feed_of(graph: Graph, checkpoint_seconds: float = CHECKPOINT_SECONDS) -> AsyncIterator[Feed]:
    """Run a separate feed for a graph."""
    feed = Feed(
        graph.store,
        graph.log,
        graph.posts,
        graph.follows,
        graph.sessions,
        graph.users,
        graph.projections,
        graph.visibility,
        graph.notifications,
        graph.lists,
        checkpoint_seconds=checkpoint_seconds,
    )
    try:
        yield feed
    finally:
        await feed.close()


def numbers(updates: list[Any]) -> list[int]:
    return [update.number for update in updates]


async def blocked(raw: Redis) -> int:
    """Count the connections that wait for new entries of the log."""
    return sum(client["cmd"] == "xread" and "b" in client["flags"] for client in await raw.client_list())
