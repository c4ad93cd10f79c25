"""`kill -9` of the store under a load of 1,000 events per second: no stream loses or repeats an update."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from graph.errors import StoreUnavailable
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import Checkpoint, Gap
from graph.log.events import Event, PostPublished
from graph.log.log import IdempotencyKey
from server.embedded import Durability, EmbeddedStore
from tests.conftest import CHEAP
from tests.graph.feed.watching import feed_of
from tests.support.graph_worlds import append_events, crowd
from tests.support.graphs import open_graph

pytestmark = pytest.mark.slow

KILLS = 2
BETWEEN = 250  # events between two kills
EVENTS_AT_ONCE = 25
PAUSE = 0.025  # seconds between batches, for 1,000 events a second
PATIENCE = 60.0


class Publisher:
    """Commits posts in batches with idempotency keys, and retries unanswered batches."""

    def __init__(self, graph: Graph, authors: list[int]) -> None:
        self.committed: list[Event] = []
        self.stopped = False
        self._graph = graph
        self._authors = authors

    async def run(self) -> None:
        """Publish until stopped."""
        batch = 0
        while not self.stopped:
            batch += 1
            posts = [
                PostPublished(self._authors[n % len(self._authors)], f"rain {batch} {n}") for n in range(EVENTS_AT_ONCE)
            ]
            self.committed += await self._append(posts, IdempotencyKey("publisher", f"{batch}"))
            await asyncio.sleep(PAUSE)

    async def progress(self) -> None:
        """Wait until some more events are committed."""
        enough = len(self.committed) + BETWEEN
        async with asyncio.timeout(PATIENCE):
            while len(self.committed) < enough:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.02)

    async def _append(self, posts: list[PostPublished], idempotency_key: IdempotencyKey) -> list[Event]:
        while True:
            try:
                return await append_events(self._graph, posts, idempotency_key)
            except StoreUnavailable:
                await asyncio.sleep(0.05)


class Listener:
    """Collects the numbers of a stream's updates, and resumes when the stream fails."""

    def __init__(self, feed: Feed, subscribe: Any) -> None:
        self.received: list[int] = []
        self.position: int | None = None
        self._feed = feed
        self._subscribe = subscribe

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                stream: AsyncGenerator[Any] = self._subscribe(self._feed, self.position)
                async with aclosing(stream) as updates:
                    async for update in updates:
                        assert not isinstance(update, Gap)
                        if not isinstance(update, Checkpoint):
                            self.received.append(update.number)
                        self.position = update.number
            except StoreUnavailable:
                await asyncio.sleep(0.05)


def author_of(event: Event) -> int:
    assert isinstance(event.body, PostPublished)
    return event.body.author


@pytest.mark.timeout(180)
async def test_no_stream_loses_updates_when_the_store_is_killed(tmp_path: Path) -> None:
    """Home streams and filtered streams lose nothing. Some of them begin while the store is down."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(EmbeddedStore(tmp_path, Durability.SAFE))
        graph = await open_graph(store.url, CHEAP)
        stack.push_async_callback(graph.close)
        viewer, *authors = await crowd(graph, 5)
        await graph.follows.follow(viewer, authors[:2])
        await graph.worker().drain()
        feed = await stack.enter_async_context(feed_of(graph, checkpoint_seconds=0.5))
        start = await graph.log.last()
        subscriptions = [
            lambda feed, after: feed.home(viewer, after or start),
            lambda feed, after: feed.events(None, EventFilter.of(users=authors[1:3]), after or start),
            lambda feed, after: feed.events(None, EventFilter.of(keywords=["rain"]), after or start),
        ]
        wanted = [{*authors[:2]}, {*authors[1:3]}, {*authors}]
        publisher = Publisher(graph, authors)
        listeners = [Listener(feed, subscribe) for subscribe in subscriptions]
        tasks = [asyncio.create_task(publisher.run()), *(asyncio.create_task(each.run()) for each in listeners)]

        for _ in range(KILLS):
            await publisher.progress()
            os.kill(store.pid, signal.SIGKILL)
            listeners += [Listener(feed, subscribe) for subscribe in subscriptions]
            wanted += wanted[:3]
            tasks += [asyncio.create_task(each.run()) for each in listeners[-3:]]
            await asyncio.sleep(0.2)
            assert await asyncio.to_thread(store.ensure), "the store did not start again"
        await publisher.progress()
        publisher.stopped = True
        await tasks[0]
        last = publisher.committed[-1].number
        async with asyncio.timeout(PATIENCE):
            while any((each.position or 0) < last for each in listeners):
                assert not any(task.done() for task in tasks[1:]), "a listener has failed"
                await asyncio.sleep(0.05)
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        for listener, people in zip(listeners, wanted, strict=True):
            expected = [event.number for event in publisher.committed if author_of(event) in people]
            assert listener.received == expected
