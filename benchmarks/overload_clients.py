"""Clients of `benchmarks.overload`: a separate process that sends requests on time, even if others are pending.

It reads jobs from its standard input, one line of JSON each, and answers each job with a line: for each request the
time at which it was due, the time until its response, and the status of the response, or 0 if there was none in time.
"""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

import orjson

from benchmarks.peers.load import HEAD_END, LENGTH

TIMEOUT_SECONDS = 5.0  # that a client waits for a response
MAX_CONNECTIONS = 5_000
SEED = 7


@dataclass(frozen=True, slots=True)
class Schedule:
    """The requests, which are sent in turn, and the rates: pairs of requests per second and a number of seconds."""

    port: int
    requests: Sequence[str]
    rates: Sequence[tuple[float, float]]

    def times(self) -> list[float]:
        """Return the times at which requests are due: a Poisson process, as for independent clients."""
        draw, due, at, end = random.Random(SEED), list[float](), 0.0, 0.0
        for rate, seconds in self.rates:
            at, end = end, end + seconds
            while (at := at + draw.expovariate(rate)) < end:
                due.append(at)
        return due


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The requests of a schedule in the order of their responses: when they were due, seconds, and status."""

    due: list[float]
    seconds: list[float]
    status: list[int]


class Clients:
    """Keep-alive connections. A request takes an idle one or opens another, up to 5,000."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._requests = [request.encode("ascii") for request in schedule.requests]
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._began = 0.0
        self.outcomes = Outcomes([], [], [])

    async def run(self) -> Outcomes:
        """Send all requests, and wait until each has a response or has timed out."""
        loop = asyncio.get_running_loop()
        self._began = time.perf_counter()
        for nth, due in enumerate(self._schedule.times()):
            if (wait := due - self.now()) > 0:
                await asyncio.sleep(wait)
            request = self._requests[nth % len(self._requests)]
            if self._idle:
                self._idle.pop().send(request, due)
            elif len(self._open) < MAX_CONNECTIONS:
                connection = Connection(self, request, due)
                self._open.add(connection)
                loop.create_task(self._connect(connection))  # noqa: RUF006 - the connection is kept in `_open`
            else:
                self.record(due, TIMEOUT_SECONDS, 0)
        while any(connection.is_waiting for connection in self._open):  # noqa: ASYNC110 - not one event but many
            await asyncio.sleep(0.05)
        for connection in list(self._open):
            connection.close()
        return self.outcomes

    async def _connect(self, connection: "Connection") -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", self._schedule.port)
        except OSError:
            connection.end()

    def now(self) -> float:
        """Return the seconds since the first request could be sent."""
        return time.perf_counter() - self._began

    def record(self, due: float, seconds: float, status: int) -> None:
        """Record the outcome of a request."""
        self.outcomes.due.append(due)
        self.outcomes.seconds.append(seconds)
        self.outcomes.status.append(status)

    def free(self, connection: "Connection") -> None:
        """Take back a connection that has received its response."""
        self._idle.append(connection)

    def lose(self, connection: "Connection") -> None:
        """Forget a connection that has closed."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


class Connection(asyncio.Protocol):
    """A connection with one request at a time. It is reset if a response does not arrive in time."""

    def __init__(self, clients: Clients, request: bytes, due: float) -> None:
        self._clients = clients
        self._first = request
        self._due = due
        self._missing = self._status = 0
        self._head = b""
        self.transport: asyncio.Transport | None = None
        self.is_waiting = True
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT_SECONDS, self._time_out)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self.transport = cast("asyncio.Transport", transport)
        if self.is_waiting:
            self.transport.write(self._first)
        else:
            self.close()

    def send(self, request: bytes, due: float) -> None:
        """Send a request."""
        assert self.transport
        self._due = due
        self.is_waiting = True
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT_SECONDS, self._time_out)
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Read a response."""
        if self._missing:
            self._missing -= len(data)
        else:
            data = self._head + data
            end = data.find(HEAD_END)
            self._head = data if end < 0 else b""
            length = LENGTH.search(data, 0, end + 2)
            if end < 0 or length is None:
                return
            self._status = int(data[9:12])
            self._missing = end + 4 + int(length[1]) - len(data)
        if self._missing == 0 and self.is_waiting:
            self._answered(self._clients.now() - self._due, self._status)
            self._clients.free(self)

    def _answered(self, seconds: float, status: int) -> None:
        self._timer.cancel()
        self.is_waiting = False
        self._clients.record(self._due, seconds, status)

    def _time_out(self) -> None:
        self._answered(TIMEOUT_SECONDS, 0)
        self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Record a request that the server did not answer."""
        self.end()

    def close(self) -> None:
        """Reset the connection."""
        if self.transport is not None:
            self.transport.abort()

    def end(self) -> None:
        """Forget the connection. If a request is pending, record it as timed out."""
        if self.is_waiting:
            self._answered(TIMEOUT_SECONDS, 0)
        self._clients.lose(self)


def main() -> None:
    """Run jobs until the input ends."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin.buffer:
            outcomes = runner.run(Clients(Schedule(**orjson.loads(line))).run())
            sys.stdout.buffer.write(orjson.dumps(asdict(outcomes)) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
