"""`FANLINE_DURABILITY=strict`: what clients see when replicas lack a write."""

import pytest

from graph import Graph
from server.embedded import Durability
from server.settings import Settings
from tests.server.conftest import serving


@pytest.mark.single_server("it has no replicas, so that every write is refused")
async def test_a_write_without_replicas_is_not_acknowledged(
    settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is asked to repeat the mutation. Pages can be read."""
    monkeypatch.setattr("graph.store.node.REPLICATION_SECONDS", 0.02)
    async with serving(settings.model_copy(update={"durability": Durability.STRICT}), graph) as api:
        token = await api.token("alice")
        published = await api.ask('mutation { publishPost(input: {text: "hi"}) { post { id } } }', token)
        read = await api.ask("{ viewer { user { login } } }", token)
    assert published.status_code == 503
    [error] = published.json()["errors"]
    assert error["extensions"]["code"] == "NOT_DURABLE"
    assert "Retry it with the same idempotency key" in error["message"]
    assert read.json() == {"data": {"viewer": {"user": {"login": "alice"}}}}
