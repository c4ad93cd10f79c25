"""What the log of a server says about outages that operations encounter."""

import asyncio
from pathlib import Path

import pytest

from graph import Graph
from server import errors
from server.embedded import EmbeddedStore
from server.outage_log import OutageLog
from server.settings import Settings
from tests.server.conftest import serving
from tests.support.graphs import archive_url_of


async def test_operations_without_the_store_are_logged_once_a_minute(
    settings: Settings, tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first is logged at once, with the reason, which clients do not see; then the number of the others."""
    log = OutageLog()
    monkeypatch.setattr(errors, "OUTAGE_LOG", log)
    store = EmbeddedStore(tmp_path / "away")
    store.start()
    away = settings.model_copy(update={"store_url": store.url, "archive_url": archive_url_of(store.url)})
    async with serving(away, graph) as api:
        store.stop()
        asked = [api.ask('{ user(by: {login: "alice"}) { id } }') for _ in range(4)]
        assert [response.status_code for response in await asyncio.gather(*asked)] == [503] * 4
        log._next = 0.0
        await api.ask('{ user(by: {login: "alice"}) { id } }')
    first, second = (text for text in caplog.messages if "failed because of an outage" in text)
    assert "STORE_UNAVAILABLE (1). The last reason: " in first
    assert "STORE_UNAVAILABLE (4). The last reason: " in second
