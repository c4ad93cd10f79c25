"""Cross-origin requests (CORS): the headers that let pages of the allowed origins read responses.

Starlette's middleware answers preflight requests and serves all other routes. The GraphQL endpoint adds the same
headers itself, because the middleware would parse the headers of each request again.
"""

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from server.endpoint.origins import Origins
from server.endpoint.request_ids import REQUEST_ID

OWN_HEADERS = (
    "authorization",
    "content-type",
    "fanline-session",
    "last-event-id",
    "x-fanline-explain",
    REQUEST_ID.decode(),
)
CLIENT_HEADERS = (
    # caching, and a header by which some clients mark requests from scripts
    *("cache-control", "pragma", "x-requested-with"),
    # names of operations and clients, and headers that force a preflight request
    *("apollo-require-preflight", "apollographql-client-name", "apollographql-client-version"),
    *("graphql-client-name", "graphql-client-version", "graphql-preflight", "graphql-require-preflight"),
    *("x-apollo-operation-id", "x-apollo-operation-name", "x-apollo-operation-type"),
    # tracing: W3C, Sentry, Zipkin, Jaeger, AWS, Azure, Datadog, Elastic, New Relic
    *("traceparent", "tracestate", "baggage", "sentry-trace", "b3", "uber-trace-id", "x-amzn-trace-id"),
    *("x-b3-flags", "x-b3-parentspanid", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid"),
    *("request-id", "request-context", "x-correlation-id", "elastic-apm-traceparent", "newrelic"),
    *("x-datadog-origin", "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-tags", "x-datadog-trace-id"),
)
"""Request headers that front-end libraries add and the server ignores. They are allowed because a page cannot use the
API at all if its preflight request asks for a header that is not allowed."""
RESPONSE_HEADERS = (REQUEST_ID.decode(), "retry-after", "ratelimit", "ratelimit-policy")
PREFLIGHT_SECONDS = 3600
VARY = (b"vary", b"Origin")
WITH_COOKIES = (b"access-control-allow-credentials", b"true")


class CrossOrigin:
    """The CORS headers for the origins whose pages may use the API, and the headers that these pages may send.

    Preflight requests from pages of other origins are refused, regardless of the headers they ask for.
    """

    def __init__(self, origins: Origins, further_headers: Sequence[str] = ()) -> None:
        self._origins = origins
        self._accepted = (*OWN_HEADERS, *CLIENT_HEADERS, *further_headers)
        self._exposed = (b"access-control-expose-headers", ", ".join(RESPONSE_HEADERS).encode())

    def headers(self, origin: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers for a response. `origin` is the request's `Origin` header, or None."""
        if origin is None:
            return [VARY]
        if self._origins.all_allowed:
            return [(b"access-control-allow-origin", b"*"), self._exposed, VARY]
        if self._origins.names(origin):
            return [(b"access-control-allow-origin", origin), WITH_COOKIES, self._exposed, VARY]
        return [self._exposed, VARY]

    def middleware(self) -> Middleware:
        """Return the middleware that answers preflight requests and adds the headers to all other routes."""
        return Middleware(
            CORSMiddleware,
            allow_origins=self._origins.listed,
            allow_origin_regex=self._origins.pattern,
            allow_methods=("GET", "POST"),
            allow_headers=self._accepted,
            expose_headers=RESPONSE_HEADERS,
            allow_credentials=not self._origins.all_allowed,
            max_age=PREFLIGHT_SECONDS,
        )
