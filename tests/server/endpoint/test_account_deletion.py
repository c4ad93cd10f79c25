"""The deletion of an account on each transport: cookies, sockets and streams of the user end."""

from server.auth import Tokens
from tests.server.conftest import KEY, Api, events
from tests.server.endpoint.test_session_cookies import OWN, SIGN_UP, ask, cookie_of
from tests.server.test_session_endings import LIVE

DELETE = """mutation ($password: String!) { deleteAccount(input: {password: $password}) {
    deletedUserId userErrors { code field } } }"""
DELETE_CARLA = 'mutation { deleteAccount(input: {password: "%s"}) { userErrors { code } } }'


async def test_a_deletion_removes_the_cookie(api: Api) -> None:
    """A refused deletion does not remove it."""
    token = str(cookie_of(await ask(api, SIGN_UP, **OWN)).value)
    api.client.cookies.clear()

    refused = await ask(api, DELETE_CARLA % "a guess", token, **OWN)
    deleted = await ask(api, DELETE_CARLA % "a long password", token, **OWN)

    assert refused.json()["data"]["deleteAccount"]["userErrors"] == [{"code": "WRONG_CREDENTIALS"}]
    assert refused.headers.get_list("set-cookie") == []
    assert deleted.json()["data"] == {"deleteAccount": {"userErrors": []}}
    assert cookie_of(deleted)["max-age"] == "0"
    api.client.cookies.clear()
    assert (await ask(api, DELETE_CARLA % "a long password", token, **OWN)).status_code == 401


async def test_a_deletion_over_a_socket_closes_the_connections_of_all_sessions(api: Api) -> None:
    """The connection of the request closes after its answer. Without a live session, the error is UNAUTHENTICATED."""
    session = await api.session("alice")
    tokens = Tokens([KEY])
    another = tokens.issue(await api.graph.sessions.start(session.user))
    async with (
        api.socket() as anonymous,
        api.socket(tokens.issue(session)) as socket,
        api.stream(LIVE, another) as response,
    ):
        await anonymous.subscribe("1", DELETE, password="correct horse")
        assert (await anonymous.receive())["payload"]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        streamed = events(response)
        await anext(streamed)
        await socket.subscribe("1", DELETE, password="correct horse")
        payload = (await socket.receive())["payload"]["data"]["deleteAccount"]
        assert payload["userErrors"] == []
        assert payload["deletedUserId"]
        assert await socket.closed() == (4403, "The session has ended.")
        assert [event.name async for event in streamed] == ["next", "complete"]
    response = await api.ask(DELETE, another, password="correct horse")
    assert response.status_code == 401
    assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
