"""Fixtures for tests of the graph: further processes on the same store, and a plain client."""

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
from tests.support.graphs import open_graph
from tests.support.raw import open_raw
from tests.support.stores import HookedStore


@pytest.fixture
async def another(store_url: str) -> AsyncIterator[Open]:
    """Return a function that opens another graph on the store, like another process, with its own tuning."""
    opened: list[Graph] = []

    async def open_(**tuning: Any) -> Graph:
        graph = await open_graph(store_url, replace(CHEAP, **tuning), partial(HookedStore, single_slot=True))
        opened.append(graph)
        return graph

    yield open_
    for graph in opened:
        await graph.close()


@pytest.fixture
async def raw(store_url: str) -> AsyncIterator[Redis]:
    """Open a plain client of the store."""
    async with open_raw(store_url) as client:
        yield client


@pytest.fixture
async def feed(graph: Graph) -> AsyncIterator[Feed]:
    """Open a feed of the graph."""
    async with feed_of(graph) as feed:
        yield feed
