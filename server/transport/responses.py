"""Responses that bypass the application: refusals of requests and connections."""

from http import HTTPStatus

TEXTS = {
    400: "The request is not valid HTTP/1.1.",
    408: "The request did not arrive in time.",
    414: "The URL is longer than 16 KB.",
    429: "Too many connections from this address. Close some, or try again later.",
    431: "The headers exceed a limit: 64 KB in total, 8 KB each, 100 headers.",
}


def refusal(status: int, *headers: str) -> bytes:
    """Return a complete response with the reason, after which the connection closes."""
    text = TEXTS[status]
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(text)}",
        "connection: close",
        "x-content-type-options: nosniff",
        *headers,
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + text).encode("ascii")
