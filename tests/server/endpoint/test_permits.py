"""Permits of operations that last for long, or that never start."""

from server.auth import Tokens
from tests.conftest import SharedStore
from tests.server.conftest import KEY, Api, events, until
from tests.server.endpoint.test_overload import LIVE, QUERY, admission
from tests.server.transport.conftest import Raw, post
from tests.support.cluster import nodes_of
from tests.support.stopped import stopped


async def test_streams_do_not_use_up_the_limit(api: Api, running_store: SharedStore) -> None:
    """Neither running streams nor streams whose clients left before the first event hold a permit."""
    token = await api.token("alice")
    async with api.socket(token) as socket, api.stream(LIVE, token) as response:
        await socket.subscribe("1", LIVE)
        await socket.receive()
        received = events(response)
        await anext(received)
        await until(lambda: admission(api).running == 0)
        with stopped(*(node.pid for node in nodes_of(running_store))):
            raw = await Raw.open(api)
            await raw.send(post(LIVE, "accept: text/event-stream", f"authorization: Bearer {token}"))
            await until(lambda: admission(api).running == 1)
            raw.close()
            await until(lambda: admission(api).running == 0)


async def test_a_stream_of_an_ended_session_gives_its_permit_back(api: Api) -> None:
    session = await api.session("alice")
    await api.graph.sessions.end(session.user, session.id)
    async with api.stream(LIVE, Tokens([KEY]).issue(session)) as response:
        assert response.status_code == 401
    await until(lambda: admission(api).running == 0)


async def test_an_invalid_operation_of_a_socket_gives_its_permit_back(api: Api) -> None:
    async with api.socket(await api.token("alice")) as socket:
        await socket.send(type="subscribe", id="1", payload={"documentId": "unknown"})
        assert (await socket.receive())["type"] == "error"
        await socket.subscribe("2", QUERY)
        assert (await socket.receive())["type"] == "next"
        await until(lambda: admission(api).running == 0)
