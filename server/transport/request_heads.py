"""Heads of HTTP requests: checks of the headers, and upgrades to other protocols.

The parser refuses malformed lines and contradictory lengths, but does not know which headers may occur only once. If
such a header occurs twice, a proxy may use one line and this server the other.
"""

import re
from collections.abc import Sequence

Header = tuple[bytes, bytes]

VERSIONS = ("1.0", "1.1")
SINGLE = frozenset(
    {
        b"access-control-request-method",
        b"authorization",
        b"content-length",
        b"content-type",
        b"cookie",
        b"fanline-session",
        b"host",
        b"if-modified-since",
        b"if-range",
        b"last-event-id",
        b"origin",
        b"range",
        b"sec-fetch-site",
        b"sec-websocket-key",
        b"sec-websocket-version",
        b"transfer-encoding",
        b"user-agent",
        b"x-fanline-explain",
        b"x-request-id",
    }
)
"""The headers that this server reads and that contain a single value, so that they must not be repeated."""

_NAME = rb"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
_HOST = re.compile(rb"(?:%b|\[(?:[0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\])(?::[0-9]*)?" % _NAME)
"""A host and port: https://www.rfc-editor.org/rfc/rfc9110#section-7.2."""


class Refusal(Exception):
    """Raised for a request that is invalid or exceeds a limit.

    `status` is the HTTP status, `reason` the name of the refusal in the metrics, and `text` the error message; None
    stands for the default text of the status.
    """

    def __init__(self, status: int, reason: str, text: str | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.text = text


def malformed(text: str) -> Refusal:
    """Return a refusal with status 400 for a request that is not valid HTTP."""
    return Refusal(400, "malformed", text)


def check_head(version: str, headers: Sequence[Header]) -> None:
    """Check the HTTP version and the headers of a request. Header names must be in lower case. O(n). Raises Refusal.

    An HTTP/1.1 request must name its host (RFC 9112, section 3.2); an HTTP/1.0 request need not. A header with a
    single value must not occur twice, even if both lines are equal.
    """
    if version not in VERSIONS:
        raise malformed(f"The version HTTP/{version} is not supported. Send HTTP/1.1.")
    given = dict(headers)
    if len(given) != len(headers):
        _check_repeated(headers)
    host = given.get(b"host", b"")
    if not host:
        if version == "1.1":
            raise malformed("The header Host is missing or empty. HTTP/1.1 requires it.")
    elif _HOST.fullmatch(host) is None:
        raise malformed("The header Host is not a host name or address with an optional port.")
    if b"transfer-encoding" in given:
        _check_coding(version, given[b"transfer-encoding"])


def _check_repeated(headers: Sequence[Header]) -> None:
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in SINGLE and name in seen:
            raise malformed(f"The header {name.decode('ascii')} occurs more than once. Send it once.")
        seen.add(name)


def _check_coding(version: str, coding: bytes) -> None:
    """Raise Refusal unless the parser can decode the body: the only supported transfer coding is `chunked`."""
    if version == "1.0":
        raise malformed("HTTP/1.0 has no Transfer-Encoding. Send a Content-Length.")
    if coding.lower() != b"chunked":
        raise malformed("The only supported Transfer-Encoding is chunked.")


def requested_upgrade(headers: Sequence[Header]) -> bytes | None:
    """Return the comma-separated protocols of a requested upgrade, in lower case, or None if none is requested."""
    if b"upgrade" not in (option.lower() for option in _listed(headers, b"connection")):
        return None
    return b", ".join(protocol.lower() for protocol in _listed(headers, b"upgrade"))


def head_without_upgrade(method: bytes, url: bytes, version: str, headers: Sequence[Header]) -> bytes:
    """Return the request line and headers without the upgrade, which a server may ignore (RFC 9110, section 7.8)."""
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    for name, value in headers:
        if name == b"connection":
            options = [option for option in _listed([(name, value)], name) if option.lower() != b"upgrade"]
            value = b", ".join(options)
        if name != b"upgrade":
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])


def _listed(headers: Sequence[Header], wanted: bytes) -> list[bytes]:
    """Return the entries of a header whose value is a list, from all header lines with its name."""
    return [entry.strip() for name, value in headers if name == wanted for entry in value.split(b",")]
