"""Checks of every response to a generated request."""

import contextlib
import http.client
import json
import socket
import time
from typing import Any

from benchmarks.live_clients import HANDSHAKE, frames
from tests.attacks.fuzz.conversations import CLOSE, PING, PONG, TEXT, Conversation, masked
from tests.attacks.fuzz.requests import HttpCase
from tests.attacks.victim import Victim

HANG = 20.0  # seconds after which a server counts as hanging
STREAM_BYTES = 2_000  # bytes to read from an event stream, which has no end
TYPES = {"connection_ack", "ping", "pong", "next", "error", "complete"}
INTERNAL_ERROR = 1011
LAST = b"the last ping"


class Finding(AssertionError):
    """The server violated one of the checks."""


def send_request(victim: Victim, case: HttpCase) -> int:
    """Send a request and check the response. Return its status, or 0 if the server closed the connection."""
    with victim.connect() as connection:
        connection.settimeout(HANG)
        with contextlib.suppress(OSError):  # the server may have answered and closed before everything is sent
            connection.sendall(case.content)
            if not case.complete:
                connection.shutdown(socket.SHUT_WR)
        try:
            with contextlib.closing(http.client.HTTPResponse(connection, method=case.method)) as response:
                response.begin()
                check_response(response, case)
                return response.status
        except TimeoutError:
            raise Finding("The server did not answer.") from None
        except (http.client.HTTPException, ConnectionError):
            if case.complete:
                raise Finding("The server closed the connection without an answer.") from None
            return 0


def check_response(response: http.client.HTTPResponse, case: HttpCase) -> None:
    """Check the status and the body of a response."""
    if response.status >= 500:
        raise Finding(f"{response.status}: {response.read(2_000)!r}")
    kind = (response.getheader("content-type") or "").partition(";")[0]
    if kind == "text/event-stream":
        check_events(response)
    elif kind in ("application/json", "application/graphql-response+json") and case.method != "HEAD":
        body = json.loads(response.read())
        if case.content.startswith((b"POST /graphql HTTP/1.1", b"GET /graphql?query")):
            check_answer(body)
            if response.status >= 400 and "errors" not in body:
                raise Finding(f"{response.status} without errors")
    else:
        response.read()


def check_events(response: http.client.HTTPResponse) -> None:
    """Check the events that arrive immediately."""
    assert response.fp is not None
    response.fp.raw._sock.settimeout(0.02)  # type: ignore[attr-defined] # do not wait for later data
    with contextlib.suppress(TimeoutError):
        for _ in range(20):
            line = response.readline(STREAM_BYTES * 1_000)
            if not line:
                return
            if line.startswith(b"data: {"):
                check_answer(json.loads(line.removeprefix(b"data: ")))


def check_answer(body: Any) -> None:
    """Check that a body is a GraphQL response whose errors have codes."""
    if (
        not isinstance(body, dict)
        or not body.keys() <= {"data", "errors", "extensions"}
        or not body.keys() & {"data", "errors"}
    ):
        raise Finding(f"no GraphQL response: {str(body)[:500]}")
    if "errors" in body:
        check_errors(body["errors"])


def check_errors(errors: Any) -> None:
    """Check that there are errors, not too many, each with a message and a code, and none internal."""
    if not isinstance(errors, list) or not 0 < len(errors) <= 101:
        raise Finding(f"odd errors: {str(errors)[:500]}")
    for error in errors:
        code = error.get("extensions", {}).get("code")
        if not isinstance(error["message"], str) or not error["message"] or not isinstance(code, str):
            raise Finding(f"an error without message or code: {error}")
        if code == "INTERNAL" or len(error["message"]) > 10_000:
            raise Finding(f"an internal or endless error: {str(error)[:500]}")


def converse(victim: Victim, case: Conversation) -> int:
    """Run a conversation and check the answers. Return the close code, or 0."""
    with victim.connect() as connection:
        connection.settimeout(HANG)
        connection.sendall(HANDSHAKE)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise Finding(f"the handshake failed: {head!r}")
        with contextlib.suppress(OSError):  # the server may have closed before everything is sent
            for frame in case.frames:
                connection.sendall(frame)
            if case.drops:
                return 0
            connection.sendall(masked(PING, LAST))
            connection.shutdown(socket.SHUT_WR)
        return listen(connection)


def listen(connection: socket.socket) -> int:
    """Check the frames until the server closes the connection. Return the close code, or 0."""
    buffer, code, deadline = bytearray(), 0, time.monotonic() + HANG
    while True:
        try:
            part = connection.recv(65_536)
        except ConnectionError:
            return code
        except TimeoutError:
            raise Finding("The server neither answers nor closes.") from None
        if not part:
            return code
        if time.monotonic() > deadline:
            raise Finding("The server does not stop sending.")
        buffer += part
        for opcode, payload in frames(buffer):
            if opcode == TEXT:
                check_message(json.loads(payload))
            elif opcode == CLOSE:
                code = int.from_bytes(payload[:2]) if payload else 1005
                if code == INTERNAL_ERROR:
                    raise Finding(f"closed with {code} {payload[2:]!r}")
            elif opcode not in (PING, PONG):
                raise Finding(f"an odd frame: {opcode} {payload[:100]!r}")


def check_message(message: Any) -> None:
    """Check a message of the protocol."""
    if not isinstance(message, dict) or message.get("type") not in TYPES:
        raise Finding(f"no message of the protocol: {str(message)[:500]}")
    if message["type"] == "next":
        check_answer(message["payload"])
    elif message["type"] == "error":
        check_errors(message["payload"])
