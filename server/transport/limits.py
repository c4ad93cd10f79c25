"""The limits of every connection, whoever opened it. docs/operations.md lists them for operators."""

from dataclasses import dataclass

KIB = 1024
MAX_HEAD = 64 * KIB  # bytes of a request line with all headers, of trailers, or of what frames the chunks of a body
MAX_HEADER = 8 * KIB  # bytes of the value of one header, or of a trailer
MAX_HEADERS = 100
MAX_URL = 16 * KIB
MAX_PIPELINED = 16  # requests that wait for the one before them on their connection
MAX_PIPELINED_BODIES = 64 * KIB  # bytes of their bodies together
MAX_DISCARDED = 1024 * KIB  # bytes that are read and thrown away before a connection is cut off
MIN_PROGRESS = 16 * KIB  # bytes of a waiting response that a client must take within `Timeouts.write`

MAX_FRAGMENTS = 1000  # frames of one WebSocket message
CONTROL_RATE = 10.0  # WebSocket pings and pongs a second
CONTROL_BURST = 50.0
HTTP_SLICE = 16 * KIB  # bytes that are parsed before the limits are looked at again
SOCKET_SLICE = 2 * KIB  # bytes of messages that are read before the handler has taken the last ones


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a connection may take for what, in seconds."""

    head: float = 10.0  # complete headers, from the connection's or the request's first moment
    body: float = 30.0  # the body of a request, in all
    idle: float = 75.0  # between requests: longer than proxies keep their connections, which is 60 s in nginx
    write: float = 60.0  # MIN_PROGRESS of what waits to be sent
    linger: float = 2.0  # between a refusal and the end of the connection, for the client to read the refusal
    look: float = 1.0  # between two looks at the deadlines of all connections
