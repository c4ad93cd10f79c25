"""The playground runs only the pinned files, and its token stays on this machine."""

import base64
import hashlib
import html
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, tzinfo
from typing import Self

import pytest
from graphql import NonNullTypeNode, OperationDefinitionNode, parse

from graph import Graph
from resolvers import ids
from server.demo import Demo
from server.demo.world import Person
from server.playground.assets import ASSETS
from server.playground.examples import EXAMPLES, examples
from server.playground.page import Playground
from server.settings import Settings
from tests.conftest import need
from tests.server.conftest import Api, serving

LOCAL = {"host": "localhost:8000"}
PEOPLE = (Person("alice", "Alice"), Person("bob", "Bob"))
SESSION = "/playground/session.json?login=alice"


@pytest.fixture
async def demo(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve like the demo, with a small world in which carol follows bob."""
    users = [await graph.users.sign_up(login, "correct horse", None) for login in ("alice", "bob", "carol")]
    await graph.follows.follow(users[2].id, [users[1].id])
    async with serving(settings, graph, demo=Demo(PEOPLE)) as api:
        yield api


async def test_a_browser_gets_the_page_at_both_addresses(api: Api) -> None:
    """The addresses are /playground and, for browsers, /graphql."""
    for path in ("/playground", "/graphql"):
        page = await api.client.get(path, headers={"accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "Fanline playground" in page.text


async def test_the_policy_allows_only_the_pinned_files(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy names every script and style of another origin, and the page loads them with their hashes."""
    monkeypatch.setattr("server.playground.page.all_installed", lambda: False)
    page = Playground().page()
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    [listed] = html.unescape(bytes(page.body).decode()).split('data-assets="')[1:]
    assets = {asset["url"]: asset["integrity"] for asset in json.JSONDecoder().raw_decode(listed)[0]}
    assert assets == {f"https://cdn.jsdelivr.net/npm/{asset}": digest for asset, digest in ASSETS.items()}
    assert all(url in policy for url in assets)


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
    """All files of examples/ are in the menu, each with a group, a sentence and its operation; some are open."""
    start = (await demo.client.get("/playground/start.json", headers=LOCAL)).json()
    queries = sorted(example["query"] for example in start["examples"])
    assert queries == sorted(path.read_text("utf-8") for path in EXAMPLES.glob("*.graphql"))
    assert all(example["group"] and example["about"] and example["operation"] for example in start["examples"])
    assert set(start["opened"]) < {example["name"] for example in start["examples"]}
    assert [user["login"] for user in start["users"]] == ["alice", "bob"]


async def test_every_example_that_requires_variables_gets_them(demo: Api) -> None:
    """Only variables with a `!` and no default are required; the values have the right names."""
    [bob] = await demo.graph.users.ids_of_logins(["bob"])
    assert bob is not None
    await demo.graph.posts.publish(bob, "hello")
    for login in ("alice", "bob"):
        session = (await demo.client.get(f"/playground/session.json?login={login}", headers=LOCAL)).json()
        for example in examples():
            [operation] = parse(example.query).definitions
            assert isinstance(operation, OperationDefinitionNode)
            taken = {each.variable.name.value: each for each in operation.variable_definitions or ()}
            required = {name for name, each in taken.items() if isinstance(each.type, NonNullTypeNode)}
            given = set(json.loads(session["variables"].get(example.name, "{}")))
            if (login, example.name) == ("alice", "delete-post"):
                continue  # alice has no posts
            assert required <= given <= set(taken), (login, example.name)


async def test_the_examples_that_need_ids_get_them(demo: Api) -> None:
    """The operations succeed with these variables for any user of the demo, even after earlier ones made changes."""
    [bob] = await demo.graph.users.ids_of_logins(["bob"])
    assert bob is not None
    await demo.graph.posts.publish(bob, "hello")
    queries = {example.name: example.query for example in examples()}
    for name in (
        *("post", "thread", "node", "nodes", "follow", "like", "unlike", "repost", "unrepost", "reply", "quote"),
        *("bookmark", "remove-bookmark"),
        *("report", "create-list", "list-timeline", "update-list", "delete-list", "mark-read", "delete-post"),
        *("mute", "unmute", "block", "unblock", "end-session"),
    ):
        session = (await demo.client.get("/playground/session.json?login=bob", headers=LOCAL)).json()
        variables = json.loads(session["variables"][name])
        answer = (await demo.ask(queries[name], session["token"], **variables)).json()
        assert "errors" not in answer, name
        assert None not in answer["data"].values(), name
        [payload] = answer["data"].values()
        assert isinstance(payload, list) or not payload.get("userErrors"), name


async def test_reactions_are_taken_back_from_the_posts_that_have_them(demo: Api) -> None:
    """Unlike and Unrepost open with a post that the user likes or has reposted, Thread with one that has replies."""
    [alice, bob] = await demo.graph.users.ids_of_logins(["alice", "bob"])
    assert alice is not None
    assert bob is not None
    first, second = [await demo.graph.posts.publish(bob, text) for text in ("first", "second")]
    await demo.graph.likes.like(alice, first.id)
    await demo.graph.reposts.repost(demo.graph.visibility.of(alice), alice, first.id)
    await demo.graph.posts.publish(alice, "Well said", reply_to=first.id)
    given = (await demo.client.get(SESSION, headers=LOCAL)).json()["variables"]
    old, new = (ids.encode(ids.Kind.POST, post.id) for post in (first, second))
    assert [json.loads(given[name])["postId"] for name in ("unlike", "unrepost", "like", "repost")] == [
        *(old, old),
        *(new, new),
    ]
    assert (json.loads(given["thread"]), json.loads(given["reply"])) == ({"id": old}, {"replyToId": new})
    assert json.loads(given["live-thread"]) == {"postId": old}


async def test_the_demo_starts_a_new_session_after_a_log_out(demo: Api) -> None:
    """Every page gets the same token of a user until the session ends."""
    first = (await demo.client.get(SESSION, headers=LOCAL)).json()["token"]
    assert (await demo.ask("{ viewer { user { login } } }", first)).json()["data"] == {
        "viewer": {"user": {"login": "alice"}}
    }
    assert (await demo.client.get(SESSION, headers=LOCAL)).json()["token"] == first
    await demo.ask("mutation { logOut(input: {}) { userErrors { code } } }", first)
    second = (await demo.client.get(SESSION, headers=LOCAL)).json()["token"]
    assert second != first
    assert (await demo.ask("{ viewer { user { login } } }", second)).status_code == 200


async def test_the_page_can_be_logged_in_as_the_users_of_the_demo_only(demo: Api) -> None:
    """Carol signed up like a visitor; she is not one of the demo's users."""
    bob = (await demo.client.get("/playground/session.json?login=bob", headers=LOCAL)).json()
    assert (await demo.ask("{ viewer { user { login } } }", bob["token"])).json()["data"] == {
        "viewer": {"user": {"login": "bob"}}
    }
    for query in ("?login=carol", "?login=", ""):
        refused = await demo.client.get(f"/playground/session.json{query}", headers=LOCAL)
        assert (refused.status_code, refused.json().get("token")) == (404, None)


async def test_the_page_cannot_be_logged_in_as_users_who_are_gone(demo: Api) -> None:
    """They have deleted the account since the last log-in, or are suspended."""
    for login in ("alice", "bob"):
        assert (await demo.client.get(f"/playground/session.json?login={login}", headers=LOCAL)).status_code == 200
    alice, bob = await demo.graph.users.ids_of_logins(["alice", "bob"])
    assert alice is not None
    assert bob is not None
    await demo.graph.account_deletion.delete(alice, "correct horse")
    await demo.graph.moderation.suspend(bob)
    for login in ("alice", "bob"):
        refused = await demo.client.get(f"/playground/session.json?login={login}", headers=LOCAL)
        assert (refused.status_code, refused.json().get("token")) == (404, None)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "192.168.1.5:8000"])
async def test_the_token_is_for_pages_of_this_server_only(demo: Api, host: str) -> None:
    """A site whose host name resolves to this machine gets the examples but no token."""
    assert (await demo.client.get(SESSION, headers={"host": host})).status_code == 403
    start = (await demo.client.get("/playground/start.json", headers={"host": host})).json()
    assert start["examples"]
    assert start["users"] == []


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
async def test_the_token_is_not_sent_through_a_proxy(demo: Api, header: str) -> None:
    """A proxy on this machine forwards requests of other machines."""
    assert (await demo.client.get(SESSION, headers=LOCAL | {header: "for=127.0.0.1"})).status_code == 403


async def test_outside_the_demo_the_playground_is_anonymous(api: Api) -> None:
    assert (await api.client.get(SESSION, headers=LOCAL)).status_code == 403
    assert (await api.client.get("/playground/start.json", headers=LOCAL)).json()["users"] == []


async def test_no_other_site_gets_the_token_when_all_origins_are_allowed(settings: Settings, graph: Graph) -> None:
    """Allowed origins, and other pages on this machine, may use the API, but not the demo's sessions."""
    await graph.users.sign_up("alice", "correct horse")
    open_to_all = settings.model_copy(update={"allowed_origins": ("*",)})
    async with serving(open_to_all, graph, demo=Demo(PEOPLE)) as api:
        own = str(api.client.base_url).rstrip("/")
        others = ("https://elsewhere.example", "null", "http://localhost:5173")
        given = [{}, {"origin": own}, *({"origin": other} for other in others)]
        statuses = [(await api.client.get(SESSION, headers=headers)).status_code for headers in given]
    assert statuses == [200, 200, 403, 403, 403]


@pytest.mark.parametrize(("days", "renews"), [(4, False), (6, True)])
async def test_the_demo_renews_its_session_before_it_expires(
    settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch, days: int, renews: bool
) -> None:
    """Every page starts with a token that is valid for at least half a session."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time() + timedelta(days=days).total_seconds(), tz)

    await graph.users.sign_up("alice", "correct horse")
    brief = settings.model_copy(update={"session_ttl": timedelta(days=10)})
    async with serving(brief, graph, demo=Demo(PEOPLE)) as api:
        first = (await api.client.get(SESSION)).json()["token"]
        monkeypatch.setattr("server.playground.visitors.datetime", Later)
        second = (await api.client.get(SESSION)).json()["token"]
        assert (first != second) is renews
        assert (await api.ask("{ viewer { user { login } } }", second)).json() == {
            "data": {"viewer": {"user": {"login": "alice"}}}
        }
