"""Request lines, headers, trailers and upgrades: limits and invalid requests."""

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from server.transport.limits import MAX_HEAD, MAX_HEADERS, MAX_URL
from server.transport.request_heads import SINGLE
from tests.server.conftest import Api, until
from tests.server.transport.conftest import HANDSHAKE, Raw, close_all, limit_times, post, refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

START = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"
CHUNKED = (
    b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'1a\r\n{"query":"{ __typename }"}\r\n'
)


@pytest.fixture
def api(shared_api: Api) -> Api:
    """Return the server of the module, which has refused nothing yet."""
    shared_api.app.state.connections.refused.clear()
    limit_times(shared_api)
    return shared_api


@pytest_asyncio.fixture(loop_scope="module")
async def raw(api: Api) -> Raw:
    """Open a connection."""
    return await Raw.open(api)


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def closing_all() -> AsyncIterator[None]:
    """Close every connection after the test."""
    yield
    await close_all()


async def test_headers_within_the_limits_are_accepted(raw: Raw) -> None:
    """They are just below the limits on their number, their length, and the length of the URL."""
    filler = b"".join(b"x%d: y\r\n" % number for number in range(MAX_HEADERS - 2))
    long = START.replace(b"live", b"live?" + b"q" * (MAX_URL - 100)) + b"cookie: " + b"c" * 8000 + b"\r\n" + filler
    await raw.send(long + b"\r\n")
    assert (await raw.response())[0] == 200


@pytest.mark.parametrize(
    ("head", "status", "reason"),
    [
        (START + b"accept: " + b"a" * 8193 + b"\r\n\r\n", 431, "headers"),
        (START + b"x: y\r\n" * MAX_HEADERS + b"\r\n", 431, "headers"),
        (START + b"".join(b"x: %b\r\n" % (b"y" * 8000) for _ in range(9)) + b"\r\n", 431, "headers"),
        (b"GET /" + b"u" * MAX_URL + b" HTTP/1.1\r\n\r\n", 414, "url"),
        (HANDSHAKE[:-2] + b"cookie: " + b"c" * 8193 + b"\r\n\r\n", 431, "headers"),
        (HANDSHAKE[:-2] + b"x: y\r\n" * MAX_HEADERS + b"\r\n", 431, "headers"),
        (b"nonsense\r\n\r\n", 400, "malformed"),
        (b"CONNECT x:1 HTTP/1.1\r\n\r\n", 400, "malformed"),
        (b"\r\n" * MAX_HEAD, 431, "headers"),
        (CHUNKED + b"0\r\n" + b"t: " + b"t" * 9000 + b"\r\n\r\n", 431, "headers"),
        (CHUNKED + b"1;" + b"e" * MAX_HEAD * 2 + b"\r\n", 431, "headers"),
        (CHUNKED + b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n", 431, "headers"),
    ],
)
async def test_headers_beyond_the_limits_are_refused(api: Api, raw: Raw, head: bytes, status: int, reason: str) -> None:
    """The refusal is counted, and the connection closes."""
    await raw.send(head)
    assert (await raw.response())[0] == status
    assert await raw.rest() == b""
    assert refused(api) == {reason: 1}


@pytest.mark.parametrize("host", [b"x", b"x:80", b"x:", b"fanline_app.internal:8000", b"192.0.2.1:1", b"[::1]:8000"])
async def test_a_host_is_a_name_or_an_address_with_an_optional_port(raw: Raw, host: bytes) -> None:
    await raw.send(START.replace(b"Host: x", b"HOST: " + host) + b"\r\n")
    assert (await raw.response())[0] == 200


NO_HOST = [b"", b"Host:", b"Host:   "]
WRONG_HOSTS = [
    b"a b",
    b"a, b",
    b"http://a",
    b"a/b",
    b"u@a",
    b"a:b",
    b"a:1:2",
    b"[::1",
    b"::1",
    b"[x]",
    b"a%",
    b"a\xc3\xa4",
    b"a?b",
]


@pytest.mark.parametrize("line", [*NO_HOST, *(b"Host: " + host for host in WRONG_HOSTS)])
@pytest.mark.parametrize("request_head", [START + b"\r\n", post(), HANDSHAKE], ids=["get", "post", "handshake"])
async def test_http_1_1_requires_a_valid_host(api: Api, raw: Raw, request_head: bytes, line: bytes) -> None:
    """This applies to requests and handshakes, because the host name decides which origin is the server's own."""
    await raw.send(request_head.replace(b"Host: x\r\n", line + b"\r\n" if line else b"", 1))
    status, text = await raw.response()
    assert (status, b"Host" in text) == (400, True)
    assert await raw.rest() == b""
    assert refused(api) == {"malformed": 1}


@pytest.mark.parametrize(
    ("line", "status"), [(b"", 200), (b"Host:\r\n", 200), (b"Host: x\r\n", 200), (b"Host: a b\r\n", 400)]
)
async def test_http_1_0_needs_no_host(raw: Raw, line: bytes, status: int) -> None:
    """Health checks of load balancers send none."""
    await raw.send(b"GET /health/live HTTP/1.0\r\n" + line + b"\r\n")
    assert (await raw.response())[0] == status


@pytest.mark.parametrize("version", [b"HTTP/2.0", b"HTTP/0.9"])
async def test_other_versions_are_refused(raw: Raw, version: bytes) -> None:
    await raw.send(START.replace(b"HTTP/1.1", version) + b"\r\n")
    assert (await raw.response())[0] == 400


@pytest.mark.parametrize("name", sorted(SINGLE))
@pytest.mark.parametrize("request_head", [post(), HANDSHAKE], ids=["post", "handshake"])
async def test_a_header_of_one_value_occurs_once(api: Api, raw: Raw, request_head: bytes, name: bytes) -> None:
    """Otherwise a proxy could use one line and the server another, even if only their case differs."""
    value = b"5" if name == b"content-length" else b"chunked" if name == b"transfer-encoding" else b"x"
    head = request_head.partition(b"\r\n\r\n")[0]
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((name + b":", b"content-length:"))]
    await raw.send(b"\r\n".join((*lines, name + b": " + value, b"X-Other: y", name.upper() + b": " + value, b"", b"")))
    status, text = await raw.response()
    assert status == 400
    assert name in text or name in (b"content-length", b"transfer-encoding")  # the parser refuses these
    assert refused(api) == {"malformed": 1}


async def test_headers_that_are_lists_may_occur_more_than_once(raw: Raw) -> None:
    """Proxies add such lines."""
    lists = [f"{name}: x" for name in ("Accept", "Via", "X-Forwarded-For", "Accept-Encoding", "Tracestate") * 2]
    await raw.send(post("{ __typename }", *lists))
    assert (await raw.response())[0] == 200


async def test_the_lines_of_a_connection_header_are_one_list(raw: Raw) -> None:
    """An upgrade may be requested in any of them, and the client may list its protocols in several lines."""
    several = b"Connection: Upgrade\r\nConnection: keep-alive\r\nSec-WebSocket-Protocol: other"
    await raw.send(HANDSHAKE.replace(b"Connection: Upgrade", several, 1))
    assert b" 101 " in await raw.until(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (b"Transfer-Encoding: gzip, chunked", b"1.1"),
        (b"Transfer-Encoding: gzip", b"1.1"),
        (b"Transfer-Encoding: chunked", b"1.0"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", b"1.1"),
    ],
)
async def test_a_body_with_an_unclear_length_or_coding_is_refused(raw: Raw, line: bytes, version: bytes) -> None:
    """A proxy could end the request elsewhere."""
    head = CHUNKED.replace(b"Transfer-Encoding: chunked", line).replace(b"HTTP/1.1", b"HTTP/" + version)
    await raw.send(head + b"0\r\n\r\n")
    assert (await raw.response())[0] == 400


@pytest.mark.parametrize("start", [START + b"accept: ", b"GET /", START + b"x"])
async def test_thirty_megabytes_of_headers_are_not_read(api: Api, raw: Raw, start: bytes) -> None:
    """The refusal follows after about 64 KB; a limited amount is discarded."""
    sending = asyncio.create_task(raw.send(start, *[b"a" * 65536] * 480))
    assert (await raw.response())[0] in (414, 431)
    assert await sending < 10_000_000  # what the buffers of the system hold, too
    await until(lambda: not api.server.server_state.connections)


async def test_trailers_are_not_headers(api: Api, raw: Raw) -> None:
    """They would arrive after the token was checked."""
    await raw.send(CHUNKED + b"0\r\nAuthorization: nonsense\r\n\r\n")
    assert await raw.response() == (200, b'{"data":{"__typename":"Query"}}')


async def test_bad_requests_are_not_logged(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Clients could fill the log."""
    for sent in (b"nonsense\r\n\r\n", START.replace(b"GET", b"GET /"), b"GET / HTTP/1.1\r\n:\r\n\r\n"):
        raw = await Raw.open(api)
        await raw.send(sent)
        await raw.rest()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("protocol", ["h2c", "foo", "h2c, websocket"])
async def test_upgrades_to_other_protocols_are_ignored(raw: Raw, protocol: str) -> None:
    """The request and its body are served as usual: Java's client always requests h2c."""
    request = post("{ __typename }", "Connection: keep-alive, Upgrade, HTTP2-Settings", f"Upgrade: {protocol}")
    for _ in range(2):
        await raw.send(request[:-5])
        await asyncio.sleep(0)
        await raw.send(request[-5:])
        assert await raw.response() == (200, b'{"data":{"__typename":"Query"}}')


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"GET", b"POST", 405),
        (b"HTTP/1.1", b"HTTP/1.0", 400),
        (b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", b"", 400),
        (b"AAAAAAAAAAAAAAAAAAAAAA==", b"AAAA", 400),
        (b"AAAAAAAAAAAAAAAAAAAAAA==", b"\xc3\xa4", 400),
        (b"Version: 13", b"Version: 8", 400),
        (b"Connection: Upgrade\r\n", b"", 400),
        (b"Upgrade: websocket", b"Upgrade: nonsense", 400),
        (b"Host: x", b"Content-Length: 5", 400),
        (b"Host: x", b"Transfer-Encoding: chunked", 400),
        (b"/graphql", b"/graphql?" + b"q" * 9000, 414),
        (b"/graphql", b"/graphql?\xc3\xa4", 400),
        (b"/graphql", b"/nowhere", 403),
    ],
)
async def test_invalid_handshakes_get_a_response(raw: Raw, old: bytes, new: bytes, status: int) -> None:
    await raw.send(HANDSHAKE.replace(old, new, 1))
    assert int((await raw.until(b"\r\n\r\n")).split()[1]) == status


async def test_frames_sent_with_the_handshake_are_processed(raw: Raw) -> None:
    """They are processed after the handshake."""
    init = b'{"type":"connection_init"}'
    await raw.send(HANDSHAKE + bytes([0x81, 0x80 | len(init), 0, 0, 0, 0]) + init)
    await raw.until(b"\r\n\r\n")
    assert (await raw.frame())[1] == b'{"type":"connection_ack"}'


async def test_a_pipelined_handshake_is_refused(raw: Raw) -> None:
    """The request before it is served."""
    await raw.send(post() + HANDSHAKE)
    assert (await raw.rest()).endswith(b'{"data":{"__typename":"Query"}}')


async def test_every_response_forbids_content_sniffing(api: Api, raw: Raw) -> None:
    """Pages also forbid referrers."""
    async with httpx.AsyncClient(base_url=api.url) as client:
        responses = [
            await client.get(path) for path in ("/graphql", "/health/live", "/nowhere", "/metrics", "/playground")
        ]
    for response in responses:
        assert response.headers.get_list("x-content-type-options") == ["nosniff"]
    assert response.headers["referrer-policy"] == "no-referrer"
    await raw.send(b"nonsense\r\n\r\n")
    assert b"x-content-type-options: nosniff" in await raw.rest()


@pytest.mark.parametrize("path", ["/graphql/", "/health/live/", "/metrics/", "//evil.example/graphql/"])
async def test_no_path_redirects_to_another_host(raw: Raw, path: str) -> None:
    """The `Host` header is chosen by the client."""
    await raw.send(b"GET %b HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n" % path.encode())
    answer = await raw.rest()
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"evil" not in answer
