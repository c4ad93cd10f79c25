"""A typed Python client that ariadne-codegen generates from the schema and the examples."""

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from server.settings import Settings
from tests.clients.programs import FOLDER
from tests.packaging.project import uv
from tests.server.conftest import serving, settings
from tests.support.graph_worlds import befriend

pytestmark = pytest.mark.external

__all__ = ["settings"]

GENERATOR = "ariadne-codegen==0.19.0"
ROOT = FOLDER.parents[1]
CONFIGURATION = f"""[tool.ariadne-codegen]
schema_path = "{ROOT / "schema.graphql"}"
queries_path = "queries"
target_package_name = "generated_client"
[tool.ariadne-codegen.scalars.DateTime]
type = "datetime.datetime"
"""


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Generate the client, and return its package."""
    (tmp_path / "pyproject.toml").write_text(CONFIGURATION)
    (tmp_path / "queries").mkdir()
    for file in (ROOT / "examples").glob("*.graphql"):
        shutil.copy(file, tmp_path / "queries")
    uv("tool", "run", "--quiet", "--from", GENERATOR, "ariadne-codegen", "client", cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("generated_client")


async def test_a_generated_client_reads_the_home_timeline(generated: Any, graph: Graph, settings: Settings) -> None:
    """Every example has a method. Times are parsed, and entries of interfaces have a class for each type."""
    async with serving(settings, graph) as api:
        token = await api.token("alice")
        [alice] = await graph.users.ids_of_logins(["alice"])
        bob = (await graph.users.sign_up("bob", "correct horse battery", None, "")).id
        await befriend(graph, bob, alice or 0)
        await graph.posts.publish(bob, "for @alice")
        await befriend(graph, alice or 0, bob)
        await graph.worker().drain()
        async with generated.Client(f"{api.url}/graphql", {"authorization": f"Bearer {token}"}) as client:
            home = (await client.home()).viewer
            feed = (await client.notifications()).viewer.notifications

        [edge] = home.home_timeline.entries.edges
        assert (home.user.login, edge.node.text, edge.node.author.login) == ("alice", "for @alice", "bob")
        assert edge.node.created_at.year >= 2026
        assert [type(each.node).__name__.endswith("Notification") for each in feed.entries.edges] == [True, True]
        assert {each.node.typename__ for each in feed.entries.edges} == {"FollowNotification", "MentionNotification"}
