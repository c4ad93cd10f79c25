"""Explanations of operations: they have the numbers counted at the store, and only clients that ask get them."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.event import listen

from graph import Graph, keys
from graph.log.events import PostPublished
from graph.model import User
from graph.paging import CursorKind, Window, encode_cursor
from graph.recording import RECORDING
from server.auth import Tokens
from server.setting_values import Env
from server.settings import Settings
from tests.conftest import SharedStore
from tests.server.conftest import KEY, Api, events, serving
from tests.support.cluster import nodes_of
from tests.support.graph_worlds import append_events, counted
from tests.support.stopped import stopped

EXPLAIN = {"x-fanline-explain": "1"}
HOME = """query Home($first: Int!) { viewer { homeTimeline { entries(first: $first) { nodes {
    author { login followersCount } ... on Post { text } } } } } }"""
USER = """query Posts($after: String) { user(by: {login: "alice"}) { timeline {
    entries(first: 5, after: $after) { nodes { ... on Post { text } } } } } }"""
VIEWER = "{ viewer { user { login } } }"
LIVE = """subscription Live { homeTimeline {
    __typename ... on PostAdded { post { text author { login } } } } }"""


class Town:
    """A served application and a user of it."""

    def __init__(self, api: Api, user: User | None = None, token: str = "") -> None:
        self.api = api
        self.graph: Graph = api.app.state.graph
        self.user = user
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self.token = token

    async def ask(self, query: str, /, **variables: Any) -> tuple[dict[str, Any], int, int]:
        """Return the explanation of an operation, and the round trips and commands that the store counted meanwhile."""
        body = {"query": query, "variables": variables}
        async with counted(self.graph) as cost:
            response = await self.api.client.post("/graphql", json=body, headers=EXPLAIN | self.headers)
        answer = response.json()
        assert "errors" not in answer, answer
        explanation: dict[str, Any] = answer["extensions"]["explain"]
        return explanation, cost.round_trips, cost.commands


@pytest.fixture
async def town(api: Api) -> Town:
    """Return a town where alice follows five users with posts, and has a cached home timeline."""
    graph: Graph = api.app.state.graph
    users = [await api.graph.users.sign_up(f"user_{n}", "correct horse", "A name") for n in range(5)]
    alice = await api.graph.users.sign_up("alice", "correct horse", "Alice")
    await graph.follows.follow(alice.id, [user.id for user in users])
    for n in range(20):
        await graph.posts.publish(users[n % 5].id, f"post {n}")
    town = Town(api, alice, Tokens([KEY]).issue(await graph.sessions.start(alice.id)))
    await town.ask(HOME, first=10)
    await graph.timelines.wait_for_rebuilds()
    return town


def alice_of(town: Town) -> int:
    assert town.user is not None
    return town.user.id


async def test_store_numbers_are_those_that_the_store_counted(town: Town) -> None:
    """They include the session check, and agree for pages of any size, for counts and for a look-up by name."""
    for query, variables in ((HOME, {"first": 3}), (HOME, {"first": 15}), (VIEWER, {}), (USER, {})):
        explanation, round_trips, commands = await town.ask(query, **variables)
        store = explanation["store"]
        assert (store["roundTrips"], store["commands"]) == (round_trips, commands)
        assert sum(each["commands"] for each in store["exchanges"]) == commands
        assert all(each["milliseconds"] > 0 for each in store["exchanges"])


async def test_a_mutation_counts_its_writes(town: Town) -> None:
    """Publishing a post appends to the log, projects the event, and checks the session."""
    explanation, round_trips, commands = await town.ask(
        'mutation Publish { publishPost(input: {text: "hi"}) { postEdge { node { id } } } }'
    )
    assert (explanation["store"]["roundTrips"], explanation["store"]["commands"]) == (round_trips, commands)
    assert round_trips >= 3
    assert (explanation["operation"], explanation["kind"]) == ("Publish", "mutation")


async def test_operations_that_share_a_round_trip_are_kept_apart(town: Town) -> None:
    """Each explanation has only the commands of its own operation; together they have all commands."""
    async with counted(town.graph) as cost:
        home, *viewers = await asyncio.gather(town.ask(HOME, first=5), *(town.ask(VIEWER) for _ in range(5)))
    stores = [answer[0]["store"] for answer in (home, *viewers)]
    assert sum(store["commands"] for store in stores) == cost.commands
    assert sum(store["roundTrips"] for store in stores) >= cost.round_trips


async def test_a_page_from_the_cache(town: Town) -> None:
    """A page of ten scans eleven posts; authors are looked up in one batch."""
    explanation, _, _ = await town.ask(HOME, first=10)
    [page] = explanation["timelines"]["read"]
    assert (page["kind"], page["sources"], page["mergedAuthors"]) == ("HOME", ["cache"], 0)
    assert (page["scanned"], page["dropped"]) == (11, 0)
    loaders = {each["name"]: each for each in explanation["loaders"]}
    assert loaders["followers_counts"]["batches"] == [5]
    assert loaders["home_timelines"]["batches"] == [1]
    assert explanation["cost"]["points"] > 10


async def test_keys_that_need_no_look_up_are_cache_hits(town: Town) -> None:
    """Two aliases request the count of one user."""
    field = 'user(by: {login: "alice"}) { followersCount }'
    explanation, _, _ = await town.ask(f"{{ a: {field} b: {field} }}")
    counts = next(each for each in explanation["loaders"] if each["name"] == "followers_counts")
    assert (counts["batches"], counts["hits"]) == ([1], 1)


async def test_deleted_posts_are_dropped(town: Town) -> None:
    """The record of the post is a tombstone, while the home cache still lists the post."""
    newest = (await town.graph.timelines.home(alice_of(town), Window(1, forward=True))).items[0]
    await town.graph.store.run("HSET", keys.post(newest.id), "deleted", "1")
    await town.graph.store.run("HDEL", keys.post(newest.id), "author")

    explanation, round_trips, _ = await town.ask(HOME, first=3)

    assert (explanation["timelines"]["scanned"], explanation["timelines"]["dropped"]) == (5, 1)
    assert explanation["store"]["roundTrips"] == round_trips


async def test_a_page_without_a_cache_is_merged(town: Town) -> None:
    """Six timelines are merged, of the viewer and five followed users. Rebuilding the cache is not counted."""
    await town.graph.store.run("DEL", keys.home(alice_of(town)))
    explanation, _, _ = await town.ask(HOME, first=3)
    await town.graph.timelines.wait_for_rebuilds()
    [page] = explanation["timelines"]["read"]
    assert (page["sources"], page["mergedAuthors"], page["scanned"]) == (["merge"], 6, 4)
    assert explanation["store"]["roundTrips"] <= 5


async def test_a_page_from_the_archive(settings: Settings, graph: Graph) -> None:
    """The explanation has the statements that the database executed."""
    few = settings.model_copy(update={"hot_posts": 10})
    author = (await graph.users.sign_up("alice", "correct horse", "A name")).id
    posted = await append_events(graph, [PostPublished(author, f"post {n}") for n in range(1020)])
    async with serving(few, graph) as api:
        town, executed = Town(api), list[str]()
        await town.graph.worker().drain()
        await town.graph.archiver.work()
        engine = town.graph.archive.database.engine.sync_engine
        listen(engine, "before_cursor_execute", lambda _connection, _cursor, text, *_: executed.append(text))
        explanation, _, commands = await town.ask(USER, after=encode_cursor(CursorKind.POST, posted[300].number))
    [page] = explanation["timelines"]["read"]
    assert page["sources"] == ["merge", "archive"]
    assert explanation["archive"]["transactions"] == 1
    assert explanation["archive"]["queries"] == len([text for text in executed if not text.startswith("BEGIN")])
    assert explanation["archive"]["milliseconds"] > 0
    assert explanation["store"]["commands"] == commands


async def test_layers_and_the_reason_of_a_fallback(town: Town) -> None:
    """A plan has layers, in which every awaited field occurs; introspection needs graphql-core."""
    explanation, _, _ = await town.ask(HOME, first=3)
    executor = explanation["executor"]
    fields = {field for layer in executor["layers"] for field in layer["fields"]}
    assert (executor["mode"], executor["reason"]) == ("plan", None)
    assert {"Timeline.entries", "Post.author", "User.followersCount"} <= fields
    assert "Query.viewer" not in fields, "the viewer is known from the token"
    assert 0 < sum(layer["milliseconds"] for layer in executor["layers"]) <= explanation["milliseconds"]

    introspection, _, _ = await town.ask("{ __schema { queryType { name } } }")
    assert introspection["executor"]["mode"] == "graphql-core"
    assert "introspection" in introspection["executor"]["reason"]


async def test_an_explanation_is_not_cached(town: Town) -> None:
    """Shared caches ignore the header that asked for it."""
    answers = [
        await town.api.client.get("/graphql", params={"query": "{ __typename }"}, headers=headers)
        for headers in (EXPLAIN, {})
    ]
    assert [answer.headers.get("cache-control") for answer in answers] == ["no-store", None]


async def test_only_clients_that_ask_get_an_explanation(town: Town) -> None:
    """Other clients get none, and neither do clients whose operation is refused."""
    for given in ({}, {"x-fanline-explain": "0"}):
        response = await town.api.client.post("/graphql", json={"query": VIEWER}, headers=town.headers | given)
        assert response.json().keys() == {"data"}
    refused = await town.api.client.post("/graphql", json={"query": "{ nothing }"}, headers=town.headers | EXPLAIN)
    assert "extensions" not in refused.json()
    assert RECORDING.get() is None


@pytest.mark.parametrize(("setting", "explained"), [(None, False), (True, True), (False, False)])
async def test_production_explains_only_with_the_setting(
    settings: Settings, graph: Graph, setting: bool | None, explained: bool
) -> None:
    closed = settings.model_copy(update={"env": Env.PRODUCTION, "explain": setting})
    async with serving(closed, graph) as api:
        response = await api.client.post("/graphql", json={"query": VIEWER}, headers=EXPLAIN)
    assert ("extensions" in response.json()) is explained


async def test_an_explanation_names_no_keys_and_no_users(town: Town) -> None:
    """Apart from the ids of requested timelines, it contains only words of the schema and numbers."""
    explanation, _, _ = await town.ask(HOME, first=10)
    text = json.dumps(explanation)
    assert not any(word in text for word in ("user_", "alice", "{log}", "posts:", "post:", "SELECT", "127.0.0.1"))


async def test_a_socket_explains_queries_and_events(town: Town) -> None:
    """It does so if the payload has the extension `explain`. Each event has its own explanation."""
    asked = {"extensions": {"explain": True}}
    async with town.api.socket(town.token) as socket:
        await socket.send(type="subscribe", id="q", payload={"query": VIEWER, **asked})
        answer = await socket.receive()
        assert answer["payload"]["extensions"]["explain"]["store"]["commands"] > 0
        assert (await socket.receive())["type"] == "complete"
        await socket.send(type="subscribe", id="s", payload={"query": LIVE, **asked})
        checkpoint = await socket.receive()
        assert checkpoint["payload"]["extensions"]["explain"]["kind"] == "subscription"
        await town.graph.posts.publish(alice_of(town), "hello")
        event = await socket.receive()
    explanation = event["payload"]["extensions"]["explain"]
    assert event["payload"]["data"]["homeTimeline"]["post"]["text"] == "hello"
    assert explanation["executor"]["mode"] == "plan"
    assert {each["name"]: each["batches"] for each in explanation["loaders"]}["unchecked_users"] == [1]
    assert explanation["store"]["commands"] >= 1


async def test_an_event_stream_explains(town: Town) -> None:
    async with town.api.stream(VIEWER, town.token, x_fanline_explain="1") as response:
        [event, _] = [each async for each in events(response)]
    assert event.data["extensions"]["explain"]["executor"]["mode"] == "plan"


async def test_an_operation_that_exceeds_its_deadline_is_explained(
    settings: Settings, graph: Graph, running_store: SharedStore
) -> None:
    """Such operations need an explanation most."""
    hasty = settings.model_copy(update={"deadline": timedelta(milliseconds=50)})
    async with serving(hasty, graph) as api:
        headers = {"authorization": f"Bearer {await api.token('alice')}", **EXPLAIN}
        with stopped(*(node.pid for node in nodes_of(running_store))):
            response = await api.client.post("/graphql", json={"query": VIEWER}, headers=headers)
    answer = response.json()
    assert (response.status_code, response.headers["cache-control"]) == (503, "no-store")
    assert answer["errors"][0]["extensions"]["code"] == "DEADLINE_EXCEEDED"
    explanation = answer["extensions"]["explain"]
    assert (explanation["executor"]["mode"], explanation["store"]["roundTrips"]) == ("plan", 1)


async def test_invalid_variables_execute_nothing(town: Town) -> None:
    body = {"query": HOME, "variables": {"first": "many"}}
    answer = (await town.api.client.post("/graphql", json=body, headers=EXPLAIN | town.headers)).json()
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    assert answer["extensions"]["explain"]["executor"] == {"mode": "none", "reason": None, "layers": []}


async def test_an_ended_session_gets_no_explanation(town: Town) -> None:
    """Its query was executed until the session check had its answer."""
    await town.graph.sessions.end(alice_of(town))
    response = await town.api.client.post("/graphql", json={"query": HOME}, headers=EXPLAIN | town.headers)
    assert (response.status_code, response.json().keys()) == (401, {"errors"})


async def test_an_explanation_is_small(town: Town) -> None:
    """Of many aliases and pages, a hundred of each are listed, and all are counted."""
    users = " ".join(f'a{n}: user(by: {{login: "user_{n % 5}"}}) {{ ...T }}' for n in range(49))
    query = f"{{ {users} }} fragment T on User {{ timeline {{ a: entries(first: {{}}) {{ nodes {{ id }} }} }} }}"
    explanation, _, _ = await town.ask(query.replace("first: {}", "first: 1"))
    assert len(json.dumps(explanation)) < 20_000
    assert len(explanation["timelines"]["read"]) <= 100
