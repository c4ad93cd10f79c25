"""The end of a session ends its sockets and event streams at once, with a reason."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from websockets.exceptions import ConnectionClosed

from resolvers.context import Viewer
from server.auth import Tokens
from tests.server.conftest import KEY, Api, events

LIVE = "subscription { homeTimeline { __typename cursor } }"
LOG_OUT = "mutation { logOut(input: {}) { userErrors { code } } }"


@pytest.fixture
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every token expire soon after its verification."""
    viewer = Tokens.viewer

    def soon_over(tokens: Tokens, authorization: object) -> Viewer | None:
        found = viewer(tokens, authorization)
        return replace(found, expires_at=datetime.now(UTC) + timedelta(seconds=0.3)) if found else None

    monkeypatch.setattr(Tokens, "viewer", soon_over)


@pytest.mark.parametrize("listens", [True, False])
async def test_a_log_out_closes_the_sockets_of_the_session(api: Api, listens: bool) -> None:
    """The code is 4403, for idle sockets as well. Sockets of the user's other sessions stay open."""
    session, other = await api.session("alice"), await api.session("bob")
    another = await api.graph.sessions.start(session.user)
    tokens = Tokens([KEY])
    async with (
        api.socket(tokens.issue(session)) as socket,
        api.socket(tokens.issue(another)) as stays,
        api.socket(tokens.issue(other)) as others,
    ):
        if listens:
            await socket.subscribe("1", LIVE)
            await socket.receive()
        await api.graph.sessions.end(session.user, session.id)
        assert await socket.closed() == (4403, "The session has ended.")
        for open_ in (stays, others):
            await open_.subscribe("1", "{ viewer { user { id } } }")
            assert (await open_.receive())["payload"]["data"]["viewer"]


async def test_a_log_out_on_a_socket_is_answered_first(api: Api) -> None:
    """Then the socket is closed like the others."""
    async with api.socket(await api.token("alice")) as socket:
        await socket.subscribe("live", LIVE)
        await socket.receive()
        await socket.subscribe("out", LOG_OUT)
        answers = [await socket.receive()]
        assert answers[0]["payload"] == {"data": {"logOut": {"userErrors": []}}}
        assert await socket.closed() == (4403, "The session has ended.")


async def test_a_mutation_on_an_open_socket_needs_a_live_session(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even if the end of the session has not been noticed yet."""
    monkeypatch.setattr("server.endpoint.websocket.SocketHandler._session_ended", lambda self: None)
    session = await api.session("alice")
    async with api.socket(Tokens([KEY]).issue(session)) as socket:
        await api.graph.sessions.end(session.user, session.id)
        await socket.subscribe("1", 'mutation { updateProfile(input: {bio: "x"}) { user { bio } } }')
        message = await socket.receive()
        assert message["type"] == "error"
        assert message["payload"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    [user] = await api.graph.users.get_many([session.user])
    assert user
    assert user.bio == ""


@pytest.mark.parametrize("listens", [True, False])
async def test_a_socket_ends_with_its_token(api: Api, short_lives: None, listens: bool) -> None:
    """The code is 4403, with or without a subscription."""
    async with api.socket(await api.token("alice")) as socket:
        if listens:
            with suppress(ConnectionClosed):
                await socket.subscribe("1", LIVE)
        assert await socket.closed() == (4403, "The access token has expired.")


async def test_an_event_stream_ends_with_its_token(api: Api, short_lives: None) -> None:
    """It ends with an error event and `complete`, so clients do not reconnect with that token."""
    async with api.stream(LIVE, await api.token("alice")) as response:
        *_, last, end = [event async for event in events(response)]
        assert (last.name, end.name) == ("next", "complete")
        assert last.data["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        assert last.data["errors"][0]["extensions"]["requestId"]


async def test_a_log_out_ends_the_event_streams_of_the_session(api: Api) -> None:
    session = await api.session("alice")
    async with api.stream(LIVE, Tokens([KEY]).issue(session)) as response:
        streamed = events(response)
        assert (await anext(streamed)).data["data"]["homeTimeline"]["__typename"] == "Checkpoint"
        await api.graph.sessions.end(session.user, None)
        last, end = [event async for event in streamed]
        assert (last.name, end.name) == ("next", "complete")
        assert last.data["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_ending_all_sessions_ends_all_connections(api: Api) -> None:
    """This applies to both transports and to all sessions of the user."""
    session = await api.session("alice")
    another = await api.graph.sessions.start(session.user)
    tokens = Tokens([KEY])
    async with api.socket(tokens.issue(session)) as socket, api.stream(LIVE, tokens.issue(another)) as response:
        streamed = events(response)
        await anext(streamed)
        await api.graph.sessions.end(session.user, None)
        assert await socket.closed() == (4403, "The session has ended.")
        assert [event.name async for event in streamed] == ["next", "complete"]


async def test_anonymous_sockets_are_not_affected(api: Api) -> None:
    session = await api.session("alice")
    async with api.socket() as anonymous, api.socket(Tokens([KEY]).issue(session)) as socket:
        await api.graph.sessions.end(session.user, None)
        assert (await socket.closed())[0] == 4403
        await anonymous.subscribe("1", "{ __typename }")
        assert (await anonymous.receive())["payload"] == {"data": {"__typename": "Query"}}


LEAVE_AND_POST = """mutation { logOut(input: {}) { userErrors { code } }
    publishPost(input: {text: "too late"}) { post { id } } }"""


@pytest.mark.parametrize("transport", ["http", "sse", "websocket"])
async def test_fields_after_a_log_out_have_no_viewer(api: Api, transport: str) -> None:
    """This holds within one document, on every transport."""
    session = await api.session("alice")
    token = Tokens([KEY]).issue(session)
    if transport == "http":
        result = (await api.ask(LEAVE_AND_POST, token)).json()
    elif transport == "sse":
        async with api.stream(LEAVE_AND_POST, token) as response:
            result = (await anext(events(response))).data
    else:
        async with api.socket(token) as socket:
            await socket.subscribe("1", LEAVE_AND_POST)
            result = (await socket.receive())["payload"]

    assert result["data"] == {"logOut": {"userErrors": []}, "publishPost": None}
    assert [error["extensions"]["code"] for error in result["errors"]] == ["UNAUTHENTICATED"]
    assert await api.graph.users.posts_counts([session.user]) == [0]


SIGN_UP = """mutation { signUp(input: {login: "%s", password: "a long password"}) { credentials { token } } }"""
SESSIONS = "{ viewer { sessions { id userAgent current } } }"
END = "mutation ($id: ID!) { endSession(input: {sessionId: $id}) { endedSessionId userErrors { code } } }"


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_a_session_has_the_user_agent_of_its_log_in(api: Api, transport: str) -> None:
    """It is cleaned and truncated, on every transport. Later requests do not change it."""
    api.client.headers["user-agent"] = "Phone/1.0  (\xe4)" + "x" * 300
    if transport == "http":
        data = (await api.ask(SIGN_UP % "erin")).json()["data"]
    else:
        async with api.socket() as socket:
            await socket.subscribe("1", SIGN_UP % "erin")
            data = (await socket.receive())["payload"]["data"]
    api.client.headers["user-agent"] = "Another"
    [session] = (await api.ask(SESSIONS, data["signUp"]["credentials"]["token"])).json()["data"]["viewer"]["sessions"]
    expected = "Phone/1.0 (" if transport == "http" else "Python/"
    assert session["userAgent"].startswith(expected)
    assert len(session["userAgent"]) <= 200
    assert session["current"]


async def test_ending_a_session_closes_its_connections(api: Api) -> None:
    """They close at once, on both transports. The connections of the session that ends it stay open."""
    session = await api.session("alice")
    lost = await api.graph.sessions.start(session.user, "Lost phone")
    tokens = Tokens([KEY])
    token, lost_token = tokens.issue(session), tokens.issue(lost)
    listed = (await api.ask(SESSIONS, token)).json()["data"]["viewer"]["sessions"]
    [id_] = [each["id"] for each in listed if each["userAgent"]]
    async with (
        api.socket(lost_token) as socket,
        api.socket(token) as stays,
        api.stream(LIVE, lost_token) as response,
    ):
        streamed = events(response)
        await anext(streamed)
        assert (await api.ask(END, token, id=id_)).json()["data"]["endSession"]["userErrors"] == []
        assert (await api.ask("{ viewer { id } }", lost_token)).status_code == 401
        assert await socket.closed() == (4403, "The session has ended.")
        assert [event.name async for event in streamed] == ["next", "complete"]
        await stays.subscribe("1", "{ viewer { user { id } } }")
        assert (await stays.receive())["payload"]["data"]["viewer"]


CHANGE = """mutation { changePassword(input: {currentPassword: "correct horse", newPassword: "a new password"}) {
    credentials { token } userErrors { code } } }"""


async def test_a_change_of_the_password_closes_the_connections_of_all_sessions(api: Api) -> None:
    """The connection of the request closes too, after its answer. The token in the payload works."""
    session = await api.session("alice")
    tokens = Tokens([KEY])
    another = tokens.issue(await api.graph.sessions.start(session.user))
    async with (
        api.socket(tokens.issue(session)) as socket,
        api.socket(another) as idle,
        api.stream(LIVE, another) as response,
    ):
        streamed = events(response)
        await anext(streamed)
        await socket.subscribe("1", CHANGE)
        payload = (await socket.receive())["payload"]["data"]["changePassword"]
        assert payload["userErrors"] == []
        assert await socket.closed() == (4403, "The session has ended.")
        assert await idle.closed() == (4403, "The session has ended.")
        assert [event.name async for event in streamed] == ["next", "complete"]
    assert (await api.ask("{ viewer { id } }", another)).status_code == 401
    answer = await api.ask("{ viewer { user { login } } }", payload["credentials"]["token"])
    assert answer.json()["data"] == {"viewer": {"user": {"login": "alice"}}}
