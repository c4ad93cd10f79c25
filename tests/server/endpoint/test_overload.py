"""Overload: how each transport refuses operations, and that every operation gives its permit back."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from graph import Graph, keys
from server.auth import Tokens
from server.embedded import EmbeddedStore
from server.settings import Settings
from server.transport import admission as transport_admission
from server.transport.admission import CEILING, INITIAL, Admission, Permit
from tests.conftest import SharedStore
from tests.server.conftest import KEY, Api, events, serving, until
from tests.server.transport.conftest import HANDSHAKE, Raw, close_all, post, refused
from tests.support.cluster import cluster_in, nodes_of
from tests.support.graph_worlds import PATIENCE, posts
from tests.support.graphs import archive_url_of, open_graph
from tests.support.stopped import stopped

LIVE = "subscription { homeTimeline { cursor ... on PostAdded { post { text } } } }"
QUERY = "{ __typename }"
MUCH = b"x" * 90_000


def admission(api: Api) -> Admission:
    """Return the limit of the served application."""
    found = api.app.state.admission
    assert isinstance(found, Admission)
    return found


@pytest.fixture
def full(api: Api) -> Api:
    """Return a served application that runs as many operations as it can."""
    admission(api).running += CEILING
    return api


@pytest.fixture(autouse=True)
async def closing_all() -> AsyncIterator[None]:
    """Close every raw connection after the test."""
    yield
    await close_all()


def overload(response: httpx.Response) -> int:
    """Return the seconds after which a refusal asks the client to try again."""
    assert response.status_code == 503
    [error] = response.json()["errors"]
    assert error["extensions"]["code"] == "OVERLOADED"
    assert error["extensions"]["retryAfter"] == int(response.headers["retry-after"])
    return int(response.headers["retry-after"])


async def test_operations_are_refused_with_the_time_to_try_again(full: Api) -> None:
    """The refusals are JSON, with the headers of every response. The times differ between clients."""
    responses = [await full.ask(QUERY) for _ in range(6)]
    assert {overload(response) for response in responses} == {1, 2, 3}
    assert responses[0].headers["content-type"] == "application/json"
    assert responses[0].headers["x-content-type-options"] == "nosniff"
    assert responses[0].headers["vary"] == "Origin"
    overload(await full.client.get("/graphql", params={"query": QUERY}))


async def test_a_web_page_can_read_the_refusal(settings: Settings, graph: Graph) -> None:
    allowed = settings.model_copy(update={"allowed_origins": ("https://app.example",)})
    async with serving(allowed, graph) as api:
        admission(api).running += CEILING
        response = await api.client.post("/graphql", json={"query": QUERY}, headers={"origin": "https://app.example"})
        preflight = await api.client.options(
            "/graphql", headers={"origin": "https://app.example", "access-control-request-method": "POST"}
        )
    overload(response)
    assert response.headers["access-control-allow-origin"] == "https://app.example"
    assert "retry-after" in response.headers["access-control-expose-headers"]
    assert preflight.status_code == 200


async def test_health_and_metrics_are_served_during_overload(full: Api) -> None:
    assert (await full.client.get("/health/live")).status_code == 200
    assert (await full.client.get("/health/ready")).status_code == 200
    overload(await full.ask(QUERY))
    metrics = (await full.client.get("/metrics")).text
    assert "fanline_operations_refused_total 1.0" in metrics
    assert f"fanline_operations_running {CEILING}.0" in metrics


async def test_a_refused_connection_can_be_used_again(full: Api) -> None:
    """The body that follows is discarded. Pipelined requests are refused in order."""
    raw = await Raw.open(full)
    await raw.send(post(f"{{ __typename }} #{MUCH.decode()}"))
    assert (await raw.response())[0] == 503
    await raw.send(post() + b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n" + post())
    assert [(await raw.response())[0] for _ in range(3)] == [503, 200, 503]
    admission(full).running = 0
    await raw.send(post())
    assert (await raw.response())[0] == 200


async def test_a_body_is_not_awaited(full: Api) -> None:
    """The refusal comes before the body. A client that waits for `100 Continue` is disconnected."""
    raw = await Raw.open(full)
    await raw.send(post()[:-5])
    assert (await raw.response())[0] == 503
    careful = await Raw.open(full)
    await careful.send(post(QUERY, "Expect: 100-continue"))
    assert b"\r\nconnection: close\r\n" in await careful.until(b"\r\n\r\n")
    await careful.rest()


async def test_a_refusal_honours_connection_close(full: Api) -> None:
    raw = await Raw.open(full)
    await raw.send(post(QUERY, "Connection: close"))
    assert (await raw.response())[0] == 503
    assert await raw.rest() == b""


async def test_a_client_that_does_not_read_refusals_is_dropped(full: Api) -> None:
    """Refusals are written without waiting, so they must not pile up."""
    raw = await Raw.open(full)
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads as well
    await raw.send(*[post() * 500] * 200)
    await until(lambda: not full.server.server_state.connections)


async def test_event_streams_are_refused(full: Api) -> None:
    async with full.stream(LIVE, await full.token("alice")) as response:
        await response.aread()
        overload(response)


async def test_a_handshake_is_refused(full: Api) -> None:
    """Clients reconnect after a while, as after any failed handshake."""
    with pytest.raises(InvalidStatus) as refusal:
        async with full.open_socket():
            pass
    assert refusal.value.response.status_code == 503
    assert refusal.value.response.headers["retry-after"] == "2"
    assert refused(full) == {"overload": 1}


async def test_operations_of_a_socket_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket stays open, and so do its subscriptions."""
    monkeypatch.setattr(transport_admission, "PATIENCE_SECONDS", 0.0)
    session = await api.session("alice")
    async with api.socket(Tokens([KEY]).issue(session)) as socket:
        await socket.subscribe("live", LIVE)
        assert (await socket.receive())["id"] == "live"
        admission(api).running += CEILING
        await socket.subscribe("1", QUERY)
        message = await socket.receive()
        assert (message["id"], message["type"]) == ("1", "error")
        assert message["payload"][0]["extensions"]["code"] == "OVERLOADED"
        assert message["payload"][0]["extensions"]["retryAfter"] > 0
        await posts(api.graph, session.user, "still live")
        assert (await socket.receive())["id"] == "live"


async def test_an_operation_of_a_socket_waits_for_a_permit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock clients do not repeat a subscription that was refused."""
    monkeypatch.setattr(transport_admission, "PATIENCE_SECONDS", PATIENCE)
    waiting, wait = asyncio.Event(), admission(api).wait

    async def noted() -> Permit | None:
        waiting.set()
        return await wait()

    monkeypatch.setattr(admission(api), "wait", noted)
    async with api.socket(await api.token("alice")) as socket:
        admission(api).running += CEILING
        await socket.subscribe("1", LIVE)
        await waiting.wait()
        admission(api).running -= CEILING
        assert (await socket.receive())["type"] == "next"
        assert admission(api).refused == 0


@pytest.mark.parametrize("operation", [QUERY, "mutation { __typename }", LIVE])
async def test_a_socket_without_other_operations_stays_open(
    api: Api, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused operation can be sent again over the same socket."""
    monkeypatch.setattr(transport_admission, "PATIENCE_SECONDS", 0.0)
    async with api.socket(await api.token("alice")) as socket:
        admission(api).running += CEILING
        await socket.subscribe("1", operation)
        assert (await socket.receive())["type"] == "error"
        admission(api).running -= CEILING
        await socket.subscribe("1", operation)
        assert (await socket.receive())["type"] == "next"


async def test_a_connection_is_refused_after_its_handshake(api: Api) -> None:
    """After this close code, clients reconnect later and only then send their operations."""
    async with api.open_socket() as socket:
        admission(api).running += CEILING
        await socket.send(type="connection_init")
        assert (await socket.closed())[0] == 1013


async def test_running_streams_continue(api: Api) -> None:
    session = await api.session("alice")
    async with api.stream(LIVE, Tokens([KEY]).issue(session)) as response:
        streamed = events(response)
        await anext(streamed)
        assert admission(api).running == 0
        admission(api).running += CEILING
        await posts(api.graph, session.user, "still live")
        event = await anext(streamed)
    assert event.data["data"]["homeTimeline"]["post"]["text"] == "still live"


async def test_every_operation_gives_its_permit_back(api: Api) -> None:
    """This holds for results, errors, refusals and disconnects."""
    token = await api.token("alice")
    await api.ask(QUERY)
    await api.ask("{ viewer { user { login } } }", token)
    await api.ask("{ nothing }")
    await api.ask("{ viewer { user { login } } }", "not a token")
    await api.client.post("/graphql", content=b"{", headers={"content-type": "application/json"})
    await api.client.put("/graphql")
    await api.client.get("/graphql", headers={"accept": "text/html"})
    for query in (LIVE, QUERY, "{ nothing }", "mutation A { __typename } mutation B { __typename }"):
        async with api.stream(query, token):
            pass
        async with api.stream(query):
            pass
    async with api.socket(token) as socket:
        for nth, query in enumerate((QUERY, "{ nothing }", LIVE)):
            await socket.subscribe(str(nth), query)
            await socket.receive()
        for nth in range(20):
            await socket.subscribe(f"late {nth}", LIVE)
    raw = await Raw.open(api)
    await raw.send(HANDSHAKE)
    await raw.send(post()[:-5])
    raw.close()
    await until(lambda: admission(api).running == 0)


async def test_slow_bodies_do_not_use_up_the_limit(api: Api) -> None:
    """A request takes a permit again when its body has arrived, and is refused if there is none."""
    clients = [await Raw.open(api) for _ in range(3)]
    for client in clients:
        await client.send(post()[:-5])
    await until(lambda: len(api.server.server_state.tasks) == 3)
    await until(lambda: admission(api).running == 0)
    await clients[0].send(post()[-5:])
    assert (await clients[0].response())[0] == 200
    admission(api).running += CEILING
    await clients[1].send(post()[-5:])
    status, body = await clients[1].response()
    assert status == 503
    assert json.loads(body)["errors"][0]["extensions"]["retryAfter"] == 2
    assert admission(api).running == CEILING
    clients[2].close()


async def test_operations_that_wait_for_their_turn_do_not_use_up_the_limit(
    settings: Settings, graph: Graph, running_store: SharedStore
) -> None:
    """An operation takes a permit again at its turn, and is refused if there is none."""
    alone = settings.model_copy(update={"rate_limits": True, "operations_at_once": 1})
    async with serving(alone, graph) as api:
        token = await api.token("alice")
        with stopped(*(node.pid for node in nodes_of(running_store))):
            asked = [asyncio.ensure_future(api.ask("{ viewer { user { login } } }", token)) for _ in range(4)]
            await until(lambda: len(api.server.server_state.tasks) == 4)
            await until(lambda: admission(api).running == 1)
            admission(api).running += CEILING
        statuses = Counter([response.status_code for response in await asyncio.gather(*asked)])
        assert statuses == {200: 1, 503: 3}
        assert admission(api).running == CEILING
        admission(api).running -= CEILING
        assert (await api.ask("{ viewer { user { login } } }", token)).status_code == 200


async def test_requests_beyond_the_limit_wait(api: Api, running_store: SharedStore) -> None:
    """A number of requests is always accepted. A client that disconnects while waiting is forgotten."""
    request = post("{ viewer { user { login } } }", f"Authorization: Bearer {await api.token('alice')}")
    admission(api).limit = 1.0
    *clients, gone = [await Raw.open(api) for _ in range(5)]
    with stopped(*(node.pid for node in nodes_of(running_store))):
        for client in clients:
            await client.send(request)
        await until(lambda: admission(api).accepted == 4)
        await gone.send(post())
        await until(lambda: admission(api).accepted == 5)
        gone.close()
        assert len(api.server.server_state.tasks) == 1
    assert [(await client.response())[0] for client in clients] == [200] * 4
    await until(lambda: admission(api).accepted == 0)


async def test_load_shedding_can_be_disabled(settings: Settings, graph: Graph) -> None:
    async with serving(settings.model_copy(update={"load_shedding": False}), graph) as api:
        admission(api).running += 2 * CEILING
        assert (await api.ask(QUERY)).status_code == 200


async def test_a_probe_of_the_store_is_answered(api: Api) -> None:
    assert await probe(api.app.state.graph) == keys.LOG


@pytest.mark.slow
async def test_each_primary_of_a_cluster_is_probed(tmp_path: Path) -> None:
    """The primaries are probed in rotation."""
    with cluster_in(tmp_path) as cluster:
        graph = await open_graph(cluster.url)
        try:
            await graph.store.ping()
            found = {cluster.owner(await probe(graph)).port for _ in cluster.primaries}
        finally:
            await graph.close()
    assert found == {node.port for node in cluster.primaries}


async def probe(graph: Graph) -> str:
    """Return the key that a probe has read."""
    answered = asyncio.get_running_loop().create_future()
    graph.probe(answered.set_result)
    async with asyncio.timeout(PATIENCE):
        return str(await answered)


async def test_mutations_that_fail_on_the_store_answer_503(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """This is the same as for queries, and also applies without a token. The failed fields are null."""
    store = EmbeddedStore(tmp_path)
    store.start()
    away = settings.model_copy(update={"store_url": store.url, "archive_url": archive_url_of(store.url)})
    try:
        async with serving(away, graph) as api:
            store.stop()
            document = (
                'mutation { logIn(input: {login: "alice", password: "correct horse"}) { credentials { token } } }'
            )
            response = await api.ask(document)
            partial = await api.ask('{ user(by: {login: "alice"}) { login } __typename }')
    finally:
        store.stop()
    assert response.status_code == 503
    assert response.json()["data"] == {"logIn": None}
    assert response.json()["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
    assert partial.status_code == 200
    assert partial.json()["data"] == {"user": None, "__typename": "Query"}


async def test_a_full_log_asks_clients_to_wait_longer(api: Api) -> None:
    """Changes are refused until events have been archived."""
    token = await api.token("alice")
    api.app.state.graph.log.limit = 1
    response = await api.ask('mutation { publishPost(input: {text: "one"}) { post { id } } }', token)
    assert overload(response) == 10


async def test_a_subscription_that_cannot_start_exceeds_the_deadline(
    settings: Settings, graph: Graph, running_store: SharedStore
) -> None:
    """The deadline applies to the start, on any transport. Later events may come at any time."""
    impatient = settings.model_copy(update={"deadline": timedelta(milliseconds=300)})
    async with serving(impatient, graph) as api:
        token = await api.token("alice")
        async with api.stream(LIVE, token) as running:
            streamed = events(running)
            await anext(streamed)
            with stopped(*(node.pid for node in nodes_of(running_store))):
                async with api.stream(LIVE, token) as response:
                    event = await anext(events(response))
    assert event.data["errors"][0]["extensions"]["code"] == "DEADLINE_EXCEEDED"


async def test_a_flood_is_refused_in_part(api: Api) -> None:
    """Some operations are answered and the others refused. Afterwards all are answered again."""
    token = await api.token("alice")
    request = post(
        "{ viewer { homeTimeline { entries(first: 30) { nodes { ... on Post { text } } } } } }",
        f"Authorization: Bearer {token}",
    )
    statuses = Counter[int]()

    async def flood() -> None:
        raw = await Raw.open(api)
        while not statuses[503]:
            await raw.send(request)
            statuses[(await raw.response())[0]] += 1

    await asyncio.gather(*(flood() for _ in range(4 * INITIAL)))
    assert set(statuses) == {200, 503}
    assert admission(api).refused == statuses[503]
    assert admission(api).running == 0
    assert (await api.ask(QUERY)).status_code == 200
