"""Pipelined requests: in order, bounded, and dropped with their connection."""

import asyncio

from server.transport.http import HttpProtocol
from server.transport.limits import MAX_PIPELINED, MAX_PIPELINED_BODIES
from tests.server.conftest import Api, until
from tests.server.transport.conftest import LIVE, Raw, post, refused

ALIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"


async def stream(api: Api, raw: Raw, after: bytes = b"") -> None:
    """Open an event stream, send more data after its request, and wait for the first event."""
    token = await api.token("alice")
    await raw.send(post(LIVE, "Accept: text/event-stream", f"Authorization: Bearer {token}") + after)
    await raw.until(b"event: next")


async def test_pipelined_requests_are_served_in_order(raw: Raw) -> None:
    await raw.send(b"".join(post(f"{{ a{number}: __typename }}") for number in range(MAX_PIPELINED)))
    for number in range(MAX_PIPELINED):
        assert await raw.response() == (200, b'{"data":{"a%d":"Query"}}' % number)


async def test_excess_requests_are_dropped(api: Api, raw: Raw) -> None:
    """The queued requests are served, then the connection closes."""
    await raw.send(post() * 3000)
    answers = (await raw.rest()).count(b"HTTP/1.1 200 OK")
    assert answers == MAX_PIPELINED + 1
    assert refused(api) == {"pipeline": 1}


async def test_a_disconnect_ends_a_stream_with_requests_behind_it(api: Api, raw: Raw) -> None:
    """The stream ends at once, and the requests are not served."""
    await stream(api, raw, ALIVE * MAX_PIPELINED)
    assert len(api.app.state.graph.feed) == 1
    raw.close()
    await until(lambda: not len(api.app.state.graph.feed) and not api.server.server_state.tasks)
    assert not len(api.app.state.connections)
    names = {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}
    assert not any(name.startswith(("RequestResponseCycle", "EventStream")) for name in names)


async def test_excess_requests_behind_a_stream_are_not_queued(api: Api, raw: Raw) -> None:
    await stream(api, raw, ALIVE * 5000)
    [connection] = api.server.server_state.connections
    assert isinstance(connection, HttpProtocol)
    assert len(connection.pipeline) == MAX_PIPELINED
    raw.close()
    await until(lambda: not len(api.app.state.graph.feed) and not api.server.server_state.tasks)


async def test_a_client_that_continues_to_send_is_aborted(api: Api, raw: Raw) -> None:
    """Data after too many requests is discarded up to a limit."""
    await stream(api, raw, ALIVE * 1000)
    await raw.send(*[b"x" * 65536] * 200)
    await raw.rest()
    await until(lambda: not len(api.app.state.graph.feed))


async def test_bodies_of_waiting_requests_are_bounded(api: Api, raw: Raw) -> None:
    """The request beyond the limit and those after it are not served."""
    await stream(api, raw, post("{ __typename } #" + "x" * (MAX_PIPELINED_BODIES // 2)) * 3)
    await until(lambda: refused(api) == {"pipeline": 1})
    [connection] = api.server.server_state.connections
    assert isinstance(connection, HttpProtocol)
    assert len(connection.pipeline) == 1


async def test_an_invalid_request_does_not_affect_earlier_responses(api: Api, raw: Raw) -> None:
    """The earlier response is complete; then the connection closes."""
    await raw.send(post() + b"nonsense\r\n\r\n")
    assert (await raw.rest()).endswith(b'{"data":{"__typename":"Query"}}')
    assert refused(api) == {"malformed": 1}
