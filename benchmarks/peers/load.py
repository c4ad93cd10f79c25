"""The load generator: a process of its own, with as little work as possible for each request.

It reads jobs from its standard input, one line of JSON each, and answers each with a line: how many requests were
answered in the time that counts, how long they took, and the CPU time that each process spent meanwhile.
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
ROUNDS = 2  # of all connections that a window holds at least
PATIENCE = 30.0  # seconds that a window may take beyond what was asked for

Spent: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Job:
    """Requests of each connection, which takes turns among its own; seconds to warm up, and seconds that count."""

    port: int
    requests: Sequence[Sequence[str]]
    warm_up: float
    seconds: float
    server: int
    store: int


@dataclass(frozen=True, slots=True)
class Slice:
    """What was seen while it counted: latencies in ms, CPU time in seconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    server_cpu: float
    store_cpu: float
    load_cpu: float


class Window:
    """The time that counts: it begins and ends with an answer, and holds as many of each connection.

    So whatever is half done at its ends is as much at the one as at the other, however slow the answers.
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
        """Count an answer."""
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
        """Read the clock, and the CPU time of server, store and this process."""
        job = self._job
        return time.perf_counter(), cpu_seconds(job.server), cpu_seconds(job.store), time.process_time()

    def fail(self, why: str) -> None:
        """Give up."""
        if not self.found.done():
            self.found.set_exception(RuntimeError(why))


class Connection(asyncio.Protocol):
    """One keep-alive connection that asks as soon as it is answered."""

    def __init__(self, requests: Sequence[bytes], window: Window) -> None:
        self._requests = requests
        self._window = window
        self._nth = 0
        self._missing = 0
        self._head = b""
        self._sent_at = 0.0
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        self.transport = cast("asyncio.Transport", transport)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        """Give up, unless all is done."""
        self._window.fail(f"The server closed a connection: {error}")
        if not self.ended.done():
            self.ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Count what comes; at its end, ask again."""
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
    """Keep all connections busy; at the end nothing is left to be answered.

    Raises RuntimeError if anything is answered with anything but success, and TimeoutError.
    """
    loop, window = asyncio.get_running_loop(), Window(job)
    connections: list[Connection] = []
    try:
        for requests in job.requests:
            connect = partial(Connection, [request.encode("ascii") for request in requests], window)
            connections.append((await loop.create_connection(connect, "127.0.0.1", job.port))[1])
        async with asyncio.timeout(job.warm_up + job.seconds + PATIENCE):
            found = await window.found
            await asyncio.wait([connection.ended for connection in connections])
            return found
    finally:
        for connection in connections:
            connection.transport.abort()


def cpu_seconds(process: int) -> float:
    """Tell the CPU time of another process with all its threads: its clock, by the number clock_getcpuclockid gives."""
    return time.clock_gettime((~process << 3) | 2)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Give the duration in ms that this share did not exceed (nearest rank); 0 if there is none."""
    return 1000 * ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def main() -> None:
    """Do jobs until there are no more."""
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
