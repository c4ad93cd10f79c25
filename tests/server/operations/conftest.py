"""Fixtures of the tests of operations."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from graph import Graph
from server.settings import Settings
from tests.server.operations.readers import Readers


@pytest.fixture
async def readers(graph: Graph, settings: Settings) -> AsyncIterator[Readers]:
    """Return readers in the process of the graph."""
    async with AsyncExitStack() as stack:
        yield Readers(graph, settings, stack)
