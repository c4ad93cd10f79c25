"""Fixtures for the tests of clients."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from graph import Graph
from server.settings import Settings
from tests.clients.cached_lists import CACHES, Hosts, Stage, staged
from tests.clients.packed_kit import packed
from tests.clients.programs import FOLDER, chromium_exists, node, program, relay_artifacts
from tests.conftest import need
from tests.server.conftest import KEY
from tests.support.graphs import archive_url_of
from tests.support.snapshots import small_world

__all__ = ["chromium_exists", "node", "packed", "small_world"]

KIT = FOLDER / "kit"


@pytest.fixture
def settings(store_url: str, tmp_path: Path) -> Settings:
    """Return settings for a patient server, which does not refuse or interrupt requests when the machine is busy."""
    return Settings(
        store_url=store_url,
        archive_url=archive_url_of(store_url),
        data_dir=tmp_path,
        secret=(KEY,),
        worker=False,
        load_shedding=False,
        deadline=timedelta(minutes=1),
    )


@pytest.fixture(scope="session")
def hosts(node: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Return the programs that show lists in caches."""
    need((FOLDER.parents[1] / "client" / "dist" / "index.js").exists(), "`npm install` and `npm run build` in client")
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("kit")
        yield {name: stack.enter_context(program(KIT / "host.mjs", folder / name)) for name in CACHES}


@pytest.fixture(scope="session")
def artifacts(node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the documents of the timeline in Relay's store."""
    app = tmp_path_factory.mktemp("relay")
    shutil.copytree(KIT / "relay", app / "src")
    return relay_artifacts(app)


@pytest.fixture
async def stage(graph: Graph, settings: Settings, hosts: Hosts, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts, with a worker."""
    async with staged(graph, settings.model_copy(update={"worker": True}), hosts, artifacts) as stage:
        yield stage
