"""What the tests of the graph share: further processes on the same store, and a plain client to look inside."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.feed.feed import Feed
from tests.conftest import CHEAP
from tests.graph.feed.watching import feed_of
from tests.support.graph_worlds import Open
from tests.support.stores import HookedStore


@pytest.fixture
async def another(store_url: str) -> AsyncIterator[Open]:
    """Open one more graph on the store of this test, as another process would, with a tuning of its own."""
    opened: list[Graph] = []

    async def open_(**tuning: Any) -> Graph:
        graph = await Graph.open(store_url, replace(CHEAP, **tuning), partial(HookedStore, single_slot=True))
        opened.append(graph)
        return graph

    yield open_
    for graph in opened:
        await graph.close()


@pytest.fixture
async def raw(store_url: str) -> AsyncIterator[Redis]:
    """Look at the store of this test from outside."""
    async with Redis.from_url(store_url, decode_responses=True) as client:
        yield client


@pytest.fixture
async def feed(graph: Graph) -> AsyncIterator[Feed]:
    """Give a feed of the graph."""
    async with feed_of(graph) as feed:
        yield feed
