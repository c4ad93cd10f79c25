"""A user of the demo who runs the examples."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from graph import Graph
from graph.model import Credentials
from resolvers.context import Context, Viewer
from schema import schema
from server.demo.world import World

EXAMPLES = {path.stem: path for path in (Path(__file__).parents[2] / "examples").glob("*.graphql")}


class Alice:
    """Runs examples as alice in a small demo world."""

    def __init__(self, graph: Graph, world: World, session: Credentials) -> None:
        self.graph = graph
        self.people = world.people()
        self._viewer = Viewer(session.user, session.id, session.expires_at)

    def context(self) -> Context:
        """Return the context of a new request."""
        return Context(self.graph, self._viewer, lambda session: f"token of {session.user}")

    async def run(self, example: str, **variables: Any) -> dict[str, Any]:
        """Execute a query or mutation and return its data."""
        document = EXAMPLES[example].read_text("utf-8")
        result = await schema.execute(document, variables, self.context())
        assert result.errors is None
        assert result.data is not None
        return result.data

    async def subscribe(self, example: str, **variables: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Run a subscription and yield the data of its events."""
        document = EXAMPLES[example].read_text("utf-8")
        async with aclosing(await schema.subscribe(document, variables, self.context())) as results:
            async for result in results:
                assert result.errors is None
                assert result.data is not None
                yield result.data
