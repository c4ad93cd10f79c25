"""The limits that apply to each connection. docs/limits.md lists them for operators."""

from dataclasses import dataclass

KIB = 1024
MAX_HEAD = 64 * KIB  # bytes of the request line and headers together, of trailers, or of chunk framing
MAX_HEADER = 8 * KIB  # bytes of the value of one header or trailer
MAX_HEADERS = 100
MAX_URL = 16 * KIB
MAX_PIPELINED = 16  # requests that wait for earlier ones of their connection
MAX_PIPELINED_BODIES = 64 * KIB  # bytes of the bodies of waiting requests together
MAX_DISCARDED = 1024 * KIB  # bytes that are read and discarded before a connection is aborted
MIN_PROGRESS = 16 * KIB  # bytes of a response that a client must receive within `Timeouts.write`

MAX_FRAGMENTS = 1000  # frames of one WebSocket message
CONTROL_RATE = 10.0  # WebSocket pings and pongs a second
CONTROL_BURST = 50.0
HTTP_SLICE = 16 * KIB  # bytes that are parsed between two checks of the limits
SOCKET_SLICE = 2 * KIB  # bytes that are parsed before the handler must receive the messages in them


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a connection, in seconds."""

    head: float = 10.0  # for complete headers, from the start of the connection or request
    body: float = 30.0  # for the whole body of a request
    idle: float = 75.0  # between requests: longer than proxies keep connections, which is 60 s in nginx
    write: float = 60.0  # for the client to receive MIN_PROGRESS bytes of the unsent data
    linger: float = 2.0  # between a refusal and the close of the connection, so that the client can read the refusal
    check: float = 1.0  # between two checks of all deadlines
