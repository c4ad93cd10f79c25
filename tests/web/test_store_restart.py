"""The web app while the embedded store is killed and starts again with its data."""

from pathlib import Path

import pytest

from server.embedded import EmbeddedStore
from server.settings import Settings
from tests.clients.outages import restart_store
from tests.server.conftest import KEY
from tests.support.graph_worlds import befriend, many_posts, people, posts, reconnected
from tests.support.graphs import archive_url_of, open_graph
from tests.web.stage import Chromium, staged

pytestmark = pytest.mark.slow


async def test_the_store_restarts(chromium: Chromium, tmp_path: Path) -> None:
    """The server restarts it. The list continues from the last event, and the session still exists."""
    data = tmp_path / "data"
    with EmbeddedStore(data) as store:
        settings = Settings(data_dir=data, archive_url=archive_url_of(store.url), secret=(KEY,))
        graph = await open_graph(store.url)
        try:
            alice, bob = await people(graph, "alice", "bob")
            await befriend(graph, alice, bob)
            await many_posts(graph, bob, 30)
            async with staged(graph, settings, chromium) as stage:
                await stage.open("a", "alice")
                await stage.hears(1)
                await posts(graph, bob, "before the restart")
                await stage.browser.do("see", "a", role="button", name="1 new post")
                await restart_store(store)
                await reconnected(graph)
                await posts(graph, bob, "after the restart")
                await stage.check("a", alice)
                await stage.browser.do("reload", "a")
                await stage.check("a", alice)
        finally:
            await graph.close()
