"""Browser sessions: the access token is kept in a cookie that the scripts of a page cannot read.

A page requests the cookie with the header `Fanline-Session: cookie`. A page of another site can make the victim's
browser send requests with the cookie. A cookie is therefore accepted only if the header `Origin` names the server's own
origin or an allowed one. Browsers send some requests without `Origin`; their cookies are accepted if
`Sec-Fetch-Site` is `same-origin`, or if the request has the header `Fanline-Session: cookie`, which a page of another
origin cannot add without permission (CORS). The attribute `SameSite=Lax` is a further defence.
"""

import time
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope
from strawberry.http.websocket_origin import is_same_origin

from graph.model import Credentials
from server.endpoint.origins import Origins

HEADER = b"fanline-session"
NAME = "fanline_session"
SECURE_NAME = f"__Host-{NAME}"
"""Browsers accept a cookie with this name only from the host itself, over HTTPS."""


class SessionCookies:
    """Reads and writes session cookies. `secure` requires HTTPS; otherwise, cookies over HTTP have another name."""

    def __init__(self, origins: Origins, *, secure: bool) -> None:
        self._origins = origins
        self._secure = secure

    def requested(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if the page requests that new tokens be sent in a cookie, and its origin is allowed."""
        return headers.get(HEADER) == b"cookie" and self._has_known_origin(scope, headers)

    def token(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the access token in the cookie of a request or of a WebSocket handshake.

        Return None if there is no token, or if a page of another site may have caused the request.
        """
        cookie = headers.get(b"cookie")
        if cookie is None or not self._has_known_origin(scope, headers):
            return None
        is_own = b"origin" in headers or headers.get(b"sec-fetch-site") == b"same-origin"
        is_asked_for = headers.get(HEADER) == b"cookie"
        return value_of(cookie, self._name(scope)) if is_own or is_asked_for else None

    def issue(self, scope: Scope, token: str, session: Credentials) -> tuple[bytes, bytes]:
        """Return the header that stores a session's token in the cookie until the session expires."""
        return self._header(scope, token, max(0, int(session.expires_at.timestamp() - time.time())))

    def remove(self, scope: Scope) -> tuple[bytes, bytes]:
        """Return the header that removes the cookie with the token."""
        return self._header(scope, "", 0)

    def _header(self, scope: Scope, token: str, seconds: int) -> tuple[bytes, bytes]:
        response = Response()
        secure = self._is_secure(scope)
        response.set_cookie(self._name(scope), token, seconds, secure=secure, httponly=True, samesite="lax")
        return response.raw_headers[-1]

    def _name(self, scope: Scope) -> str:
        return SECURE_NAME if self._is_secure(scope) else NAME

    def _is_secure(self, scope: Scope) -> bool:
        return self._secure or scope["scheme"] in ("https", "wss")

    def _has_known_origin(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if the origin is the server's own or allowed, or if the request has none.

        If this request uses HTTPS, the origin of a page that the same host served over HTTP is not the server's own,
        because anybody on the network path could have changed the page.
        """
        origin = headers.get(b"origin")
        if origin is None or self._origins.names(origin):
            return True
        if self._is_secure(scope) and not origin.startswith(b"https://"):
            return False
        return is_same_origin(origin.decode("latin-1"), headers.get(b"host", b"").decode("latin-1"))


def value_of(header: bytes, name: str) -> str | None:
    """Return the value of the first cookie with exactly this name in a `Cookie` header, or None.

    Only spaces and tabs are stripped from the name. If other characters were stripped too, a page on a subdomain could
    set a cookie whose name has the prefix `__Host-` for the server, but not for the browser.
    """
    for pair in header.split(b";"):
        given, _, value = pair.strip(b" \t").partition(b"=")
        if given == name.encode():
            return value.decode("latin-1") or None
    return None
