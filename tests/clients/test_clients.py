"""Clients from npm: the audits of graphql-http, and GraphiQL in Chromium."""

import json
import os
from collections.abc import AsyncIterator
from typing import cast

import pytest

from graph import Graph
from graph.feed.feed import Feed
from server.cli.token import issue_token
from server.demo import Demo
from server.demo.people import SEVEN
from server.playground.assets import HERE, PACKAGES, all_installed
from server.playground.examples import examples
from server.seeding.load import demo_source, load
from server.settings import Settings
from tests.clients.programs import need_chromium, node, run
from tests.conftest import need
from tests.server.conftest import Api, serving, settings
from tests.support.worlds import TODAY

pytestmark = pytest.mark.slow

__all__ = ["node", "settings"]

PICTURES = [os.environ["PICTURES"]] if "PICTURES" in os.environ else []  # the folder for pictures of the playground


@pytest.fixture
def chromium() -> None:
    """Require Chromium and the playground's files."""
    need_chromium()
    need(all_installed(), "`npm install` in server/playground")


@pytest.fixture
async def api(settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """Serve a small demo world as the demo does, without checkpoints between slow browser steps."""
    monkeypatch.setitem(cast(dict[str, float], Feed.__init__.__kwdefaults__), "checkpoint_seconds", 3600.0)
    await load(graph, demo_source(people=40, posts=200), now=TODAY)
    async with serving(settings, graph, demo=Demo(tuple(role.person for role in SEVEN))) as api:
        yield api


async def test_all_audits_of_graphql_http_pass(api: Api, node: str) -> None:
    """The 61 audits check what the GraphQL over HTTP specification requires and recommends."""
    report = await run(node, "audit.mjs", f"{api.url}/graphql")
    assert report == {"total": 61, "failed": []}


async def test_the_playground_in_chromium(api: Api, node: str, chromium: None) -> None:
    """The examples run as the demo user, and a subscription receives a post published in another tab."""
    seen = await run(node, "playground.mjs", f"{api.url}/playground", *PICTURES)
    assert seen["violations"] == []
    assert seen["tabs"] == ["Home", "FollowersWithRelations", "Publish", "Live"]
    home = seen["home"]["data"]["viewer"]
    assert home["user"]["login"] == "alice"
    assert len(home["homeTimeline"]["entries"]["edges"]) == 30
    followers = seen["followers"]["data"]["user"]["followers"]["edges"]
    states = {edge["node"]["relationship"]["state"] for edge in followers}
    assert states == {"YOU", "STRANGER", "FOLLOWING", "FOLLOWED_BY", "MUTUAL"}
    [outcome] = seen["follow"]["data"]["followUsers"]["results"]
    assert outcome["outcome"] == "FOLLOWED"
    published = seen["published"]["data"]["publishPost"]["timelineEdge"]["node"]
    assert seen["live"]["received"] == 2
    added, first = (event["data"]["homeTimeline"] for event in seen["live"]["newestFirst"])
    assert added["timelineEdge"]["node"]["id"] == published["id"]
    assert first["__typename"] == "Checkpoint"


async def test_the_menus_and_failures_of_the_playground(api: Api, node: str, chromium: None) -> None:
    """One click logs in as another user, events stay, and a page that cannot load its files can try again."""
    seen = await run(node, "playground-menus.mjs", f"{api.url}/playground", *PICTURES)
    assert seen["violations"] == []
    assert seen["examples"] == len(examples())
    assert seen["viewers"] == ["wei", None]
    stopped = seen["stopped"]["newestFirst"]
    assert [event["data"]["homeTimeline"]["__typename"] for event in stopped] == [
        "PostAdded",
        "PostAdded",
        "Checkpoint",
    ]
    assert "cannot be loaded" in seen["failure"]
    assert seen["retried"] is True


async def test_the_playground_keeps_the_events_of_a_subscription(node: str) -> None:
    """The newest first, at most 100; consecutive checkpoints count as one; an error does not replace the events."""
    seen = await run(node, "live-events.mjs")
    assert seen["kinds"] == ["error", "Post", "Checkpoint", "Post", "Checkpoint"]
    assert seen["received"] == 7
    assert (seen["kept"], seen["newest"], seen["oldest"]) == (100, 149, 50)
    assert seen["returned"] is True


def test_npm_and_the_cdn_have_the_same_versions_of_the_assets() -> None:
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert set(PACKAGES) == {f"{name}@{version}" for name, version in pinned.items()}


async def test_the_recipes_of_the_cookbook(api: Api, node: str, settings: Settings, graph: Graph) -> None:
    """They publish once, scroll, count, hold posts back and follow; a post that is sent twice arrives once."""
    token = await issue_token(graph, settings, "alice")
    seen = await run(node, "cookbook.mjs", f"{api.url}/graphql", token)
    assert seen["once"]
    assert seen["refused"] == ["TEXT_EMPTY"]
    assert seen["read"] == seen["distinct"] > 40
    assert seen["unread"] == 1
    assert seen["pill"] == [1, 2, 0]
    assert seen["optimistic"] == seen["real"] == [seen["before"] + 1, "FOLLOWING"]
