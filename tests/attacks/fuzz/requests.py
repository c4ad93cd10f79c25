"""HTTP requests as bytes: valid, unusual and broken ones."""

from dataclasses import dataclass
from urllib.parse import quote

from tests.attacks.fuzz.documents import Writer
from tests.attacks.fuzz.values import DIGITS, odd, written
from tests.attacks.world import World
from tests.executor.differential.tapes import Tape

JSON = "application/json"
ACCEPTS = (
    JSON, "application/graphql-response+json", "*/*", "text/event-stream", "text/html", "", "multipart/mixed",
    "application/graphql-response+json;q=0.9, application/json;q=1", "a/b;q=" + "9" * 400, ";;;=,,,",
    "text/event-stream;q=0, " + JSON, JSON + ";q=nan", JSON + ";q=-1", "é", ", " * 500, "application/*;q=inf",
    "text/event-stream, " + JSON, "APPLICATION/JSON", "\x01",
)  # fmt: skip
CONTENT_TYPES = (
    JSON, JSON + "; charset=utf-8", JSON + "; charset=utf-16", JSON + ";charset=\"utf-8", "text/plain", "",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data", JSON + ";" * 300,
    "application/graphql", "application/json, text/plain", "é",
)  # fmt: skip
ODD_HEADERS = (
    ("content-encoding", "gzip"), ("content-encoding", "deflate, br"), ("expect", "100-continue"),
    ("connection", "close"), ("connection", "upgrade"), ("upgrade", "h2c"), ("upgrade", "websocket"),
    ("origin", "https://evil.example"), ("origin", "null"), ("x-request-id", "a" * 500),
    ("x-request-id", "\u00e9\u00ff"), ("x-request-id", "ok-1"), ("last-event-id", "9" * 500),
    ("last-event-id", "nonsense"), ("x-forwarded-for", "203.0.113.7, ::1, x"), ("x-forwarded-proto", "gopher"),
    ("host", "a\u00e9b"), ("host", "localhost:99999999"), ("cookie", "a=" + "b" * 5_000),
    ("accept-encoding", "gzip;q=x"), ("range", "bytes=0-1"), ("te", "trailers"), ("if-none-match", "*"),
    ("forwarded", "for=\"[::1\""), ("sec-websocket-key", "x"), ("x" * 300, "y"), ("x-long", "y" * 9_000),
    ("accept", "text/event-stream"), ("content-type", "text/plain"), ("authorization", "Basic eDp5"),
    ("transfer-encoding", "gzip"), ("access-control-request-method", "POST"), ("x-empty", ""),
)  # fmt: skip
METHODS = ("GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "QUERY", "P" * 50)
PATHS = (
    "/graphql", "/graphql/", "//graphql", "/", "/metrics", "/health/live", "/health/ready", "/schema.graphql",
    "/playground", "/%67raphql", "/graphql%00", "/graphql;a=b", "/../graphql", "*", "http://evil.example/graphql",
    "/graphql?" + "a=b&" * 300, "/" + "a" * 3_000, "/é", "/%ff", "/graphql?query", "/graphql?query=%7b", "/graphql#x",
    "",
)  # fmt: skip


@dataclass(frozen=True)
class HttpCase:
    """The bytes of a request. If it is not `complete`, the server may wait for more, and the client gives up."""

    method: str
    content: bytes
    complete: bool = True


class Requests:
    """Generates requests to the server of a world."""

    def __init__(self, world: World) -> None:
        self._documents = Writer(world)
        self._tokens = tuple(world.tokens.values())

    def case(self, tape: Tape) -> HttpCase:
        """Return a request of any kind."""
        way = tape.below(100)
        if way >= 90:
            return self._framed_oddly(tape)
        if way >= 78:
            return self._elsewhere(tape)
        if way >= 68:
            return self._gotten(tape)
        body = broken(self._body(tape), tape) if way >= 58 else self._body(tape)
        headers = self._headers(tape)
        headers.append(("content-type", tape.pick(CONTENT_TYPES) if tape.chance(12) else JSON))
        return HttpCase("POST", self._request("POST", "/graphql", headers, body))

    def _body(self, tape: Tape) -> bytes:
        document = self._documents.document(tape)
        body = {"query": document.text, "variables": document.variables, "operationName": document.operation_name}
        if tape.chance(6):
            body[tape.pick(("query", "variables", "operationName", "extensions", "documentId", "id"))] = odd(tape)
        if tape.chance(4):
            return written([body] * (1 + tape.below(20)))
        return written(body)

    def _headers(self, tape: Tape) -> list[tuple[str, str]]:
        headers = [("host", "localhost"), ("accept", tape.pick(ACCEPTS))]
        if tape.chance(50):
            headers.append(("authorization", f"Bearer {tape.pick(self._tokens)}"))
        elif tape.chance(15):
            token = tape.pick(self._tokens)
            wrong = (
                f"Bearer {token[:-4]}AAAA",
                "Bearer",
                f"bearer  {token}",
                f"Bearer {token} x",
                "Bearer é",
                "x" * 3_000,
                "Bearer a.b.c",
            )
            headers.append(("authorization", tape.pick(wrong)))
        if tape.chance(25):
            headers += [tape.pick(ODD_HEADERS) for _ in range(1 + tape.below(3))]
        return headers

    @staticmethod
    def _request(method: str, path: str, headers: list[tuple[str, str]], body: bytes | None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body is not None:
            lines.append(f"content-length: {len(body)}")
        head = "\r\n".join([*lines, "", ""])
        return head.encode("latin-1" if head.isascii() or max(head) < "\u0100" else "utf-8") + (body or b"")

    def _gotten(self, tape: Tape) -> HttpCase:
        document = self._documents.document(tape)
        text = document.text[:6_000].encode("utf-8", "surrogatepass")
        path = f"/graphql?query={quote(text)}&variables={quote(written(document.variables)[:6_000])}"
        if tape.chance(20):
            path += tape.pick(
                (
                    "&query=x",
                    "&operationName=Run0",
                    "&extensions=[]",
                    "&variables=",
                    "&a" * 200,
                    "&%",
                    "&variables=" + DIGITS,
                )
            )
        return HttpCase("GET", self._request("GET", path, self._headers(tape), None))

    def _elsewhere(self, tape: Tape) -> HttpCase:
        method = tape.pick(METHODS) if tape.chance(60) else "POST"
        body = self._body(tape) if method not in ("GET", "HEAD") else None
        content = self._request(method, tape.pick(PATHS), self._headers(tape), body)
        return HttpCase(method, content, complete=False)

    def _framed_oddly(self, tape: Tape) -> HttpCase:
        """Return a request whose framing may be wrong or incomplete."""
        body = self._body(tape)
        head = "\r\n".join(
            ["POST /graphql HTTP/1.1", *(f"{a}: {b}" for a, b in self._headers(tape)), f"content-type: {JSON}"]
        )
        start = head.encode("utf-8") + b"\r\n"
        size = len(body)
        middle = size // 2
        chunks = b"%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\n\r\n" % (middle, body[:middle], size - middle, body[middle:])
        whole = b"content-length: %d\r\n\r\n%s" % (size, body)
        ways = (
            b"transfer-encoding: chunked\r\n\r\n" + chunks,
            b"transfer-encoding: chunked\r\n\r\n" + chunks[:-5] + b"0\r\nx-trailer: 1\r\n\r\n",
            b"transfer-encoding: chunked\r\n\r\nfffffffff\r\n" + body,
            b"transfer-encoding: chunked\r\n\r\n-1\r\n" + body,
            b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n" + chunks,
            b"transfer-encoding: chunked, gzip\r\n\r\n" + chunks,
            b"content-length: 5\r\ncontent-length: %d\r\n\r\n%s" % (size, body),
            b"content-length: -1\r\n\r\n" + body,
            b"content-length: " + b"9" * 30 + b"\r\n\r\n" + body,
            b"content-length: 0x10\r\n\r\n" + body,
            b"content-length: %d\r\n\r\n%s" % (size + 50, body),
            b"\r\n" + body,
            b"x\0y: z\r\n" + whole,
            b"no colon\r\n" + whole,
            b" folded: yes\r\n" + whole,
            whole + whole,
            whole[: tape.below(256) * len(whole) // 256],
            b"x" * 70_000,
        )
        content = start + tape.pick(ways)
        if tape.chance(20):
            content = content.replace(
                b"HTTP/1.1", tape.pick((b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"", b"HTTP/1.1 x", b"http/1.1")), 1
            )
        if tape.chance(10):
            content = content.replace(b"\r\n", b"\n")
        return HttpCase("POST", content, complete=False)


def broken(body: bytes, tape: Tape) -> bytes:
    """Break the JSON of a body."""
    at = (tape.below(256) << 8 | tape.below(256)) % max(1, len(body))
    return tape.pick(
        (
            body[:at],
            body[:at] + bytes([tape.below(256)]) + body[at + 1 :],
            body[:at] + b"\xff\xfe" + body[at:],
            body[:at] + b'"' + body[at:],
            b"\xef\xbb\xbf" + body,
            body + b" trailing",
            b"",
            b"null",
            b"[]",
            b"[" * 20_000,
            b'{"query":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
            b'{"query": NaN}',
            b'{"query": "{ viewer { id } }", "variables": {"a": %s}}' % DIGITS.encode(),
            b'{"query": "\\ud800"}',
            b'{"query": "{ viewer { id } }", "query": 1}',
            body.decode().encode("utf-16"),
            b" " * 5_000 + body,
            b"query=%7Bviewer%7Bid%7D%7D",
        )
    )
