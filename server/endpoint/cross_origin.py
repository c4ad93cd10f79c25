"""Cross-origin requests (CORS): the headers that let pages of the allowed origins read responses.

Starlette's middleware answers preflight requests and serves all other routes. The GraphQL endpoint adds the same
headers itself, because the middleware would parse the headers of each request again.
"""

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from server.endpoint.origins import Origins
from server.endpoint.request_ids import REQUEST_ID

REQUEST_HEADERS = (
    "authorization",
    "content-type",
    "fanline-session",
    "last-event-id",
    "x-fanline-explain",
    REQUEST_ID.decode(),
)
RESPONSE_HEADERS = (REQUEST_ID.decode(), "retry-after", "ratelimit", "ratelimit-policy")
PREFLIGHT_SECONDS = 3600
VARY = (b"vary", b"Origin")
WITH_COOKIES = (b"access-control-allow-credentials", b"true")


class CrossOrigin:
    """The headers for the origins whose pages may use the API."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._exposed = (b"access-control-expose-headers", ", ".join(RESPONSE_HEADERS).encode())

    def headers(self, origin: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return the headers for the response to a request with this `Origin` header; None if it has none."""
        if origin is None:
            return [VARY]
        if self._origins.all_allowed:
            return [(b"access-control-allow-origin", b"*"), self._exposed, VARY]
        if self._origins.names(origin):
            return [(b"access-control-allow-origin", origin), WITH_COOKIES, self._exposed, VARY]
        return [self._exposed, VARY]

    def middleware(self) -> Middleware:
        """Return the middleware for preflight requests and for the other routes."""
        return Middleware(
            CORSMiddleware,
            allow_origins=self._origins.listed,
            allow_origin_regex=self._origins.pattern,
            allow_methods=("GET", "POST"),
            allow_headers=REQUEST_HEADERS,
            expose_headers=RESPONSE_HEADERS,
            allow_credentials=not self._origins.all_allowed,
            max_age=PREFLIGHT_SECONDS,
        )
