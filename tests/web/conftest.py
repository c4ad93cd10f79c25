"""The fixtures of the web app's tests."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph import Graph
from server.settings import Settings
from tests.clients.programs import node
from tests.conftest import need
from tests.server.conftest import settings
from tests.web.stage import DIST, Stage, staged
from tests.web.tour import Tour

__all__ = ["node", "settings"]


@pytest.fixture
def built(node: str) -> None:
    """Require Chromium and the built app."""
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    need(Path(chromium).exists(), f"Chromium at {chromium}, or elsewhere by CHROMIUM")
    need((DIST / "index.html").exists(), "`npm install` and `npm run build` in examples/web")


@pytest.fixture
async def stage(graph: Graph, settings: Settings, built: None, tmp_path: Path) -> AsyncIterator[Stage]:
    """Serve the built app with the settings of production."""
    async with staged(graph, settings, tmp_path) as stage:
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
