"""Many connections: silent, half-open and slow ones from one address, and well-behaved readers from others."""

import contextlib
import http.client
import itertools
import math
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.live_clients import HANDSHAKE
from tests.attacks.clients import read_answer, request
from tests.attacks.payloads import invalid_requests
from tests.attacks.victim import Victim

QUERY = """{ user(by: {login: "alice"}) { name timeline {
    entries(first: 10) { nodes { author { login } ... on Post { text } } } } } }"""
OPENINGS = {
    "silent": b"",
    "half a request line": b"POST /gra",
    "half the headers": b"POST /graphql HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\n",
    "a body that never ends": request({"query": QUERY})[:-5],
    "chunks that never end": b"POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "a handshake": HANDSHAKE,
    "half a handshake": HANDSHAKE[:-2],
    "the hello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}
REFUSED = (OSError, http.client.HTTPException)


@contextlib.contextmanager
def stalled(
    victim: Victim, count: int, source: str, kinds: Sequence[str] = tuple(OPENINGS)
) -> Iterator[list[socket.socket]]:
    """Open connections that make no progress, of all kinds in turn. Refused connections are skipped."""
    opened: list[socket.socket] = []
    try:
        for kind in itertools.islice(itertools.cycle(kinds), count):
            with contextlib.suppress(OSError):
                connection = victim.connect(source)
                opened.append(connection)
                connection.setblocking(False)
                connection.send(OPENINGS[kind] or b"")
        yield opened
    finally:
        for connection in opened:
            connection.close()


def still_open(connections: Sequence[socket.socket]) -> int:
    """Read what the server has sent, and return the number of connections that it has not closed."""
    count = 0
    for connection in connections:
        try:
            while part := connection.recv(65_536):
                pass
        except BlockingIOError:
            count += 1
        except OSError:
            pass
        else:
            assert not part
    return count


@dataclass(frozen=True)
class Read:
    """The readers' results: successful and failed requests, the server's CPU seconds per request, and latencies."""

    succeeded: int
    failed: int
    cpu: float
    latencies: Sequence[float]

    def percentile(self, share: float) -> float:
        """Return the percentile of the latencies for a share of the requests, in ms."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    def __str__(self) -> str:
        return (
            f"{self.succeeded} succeeded, {self.failed} failed, {1000 * self.cpu:.2f} ms CPU each, "
            f"p50 {self.percentile(0.5):.1f} ms, p99 {self.percentile(0.99):.1f} ms"
        )


def read(victim: Victim, sources: Sequence[str], rounds: int) -> Read:
    """Send requests from each address in turn, each on its own connection."""
    content = request({"query": QUERY})
    latencies, failed = [], 0
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(victim.connect(source)) for source in sources]
        before = victim.cpu()
        for _ in range(rounds):
            for reader in readers:
                start = time.perf_counter()
                try:
                    reader.sendall(content)
                    failed += b'{"data":{"user":{' not in read_answer(reader).body
                except REFUSED:
                    failed += 1
                latencies.append(time.perf_counter() - start)
        cpu = victim.cpu() - before
    return Read(len(latencies) - failed, failed, cpu / len(latencies), latencies)


def send_invalid_requests(victim: Victim, count: int) -> None:
    """Send invalid requests, on new connections where the server closes the old one."""
    connection = victim.connect()
    for content in invalid_requests(count):
        try:
            connection.sendall(content)
            closing = read_answer(connection).headers.get("connection") == "close"
        except REFUSED:
            closing = True
        if closing:
            connection.close()
            connection = victim.connect()
    connection.close()
