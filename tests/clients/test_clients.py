"""Clients from npm: the audits of graphql-http, and GraphiQL in Chromium."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from server.playground import ASSETS, HERE, Playground
from server.seeding.load import demo_source, load
from server.settings import Settings
from tests.conftest import need
from tests.server.conftest import Api, serving, settings

pytestmark = pytest.mark.slow

__all__ = ["settings"]

FOLDER = Path(__file__).parent


@pytest.fixture
def node() -> str:
    """Return the path of node. Requires the packages of this folder."""
    need(bool(shutil.which("node")), "node, from nodejs.org or your distribution")
    packages = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    need(all((FOLDER / "node_modules" / name).is_dir() for name in packages), "`npm install` in tests/clients")
    return str(shutil.which("node"))


@pytest.fixture
def chromium() -> None:
    """Require Chromium and the playground's files."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    need(Path(path).exists(), f"Chromium at {path}, or elsewhere by CHROMIUM")
    need(Playground().local, "`npm install` in server/playground")


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve a small demo world whose playground is logged in as alice."""
    await load(graph, demo_source(people=40, posts=200), now=datetime.now(UTC))
    async with serving(settings, graph, demo_login="alice") as api:
        yield api


async def run(*command: str) -> Any:
    """Run a program and return the JSON value that it prints."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=FOLDER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_all_audits_of_graphql_http_pass(api: Api, node: str) -> None:
    """The 61 audits check what the specification of GraphQL over HTTP requires and recommends."""
    report = await run(node, "audit.mjs", f"{api.url}/graphql")
    assert report == {"total": 61, "failed": []}


async def test_the_playground_in_chromium(api: Api, node: str, chromium: None, tmp_path: Path) -> None:
    """The examples run as the demo user, and a subscription receives a post published in another tab."""
    pictures = Path(os.environ.get("PICTURES", tmp_path))
    seen = await run(node, "playground.mjs", f"{api.url}/playground", str(pictures))
    assert seen["violations"] == []
    assert seen["tabs"][:5] == ["Home", "FollowersWithRelations", "Publish", "Follow", "Live"]
    home = seen["home"]["data"]["viewer"]
    assert home["login"] == "alice"
    assert len(home["homeTimeline"]["posts"]["edges"]) == 30
    followers = seen["followers"]["data"]["user"]["followers"]["edges"]
    states = {edge["node"]["relationship"]["state"] for edge in followers}
    assert states == {"SELF", "NONE", "FOLLOWING", "FOLLOWED_BY", "MUTUAL"}
    [outcome] = seen["follow"]["data"]["follow"]["results"]
    assert outcome["outcome"] == "FOLLOWED"
    published = seen["published"]["data"]["publishPost"]["postEdge"]["node"]
    assert seen["live"]["data"]["homeTimeline"]["edge"]["node"]["id"] == published["id"]
    assert (pictures / "playground-live.png").stat().st_size > 10_000


def test_npm_and_the_cdn_have_the_same_versions_of_the_assets() -> None:
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert {asset.split("/")[0] for asset in ASSETS} == {f"{name}@{version}" for name, version in pinned.items()}


def test_every_program_in_the_guide_is_tested() -> None:
    """The guide quotes the programs of this folder unchanged."""
    guide = (FOLDER.parents[1] / "docs" / "guide.md").read_text("utf-8")
    shown = re.findall(r"```(?:js|py)\n(.*?)```", guide, re.S)
    run_here = [path.read_text("utf-8") for path in FOLDER.iterdir() if path.suffix in (".mjs", ".py")]
    assert len(shown) > 5
    assert [program for program in shown if not any(program in source for source in run_here)] == []
