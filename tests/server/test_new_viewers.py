"""Log-ins and sign-ups with other fields in one document: the payload shows the new viewer.

The other fields are those of the client that sent the request: its session is checked, it acts, and its points are
spent.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from graph import Graph
from graph.model import Credentials
from resolvers import ids
from server.auth import Tokens
from server.settings import Settings
from tests.server.conftest import KEY, Api, events, serving
from tests.server.endpoint.test_session_cookies import OWN, cookie_of

ENTER = """%s(input: {login: "%s", password: "%s"}) { credentials { token viewer { user {
    login relationship { state } } sessions { current }
    homeTimeline { entries(first: 20) { nodes { ... on Post { text } } } } } }
    userErrors { code } }"""
LOG_IN, SIGN_UP = ENTER % ("logIn", "bob", "correct horse"), ENTER % ("signUp", "carol", "correct horse")
FAIL = ENTER % ("logIn", "bob", "wrong horse")
PUBLISH = 'publishPost(input: {text: "hi"}) { post { author { login relationship { state } } } }'
LOG_OUT = "logOut(input: {}) { userErrors { code } }"
VIEWER = "{ viewer { user { login } } }"
BALANCE = "{ rateLimit { remaining } }"
TRANSPORTS = ("http", "sse", "websocket")


def token_of(session: Credentials) -> str:
    return Tokens([KEY]).issue(session)


def viewer_named(login: str) -> dict[str, Any]:
    """Return the answer that shows a viewer."""
    return {"data": {"viewer": {"user": {"login": login}}}}


async def result_of(api: Api, transport: str, token: str | None, *fields: str) -> dict[str, Any]:
    """Return the result of a mutation on one of the transports."""
    document = f"mutation {{ {' '.join(fields)} }}"
    if transport == "http":
        answer: dict[str, Any] = (await api.ask(document, token)).json()
        return answer
    if transport == "sse":
        async with api.stream(document, token) as response:
            streamed: dict[str, Any] = (await anext(events(response))).data
            return streamed
    async with api.socket(token) as socket:
        await socket.subscribe("1", document)
        payload: dict[str, Any] = (await socket.receive())["payload"]
        return payload


async def posts_of(api: Api, *logins: str) -> list[int]:
    """Return the numbers of posts of users."""
    users = [each for each in await api.graph.users.ids_of_logins(logins) if each is not None]
    return list(await api.graph.users.posts_counts(users))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("anonymous", [True, False])
@pytest.mark.parametrize(("field", "name", "login"), [(LOG_IN, "logIn", "bob"), (SIGN_UP, "signUp", "carol")])
async def test_the_payload_shows_the_new_viewer_and_later_fields_are_the_senders(
    api: Api, transport: str, anonymous: bool, field: str, name: str, login: str
) -> None:
    """This holds for every sender, on every transport."""
    alice, _ = await api.token("alice"), await api.session("bob")

    result = await result_of(api, transport, None if anonymous else alice, field, PUBLISH)

    shown = result["data"][name]["credentials"]["viewer"]
    assert shown["user"] == {"login": login, "relationship": {"state": "YOU"}}
    assert sorted(each["current"] for each in shown["sessions"]) == ([False, True] if login == "bob" else [True])
    assert shown["homeTimeline"] == {"entries": {"nodes": []}}
    if anonymous:
        assert result["data"]["publishPost"] is None
        assert [each["extensions"]["code"] for each in result["errors"]] == ["UNAUTHENTICATED"]
    else:
        assert "errors" not in result
        assert result["data"]["publishPost"]["post"]["author"] == {"login": "alice", "relationship": {"state": "YOU"}}
    assert await posts_of(api, "alice", login) == [int(not anonymous), 0]
    assert (await api.ask(VIEWER, result["data"][name]["credentials"]["token"])).json() == viewer_named(login)
    assert (await api.ask(VIEWER, alice)).json() == viewer_named("alice")


async def test_payloads_after_a_log_in_show_the_sender(api: Api) -> None:
    alice, bob = await api.token("alice"), await api.token("bob")
    id_ = (await api.ask("{ viewer { user { id } } }", bob)).json()["data"]["viewer"]["user"]["id"]
    follow = f'followUsers(input: {{userIds: ["{id_}"]}}) {{ results {{ outcome }} viewer {{ user {{ login }} }} }}'

    result = await result_of(api, "http", alice, f"first: {follow}", LOG_IN, f"second: {follow}")

    outcomes = [result["data"][name]["results"] for name in ("first", "second")]
    assert outcomes == [[{"outcome": "FOLLOWED"}], [{"outcome": "ALREADY_FOLLOWING"}]]
    assert result["data"]["second"]["viewer"] == {"user": {"login": "alice"}}


@pytest.mark.parametrize(("blocked", "code"), [("alice", "BLOCKED"), ("bob", None)])
async def test_the_blocks_of_the_new_viewer_do_not_apply_to_the_sender(
    api: Api, blocked: str, code: str | None
) -> None:
    """The payload has loaded the blocks of the new viewer."""
    tokens = {"alice": await api.token("alice"), "bob": await api.token("bob")}
    carol, [user] = await api.session("carol"), await api.graph.users.ids_of_logins([blocked])
    assert user is not None
    post = await api.graph.posts.publish(carol.user, "hello")
    await api.graph.blocks.block(carol.user, user)
    like = f'likePost(input: {{postId: "{ids.encode(ids.Kind.POST, post.id)}"}}) {{ userErrors {{ code }} }}'

    result = await result_of(api, "http", tokens["alice"], LOG_IN, like)

    assert result["data"]["likePost"]["userErrors"] == ([{"code": code}] if code else [])


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_failed_log_in_shows_nothing(api: Api, transport: str) -> None:
    alice, _ = await api.token("alice"), await api.session("bob")
    result = await result_of(api, transport, alice, FAIL, PUBLISH)
    assert result["data"]["logIn"] == {"credentials": None, "userErrors": [{"code": "WRONG_CREDENTIALS"}]}
    assert result["data"]["publishPost"]["post"]["author"]["login"] == "alice"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_ended_session_cannot_log_in_others(api: Api, transport: str) -> None:
    """The session of the request is checked before anything is written."""
    session, bob = await api.session("alice"), await api.session("bob")
    await api.graph.sessions.end(session.user, session.id)

    if transport == "http":
        assert (await api.ask(f"mutation {{ {LOG_IN} }}", token_of(session))).status_code == 401
    else:
        async with api.stream(f"mutation {{ {LOG_IN} }}", token_of(session)) as response:
            assert response.status_code == 401

    assert len(await api.graph.sessions.live_sessions(bob.user)) == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_log_out_after_a_log_in_ends_the_session_of_the_sender(api: Api, transport: str) -> None:
    """The new session remains."""
    alice, _ = await api.token("alice"), await api.session("bob")

    result = await result_of(api, transport, alice, LOG_IN, LOG_OUT, PUBLISH)

    assert result["data"]["logOut"] == {"userErrors": []}
    assert [each["extensions"]["code"] for each in result["errors"]] == ["UNAUTHENTICATED"]
    assert (await api.ask(VIEWER, alice)).status_code == 401
    assert (await api.ask(VIEWER, result["data"]["logIn"]["credentials"]["token"])).json() == viewer_named("bob")


async def test_a_log_in_after_a_log_out_does_not_replace_the_session_of_a_socket(api: Api) -> None:
    """The socket is closed with the session that it began with, after its answer. Nobody is logged in until then."""
    alice, _ = await api.token("alice"), await api.session("bob")
    async with api.socket(alice) as socket:
        await socket.subscribe("1", f"mutation {{ {LOG_OUT} {LOG_IN} {PUBLISH} }}")
        result = (await socket.receive())["payload"]
        assert result["data"]["publishPost"] is None
        assert result["data"]["logIn"]["credentials"]["viewer"]["user"]["login"] == "bob"
        assert await socket.closed() == (4403, "The session has ended.")
    assert await posts_of(api, "alice", "bob") == [0, 0]
    assert (await api.ask(VIEWER, result["data"]["logIn"]["credentials"]["token"])).json() == viewer_named("bob")


async def test_a_socket_keeps_its_viewer_and_session(api: Api) -> None:
    """Its later operations act as before, and only the end of its own session closes it."""
    session, bob = await api.session("alice"), await api.session("bob")
    async with api.socket(token_of(session)) as socket:
        await socket.subscribe("1", f"mutation {{ {LOG_IN} }}")
        assert (await socket.receive())["payload"]["data"]["logIn"]["credentials"]["token"]
        assert (await socket.receive())["type"] == "complete"
        await api.graph.sessions.end(bob.user, None)
        await socket.subscribe("2", VIEWER)
        assert (await socket.receive())["payload"] == viewer_named("alice")
        await api.graph.sessions.end(session.user, session.id)
        assert await socket.closed() == (4403, "The session has ended.")


async def test_the_cookie_becomes_that_of_the_new_viewer(api: Api) -> None:
    """This also holds if the document has already ended the session of the former cookie."""
    await api.session("bob")
    for login, fields in (("alice", LOG_IN), ("dora", f"{LOG_OUT} {LOG_IN}")):
        headers = {"Cookie": f"fanline_session={await api.token(login)}", **OWN}
        response = await api.client.post("/graphql", json={"query": f"mutation {{ {fields} }}"}, headers=headers)
        api.client.cookies.clear()
        assert response.json()["data"]["logIn"]["credentials"]["token"] is None
        assert (await api.ask(VIEWER, str(cookie_of(response).value))).json() == viewer_named("bob")


@pytest.fixture
async def limited(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application with a rate of points that refills too slowly to affect the tests."""
    changed = {"rate_limits": True, "points_per_minute": 1}
    async with serving(settings.model_copy(update=changed), graph) as api:
        yield api


async def remaining(api: Api, token: str | None) -> int:
    """Return the points that remain to a client."""
    left: int = (await api.ask(BALANCE, token)).json()["data"]["rateLimit"]["remaining"]
    return left


@pytest.mark.parametrize("anonymous", [True, False])
async def test_the_points_of_the_sender_are_spent(limited: Api, anonymous: bool) -> None:
    """They are those of the network or of the token's user, even for what the payload shows of the new viewer."""
    alice, bob = await limited.token("alice"), await limited.token("bob")
    sender, others = (None, (alice, bob)) if anonymous else (alice, (None, bob))
    question = await remaining(limited, others[0]) - await remaining(limited, others[0])
    before, of_others = await remaining(limited, sender), [await remaining(limited, each) for each in others]

    answer = (await limited.ask(f"mutation {{ {LOG_IN} }}", sender)).json()

    assert answer["data"]["logIn"]["credentials"]["viewer"]["homeTimeline"]["entries"]
    assert [await remaining(limited, each) for each in others] == [each - question for each in of_others]
    assert before - await remaining(limited, sender) > 200, "a page of the home timeline"
