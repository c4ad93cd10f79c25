"""The load generator: a separate process with as little work per request as possible.

It reads jobs from its standard input, one line of JSON each. It answers each job with a line: the number of requests in
the measured window, their latencies, and the CPU time that each process used in the window.
"""

import asyncio
import math
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeAlias, cast

import orjson

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
HEAD_END = b"\r\n\r\n"
OK = b"200"
ROUNDS = 2  # minimum number of requests per connection in a window
TIMEOUT_SECONDS = 30.0  # seconds beyond the requested time

Spent: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Job:
    """The requests of each connection, which it sends in turn, the seconds to warm up, and the seconds to measure."""

    port: int
    requests: Sequence[Sequence[str]]
    warm_up: float
    seconds: float
    server: int
    store: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The results of a window: latencies in ms, CPU time in seconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    server_cpu: float
    store_cpu: float
    load_cpu: float


class Window:
    """The measured window. It begins and ends with a response, and has equal numbers of responses per connection.

    Therefore, the work of unfinished requests is equal at both ends, even if responses are slow.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._least = ROUNDS * len(job.requests)
        self._opens = time.perf_counter() + job.warm_up
        self._closes = 0.0
        self._before: Spent | None = None
        self._latencies: list[float] = []
        self.found: asyncio.Future[Slice] = asyncio.get_running_loop().create_future()

    def answered(self, now: float, latency: float) -> None:
        """Count a response."""
        if self._before is not None:
            self._latencies.append(latency)
            count = len(self._latencies)
            if now >= self._closes and count % len(self._job.requests) == 0 and count >= self._least:
                self._close(self._before)
        elif now >= self._opens:
            self._before = self._spent()
            self._closes = now + self._job.seconds

    def _close(self, before: Spent) -> None:
        if not self.found.done():
            seconds, server, store, load = (b - a for a, b in zip(before, self._spent(), strict=True))
            ordered = sorted(self._latencies)
            p50, p99 = percentile(ordered, 0.5), percentile(ordered, 0.99)
            self.found.set_result(Slice(len(ordered), seconds, p50, p99, server, store, load))

    def _spent(self) -> Spent:
        """Return the time, and the CPU time of the server, the store and this process."""
        job = self._job
        return time.perf_counter(), cpu_seconds(job.server), cpu_seconds(job.store), time.process_time()

    def fail(self, why: str) -> None:
        """Fail the job."""
        if not self.found.done():
            self.found.set_exception(RuntimeError(why))


class Connection(asyncio.Protocol):
    """A keep-alive connection that sends the next request as soon as it has a response."""

    def __init__(self, requests: Sequence[bytes], window: Window) -> None:
        self._requests = requests
        self._window = window
        self._nth = 0
        self._missing = 0
        self._head = b""
        self._sent_at = 0.0
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self.transport = cast("asyncio.Transport", transport)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the job, unless it is done."""
        self._window.fail(f"The server closed a connection: {error}")
        if not self.ended.done():
            self.ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Read a response, then send the next request."""
        if self._missing:
            self._missing -= len(data)
        else:
            data = self._head + data
            end = data.find(HEAD_END)
            self._head = data if end < 0 else b""
            if end < 0:
                return
            length = LENGTH.search(data, 0, end + 2)
            if length is None or data[9:12] != OK:
                self._window.fail(data[:1000].decode("utf-8", "replace"))
                return
            self._missing = end + 4 + int(length[1]) - len(data)
        if self._missing == 0:
            now = time.perf_counter()
            self._window.answered(now, now - self._sent_at)
            if self._window.found.done():
                self.transport.close()
            else:
                self._ask()

    def _ask(self) -> None:
        self._sent_at = time.perf_counter()
        self.transport.write(self._requests[self._nth])
        self._nth = (self._nth + 1) % len(self._requests)


async def run(job: Job) -> Slice:
    """Keep all connections busy. Return the results when no response is pending.

    Raises RuntimeError for an unsuccessful response, and TimeoutError.
    """
    loop, window = asyncio.get_running_loop(), Window(job)
    connections: list[Connection] = []
    try:
        for requests in job.requests:
            connect = partial(Connection, [request.encode("ascii") for request in requests], window)
            connections.append((await loop.create_connection(connect, "127.0.0.1", job.port))[1])
        async with asyncio.timeout(job.warm_up + job.seconds + TIMEOUT_SECONDS):
            found = await window.found
            await asyncio.wait([connection.ended for connection in connections])
            return found
    finally:
        for connection in connections:
            connection.transport.abort()


def cpu_seconds(process: int) -> float:
    """Return the CPU time of another process with all its threads, from its clock (see clock_getcpuclockid)."""
    return time.clock_gettime((~process << 3) | 2)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the percentile for a share of the durations, in ms (nearest rank), or 0 if there are none."""
    return 1000 * ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def main() -> None:
    """Run jobs until the input ends."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin.buffer:
            try:
                answer = asdict(runner.run(run(Job(**orjson.loads(line)))))
            except (RuntimeError, OSError) as error:
                answer = {"failure": str(error) or type(error).__name__}
            sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
