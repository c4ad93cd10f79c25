"""WebSockets with the protocol graphql-transport-ws."""

import json
from datetime import timedelta
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from graph import Graph
from server.auth import Tokens
from server.endpoint.websocket import SocketHandler
from server.settings import Settings
from tests.server.conftest import KEY, Api, serving, until
from tests.server.operations.readers import paused

LIVE = "subscription { homeTimeline { __typename cursor ... on PostAdded { post { text author { login } } } } }"


async def next_of(socket: Any, id: str) -> Any:
    """Return the next result of an operation."""
    message = await socket.receive()
    assert (message["type"], message["id"]) == ("next", id)
    return message["payload"]


async def test_a_subscription_receives_new_posts(api: Api) -> None:
    """A Checkpoint comes first, then the post with the selected fields."""
    session = await api.session("alice")
    async with api.socket(Tokens([KEY]).issue(session)) as socket:
        await socket.subscribe("1", LIVE)
        first = await next_of(socket, "1")
        assert first["data"]["homeTimeline"]["__typename"] == "Checkpoint"
        await api.graph.posts.publish(session.user, "你好")
        event = (await next_of(socket, "1"))["data"]["homeTimeline"]
        assert event["post"] == {"text": "你好", "author": {"login": "alice"}}
        await socket.send(type="complete", id="1")
        await socket.send(type="ping")
        assert await socket.receive() == {"type": "pong"}


async def test_queries_and_mutations_run_on_a_socket(api: Api) -> None:
    """Each has one result and completes. A later query sees the effect of an earlier mutation."""
    async with api.socket(await api.token("alice")) as socket:
        await socket.subscribe("q", "{ viewer { user { bio } } }")
        assert await next_of(socket, "q") == {"data": {"viewer": {"user": {"bio": ""}}}}
        assert await socket.receive() == {"type": "complete", "id": "q"}
        await socket.subscribe("m", 'mutation { updateProfile(input: {bio: "new"}) { user { bio } } }')
        assert (await next_of(socket, "m"))["data"]["updateProfile"] == {"user": {"bio": "new"}}
        assert await socket.receive() == {"type": "complete", "id": "m"}
        await socket.subscribe("q", "{ viewer { user { bio } } }")
        assert await next_of(socket, "q") == {"data": {"viewer": {"user": {"bio": "new"}}}}


async def test_an_invalid_operation_leaves_the_socket_open(api: Api) -> None:
    """This applies to syntax errors, unknown fields and bad arguments."""
    async with api.socket(await api.token("alice")) as socket:
        for number, (document, code) in enumerate(
            [
                ("subscription {", "GRAPHQL_PARSE_FAILED"),
                ("subscription { nothing { id } }", "GRAPHQL_VALIDATION_FAILED"),
                ('subscription { homeTimeline(after: "x") { cursor } }', "BAD_USER_INPUT"),
                ("query A { __typename } query B { __typename }", "BAD_USER_INPUT"),
                ("subscription A { homeTimeline { cursor } } query B { __typename }", "BAD_USER_INPUT"),
                ("subscription ($x: String!) { homeTimeline(after: $x) { cursor } }", "BAD_USER_INPUT"),
                ('subscription { homeTimeline(after: "") { cursor } }', "BAD_USER_INPUT"),
            ]
        ):
            await socket.subscribe(str(number), document)
            message = await socket.receive()
            errors = message["payload"] if message["type"] == "error" else message["payload"]["errors"]
            assert errors[0]["extensions"]["code"] == code
            assert errors[0]["extensions"]["requestId"]
            if message["type"] == "next":
                assert (await socket.receive())["type"] == "complete"
        await socket.send(type="ping")
        assert await socket.receive() == {"type": "pong"}


async def test_an_anonymous_socket_has_no_home_timeline(api: Api) -> None:
    async with api.socket() as socket:
        await socket.subscribe("1", LIVE)
        message = await socket.receive()
        errors = message["payload"] if message["type"] == "error" else message["payload"]["errors"]
        assert errors[0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("Bearer nonsense", "The access token is malformed."),
        ("", "The Authorization header must be 'Bearer' followed by an access token."),
        (7, "The Authorization header must be 'Bearer' followed by an access token."),
        (None, None),
    ],
)
async def test_a_bad_token_closes_the_socket(api: Api, authorization: object, reason: str | None) -> None:
    """The code is 4403, with the reason. Null counts as no token."""
    async with api.open_socket() as socket:
        await socket.send(type="connection_init", payload={"authorization": authorization})
        if reason is None:
            assert await socket.receive() == {"type": "connection_ack"}
        else:
            assert await socket.closed() == (4403, reason)


async def test_the_token_may_be_a_header_of_the_handshake(api: Api) -> None:
    """A bad token there is refused as well."""
    token = await api.token("alice")
    async with api.open_socket(authorization=f"Bearer {token}") as socket:
        await socket.send(type="connection_init")
        assert await socket.receive() == {"type": "connection_ack"}
        await socket.subscribe("1", "{ viewer { user { login } } }")
        assert (await next_of(socket, "1"))["data"] == {"viewer": {"user": {"login": "alice"}}}
    async with api.open_socket(authorization="Bearer x") as socket:
        await socket.send(type="connection_init")
        assert await socket.closed() == (4403, "The access token is malformed.")


async def test_an_ended_session_opens_no_socket(api: Api) -> None:
    """The session is checked before the acknowledgement."""
    session = await api.session("alice")
    await api.graph.sessions.end(session.user, session.id)
    async with api.open_socket() as socket:
        payload = {"authorization": f"Bearer {Tokens([KEY]).issue(session)}"}
        await socket.send(type="connection_init", payload=payload)
        assert await socket.closed() == (4403, "The session has ended. Log in again.")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"ping"',
        "{}",
        '{"type": 1}',
        '{"type": "nonsense"}',
        '{"type": "very long nonsense, 伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟伟"}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "id": 1, "payload": {"query": "{ __typename }"}}',
        '{"type": "subscribe", "id": "", "payload": {"query": "{ __typename }"}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": 7}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }", "variables": []}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }", "operationName": []}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }", "variables": {"x": "\\ud800"}}}',
        '{"type": "complete", "id": []}',
        b"binary",
    ],
)
async def test_an_invalid_message_closes_the_socket(api: Api, text: str | bytes) -> None:
    """The code is 4400, with the reason."""
    async with api.socket() as socket:
        await socket.connection.send(text)
        code, reason = await socket.closed()
        assert code == 4400
        assert reason


async def test_a_message_beyond_the_limit_closes_the_socket(api: Api) -> None:
    """The code is 1009, and the message is not read."""
    async with api.socket() as socket:
        await socket.subscribe("1", "{ __typename }" + " " * 300_000)
        assert (await socket.closed())[0] == 1009


async def test_nothing_runs_before_the_socket_is_acknowledged(api: Api) -> None:
    """An operation without connection_init closes the socket with 4401."""
    async with api.open_socket() as socket:
        await socket.subscribe("1", "{ __typename }")
        assert await socket.closed() == (4401, "Unauthorized")


async def test_a_socket_without_connection_init_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is 4408, after a timeout."""
    endpoint = api.websockets
    assert endpoint.connection_init_wait_timeout == timedelta(seconds=5)
    monkeypatch.setattr(endpoint, "connection_init_wait_timeout", timedelta(seconds=0.1))
    async with api.open_socket() as socket:
        assert (await socket.closed())[0] == 4408


async def test_the_legacy_protocol_is_not_supported(api: Api) -> None:
    """A client that offers only graphql-ws is closed with 4406; one that offers both gets the new protocol."""
    async with api.open_socket("graphql-ws") as socket:
        assert (await socket.closed())[0] == 4406
    async with api.open_socket("graphql-ws", "graphql-transport-ws") as socket:
        assert socket.connection.subprotocol == "graphql-transport-ws"


async def test_pages_of_other_origins_cannot_open_a_socket(settings: Settings, graph: Graph) -> None:
    """A setting can allow them. The server's own pages and clients without an origin can always open one."""
    allowed = settings.model_copy(update={"allowed_origins": ("https://app.example",)})
    async with serving(allowed, graph) as api:
        for origin in ("https://app.example", api.url):
            async with api.open_socket(origin=origin) as socket:
                await socket.send(type="connection_init")
                assert await socket.receive() == {"type": "connection_ack"}
        with pytest.raises(InvalidStatus, match="403"):
            async with api.open_socket(origin="https://evil.example"):
                pass


async def test_the_server_sends_pings_that_need_no_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.endpoint.websocket.PING_SECONDS", 0.01)
    async with api.socket() as socket:
        for _ in range(3):
            assert json.loads(await socket.connection.recv()) == {"type": "ping"}
        await socket.send(type="pong")
        await socket.subscribe("1", "{ __typename }")
        assert await next_of(socket, "1") == {"data": {"__typename": "Query"}}


async def test_protocol_violations_close_the_socket(api: Api) -> None:
    """A second `connection_init` gives 4429; an operation whose id is in use gives 4409."""
    async with api.socket() as socket:
        await socket.send(type="connection_init")
        assert await socket.closed() == (4429, "Too many initialisation requests")
    for id in ("1", "明" * 100):
        async with api.socket() as socket:
            await socket.subscribe(id, 'subscription { events(filter: {keywords: ["x"]}) { cursor } }')
            await next_of(socket, id)
            await socket.subscribe(id, "{ __typename }")
            code, reason = await socket.closed()
            assert (code, (reason or "")[:16]) == (4409, f"Subscriber for {id[0]}")


async def test_an_id_may_be_used_again_after_its_operation(api: Api) -> None:
    """The operation may be completed by the client or by the server."""
    async with api.socket(await api.token("alice")) as socket:
        for _ in range(3):
            await socket.subscribe("1", LIVE)
            await next_of(socket, "1")
            await socket.send(type="complete", id="1")
        await socket.subscribe("1", "{ __typename }")
        assert await next_of(socket, "1") == {"data": {"__typename": "Query"}}
        assert await socket.receive() == {"type": "complete", "id": "1"}


async def test_an_operation_that_the_client_has_completed_sends_nothing_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event is being executed when `complete` arrives, and the client then reuses the id."""
    document, cleanup = LIVE.replace("author { login }", ""), SocketHandler.cleanup_operation
    session = await api.session("alice")
    async with paused(api.endpoint.execution) as pause, api.socket(Tokens([KEY]).issue(session)) as socket:
        pause.go_on.set()
        await socket.subscribe("1", document)
        await next_of(socket, "1")
        await until(lambda: len(api.app.state.graph.feed) == 1)

        async def execute_and_clean_up(handler: SocketHandler, operation_id: str) -> None:
            pause.go_on.set()
            await cleanup(handler, operation_id)

        monkeypatch.setattr(SocketHandler, "cleanup_operation", execute_and_clean_up)
        pause.go_on.clear()
        pause.reached.clear()
        await api.graph.posts.publish(session.user, "an event")
        await pause.reached.wait()
        await socket.send(type="complete", id="1")
        await socket.subscribe("1", "{ __typename }")
        assert await next_of(socket, "1") == {"data": {"__typename": "Query"}}
