"""The fixtures of the web app's tests."""

import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from graph import Graph
from server.settings import Settings
from tests.clients.programs import FOLDER as CLIENTS
from tests.clients.programs import chromium_exists, node, program
from tests.conftest import need
from tests.server.conftest import settings
from tests.web.stage import DIST, FOLDER, Chromium, Stage, staged
from tests.web.tour import Tour

__all__ = ["chromium_exists", "node", "settings"]


@pytest.fixture(scope="session")
def chromium(node: str, chromium_exists: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Run Chromium. Node looks for packages next to the program, so the program is copied into a folder."""
    need((DIST / "index.html").exists(), "`npm install` and `npm run build` in examples/web")
    folder = tmp_path_factory.mktemp("browser")
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    shutil.copy(FOLDER / "browser.mjs", folder)
    with program(folder / "browser.mjs", folder / "socket") as browser, socket.create_server(("127.0.0.1", 0)) as own:
        yield Chromium(browser, own)


@pytest.fixture
async def stage(graph: Graph, settings: Settings, chromium: Chromium) -> AsyncIterator[Stage]:
    """Serve the built app with the settings of production."""
    async with staged(graph, settings, chromium) as stage:
        yield stage


@pytest.fixture
def tour_folder() -> Path | None:
    """Return the folder for the pictures of tours, if the environment names one."""
    folder = os.environ.get("PICTURES")
    return Path(folder) if folder else None


@pytest.fixture
def tour(stage: Stage, tour_folder: Path | None) -> Tour:
    """Return a tour of the app."""
    return Tour(stage, tour_folder)
