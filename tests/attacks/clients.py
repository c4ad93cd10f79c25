"""Attackers' clients: raw requests, WebSockets, and streams of server-sent events."""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.attacks.victim import GRAPHQL, TIMEOUT_SECONDS, Victim

PROTOCOL: Any = "graphql-transport-ws"
STALLED = 1.0  # seconds after which a server that does not read has stopped for good


@dataclass(frozen=True)
class Answer:
    """The response to a raw request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def request(
    body: object = None, method: str = "POST", path: str = GRAPHQL, headers: Iterable[tuple[str, str]] = ()
) -> bytes:
    """Return a request as bytes. A body that is not bytes is encoded as JSON."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode() + content


def read_answer(connection: socket.socket) -> Answer:
    """Return one response. Raises HTTPException or OSError if there is none."""
    with contextlib.closing(http.client.HTTPResponse(connection)) as response:
        response.begin()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def exchange(victim: Victim, content: bytes, source: str = "127.0.0.1") -> Answer | None:
    """Send bytes until the server stops reading. Return one response, or None if the server closed the connection."""
    with victim.connect(source) as connection:
        push(connection, [content])
        try:
            return read_answer(connection)
        except (OSError, http.client.HTTPException):
            return None


def push(connection: socket.socket, parts: Iterable[bytes]) -> int:
    """Send parts until all are sent or the server closes or stops reading. Return the number of bytes sent."""
    sent = 0
    connection.settimeout(STALLED)
    try:
        for part in parts:
            view = memoryview(part)
            while view:
                count = connection.send(view)
                sent += count
                view = view[count:]
    except OSError:
        pass
    finally:
        connection.settimeout(TIMEOUT_SECONDS)
    return sent


@contextlib.contextmanager
def open_socket(victim: Victim, token: str | None = None, source: str = "127.0.0.1") -> Iterator[ClientConnection]:
    """Open a WebSocket and wait for its acknowledgement."""
    url = f"ws://127.0.0.1:{victim.port}{GRAPHQL}"
    with connect(
        url, sock=victim.connect(source), subprotocols=[PROTOCOL], max_size=None, max_queue=None, compression=None
    ) as opened:
        payload = {"authorization": f"Bearer {token}"} if token else {}
        opened.send(json.dumps({"type": "connection_init", "payload": payload}))
        assert receive(opened)["type"] == "connection_ack"
        yield opened


def receive(opened: ClientConnection) -> dict[str, Any]:
    """Return the next message that is not a ping."""
    while True:
        message: dict[str, Any] = json.loads(opened.recv(TIMEOUT_SECONDS))
        if message["type"] != "ping":
            return message


def subscribe(opened: ClientConnection, id: str, query: str, variables: object = None) -> None:
    """Start an operation on a WebSocket."""
    payload = {"query": query, "variables": variables}
    opened.send(json.dumps({"type": "subscribe", "id": id, "payload": payload}, ensure_ascii=False))


def run_on_socket(opened: ClientConnection, query: str, variables: object = None) -> dict[str, Any]:
    """Run an operation on a WebSocket and return its first result."""
    subscribe(opened, f"{time.monotonic_ns()}", query, variables)
    return receive(opened)


def streamed(query: str, variables: object = None, **headers: str) -> bytes:
    """Return a request for a stream of server-sent events."""
    sent = [("accept", "text/event-stream"), *((name.replace("_", "-"), value) for name, value in headers.items())]
    return request({"query": query, "variables": variables}, headers=sent)
