"""Responses that bypass the application: refusals of requests and connections."""

from http import HTTPStatus

import orjson
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.transport.admission import RETRY_SECONDS, Admission

OVERLOADED = "The server has more requests than it can answer. Try again in {}."
TEXTS = {
    400: "The request is not valid HTTP/1.1.",
    408: "The request did not arrive in time.",
    414: "The URL is longer than 16 KB.",
    429: "Too many connections from this address. Close some, or try again later.",
    431: "The headers exceed a limit: 64 KB in total, 8 KB each, 100 headers.",
    503: OVERLOADED.format("a few seconds"),
}

RETRY_AFTER = {429: 60, 503: 2}  # seconds


def error_response(status: int, text: str | None = None) -> bytes:
    """Return a complete plain-text error response that closes the connection. `text` defaults to the status's text."""
    text = text or TEXTS[status]
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(text)}",
        "connection: close",
        "x-content-type-options: nosniff",
        *([f"retry-after: {RETRY_AFTER[status]}"] if status in RETRY_AFTER else []),
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + text).encode("ascii")


def _overload(seconds: int) -> tuple[bytes, bytes]:
    """Return the head and the body of a refusal. The head lacks the headers that depend on the request."""
    message = OVERLOADED.format("1 second" if seconds == 1 else f"{seconds} seconds")
    body = orjson.dumps({"errors": [{"message": message, "extensions": {"code": "OVERLOADED", "retryAfter": seconds}}]})
    lines = (
        "HTTP/1.1 503 Service Unavailable",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"retry-after: {seconds}",
    )
    return "\r\n".join((*lines, "")).encode("ascii"), body


OVERLOADS = {seconds: _overload(seconds) for seconds in range(1, RETRY_SECONDS + 1)}


def overload_response(cycle: RequestResponseCycle, admission: Admission) -> bytes:
    """Return the complete response to an operation that is refused because of overload. Takes about 5 microseconds.

    The connection closes after a request with `Expect: 100-continue`, because the client may or may not send the body.
    """
    if cycle.waiting_for_100_continue:
        cycle.keep_alive = False
    origin = next((value for name, value in cycle.scope["headers"] if name == b"origin"), None)
    head, body = OVERLOADS[admission.retry_after]
    headers = [*cycle.default_headers, *admission.headers(origin)]
    if not cycle.keep_alive:
        headers.append((b"connection", b"close"))
    return b"".join((head, *(b"%b: %b\r\n" % header for header in headers), b"\r\n", body))
