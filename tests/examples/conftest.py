"""The user of the demo who runs the examples."""

import pytest

from graph import Graph
from server.demo.world import World
from tests.examples.alice import Alice
from tests.support.snapshots import small_world

__all__ = ["small_world"]


@pytest.fixture
async def alice(small_world: World, graph: Graph) -> Alice:
    """Start a session for alice in the demo world."""
    return Alice(graph, small_world, await graph.sessions.start(small_world.people()["alice"]))
