"""The playground runs only the pinned files, and its token stays on this machine."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from graph import Graph
from server.playground import ASSETS, EXAMPLES, Playground
from server.settings import Settings
from tests.conftest import need
from tests.server.conftest import Api, serving

LOCAL = {"host": "localhost:8000"}


@pytest.fixture
async def demo(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve like the demo, with a small world in which carol follows bob."""
    users = [await graph.users.sign_up(login, "correct horse", None) for login in ("alice", "bob", "carol")]
    await graph.follows.follow(users[2].id, [users[1].id])
    async with serving(settings, graph, demo_login="alice") as api:
        yield api


async def test_a_browser_gets_the_page_at_both_addresses(api: Api) -> None:
    """The addresses are /playground and, for browsers, /graphql."""
    for path in ("/playground", "/graphql"):
        page = await api.client.get(path, headers={"accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "Fanline playground" in page.text


async def test_the_policy_allows_only_the_pinned_files(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy names every script and style of another origin, and its tag has the hash."""
    monkeypatch.setattr("server.playground._installed", lambda asset: Path("/nowhere") / asset)
    page = Playground().page()
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for asset, digest in ASSETS.items():
        assert f"https://cdn.jsdelivr.net/npm/{asset}" in policy
        assert f'https://cdn.jsdelivr.net/npm/{asset}" integrity="{digest}"' in bytes(page.body).decode()


async def test_installed_files_are_served_by_this_server(api: Api) -> None:
    """They have the pinned content, and nothing else of node_modules is served."""
    need(Playground().local, "`npm install` in server/playground")
    page = await api.client.get("/playground")
    assert "jsdelivr" not in page.text + page.headers["content-security-policy"]
    for asset, digest in ASSETS.items():
        response = await api.client.get(f"/playground/assets/{asset}")
        assert digest == "sha384-" + base64.b64encode(hashlib.sha384(response.content).digest()).decode()
    for path in ("assets/react@18.3.1/package.json", "assets/../package.json", "package.json", "__init__.py"):
        assert (await api.client.get(f"/playground/{path}")).status_code == 404


async def test_the_page_starts_with_the_examples(demo: Api) -> None:
    """All files of examples/ are tabs, the main ones first; the one that needs an id has it in its variables."""
    start = (await demo.client.get("/playground/start.json", headers=LOCAL)).json()
    queries = [example["query"] for example in start["examples"]]
    assert len(queries) == len(list(EXAMPLES.glob("*.graphql")))
    main = ("query Home", "query FollowersWithRelations", "mutation Publish", "mutation Follow", "subscription Live")
    assert all(name in query for name, query in zip(main, queries, strict=False))
    [variables] = [example["variables"] for example in start["examples"] if example["variables"]]
    assert "userIds" in variables


async def test_the_demo_starts_a_new_session_after_a_log_out(demo: Api) -> None:
    """Every page gets the same token until its session ends."""
    first = (await demo.client.get("/playground/start.json", headers=LOCAL)).json()["token"]
    assert (await demo.ask("{ viewer { login } }", first)).json()["data"] == {"viewer": {"login": "alice"}}
    assert (await demo.client.get("/playground/start.json", headers=LOCAL)).json()["token"] == first
    await demo.ask("mutation { logOut(input: {}) { userErrors { code } } }", first)
    second = (await demo.client.get("/playground/start.json", headers=LOCAL)).json()["token"]
    assert second != first
    assert (await demo.ask("{ viewer { login } }", second)).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "192.168.1.5:8000"])
async def test_the_token_is_for_pages_of_this_server_only(demo: Api, host: str) -> None:
    """A site whose host name resolves to this machine gets the examples but no token."""
    start = (await demo.client.get("/playground/start.json", headers={"host": host})).json()
    assert start["token"] is None
    assert start["examples"]


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
async def test_the_token_is_not_sent_through_a_proxy(demo: Api, header: str) -> None:
    """A proxy on this machine forwards requests of other machines."""
    start = (await demo.client.get("/playground/start.json", headers=LOCAL | {header: "for=127.0.0.1"})).json()
    assert start["token"] is None


async def test_outside_the_demo_the_playground_is_anonymous(api: Api) -> None:
    start = (await api.client.get("/playground/start.json", headers=LOCAL)).json()
    assert start["token"] is None


async def test_no_other_site_gets_the_token_when_all_origins_are_allowed(settings: Settings, graph: Graph) -> None:
    """`FANLINE_ALLOWED_ORIGINS` opens the API to other origins, but not the demo's session."""
    await graph.users.sign_up("alice", "correct horse")
    open_to_all = settings.model_copy(update={"allowed_origins": ("*",)})
    async with serving(open_to_all, graph, demo_login="alice") as api:
        own = str(api.client.base_url).rstrip("/")
        tokens = [
            (await api.client.get("/playground/start.json", headers=headers)).json()["token"]
            for headers in ({}, {"origin": own}, {"origin": "https://elsewhere.example"}, {"origin": "null"})
        ]
    assert [token is not None for token in tokens] == [True, True, False, False]


async def test_the_demo_renews_its_session_before_it_expires(settings: Settings, graph: Graph) -> None:
    """Every page starts with a token that is valid for at least half a session."""
    await graph.users.sign_up("alice", "correct horse")
    brief = settings.model_copy(update={"session_ttl": timedelta(seconds=6)})
    async with serving(brief, graph, demo_login="alice") as api:
        first = (await api.client.get("/playground/start.json")).json()["token"]
        await asyncio.sleep(3.1)
        second = (await api.client.get("/playground/start.json")).json()["token"]
        assert first != second
        assert (await api.ask("{ viewer { login } }", second)).json() == {"data": {"viewer": {"login": "alice"}}}
