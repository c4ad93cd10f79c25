"""The read pipeline: all reads of one event loop to one server, pipelined over one connection.

Reads may be retried. When the connection fails, open reads are sent again on the next connection, in the same order,
until their deadline.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from graph.errors import StoreUnavailable
from graph.store.connection import Connection
from graph.store.near_cache import NearCache, TrackingPeriod
from graph.store.outages import translate_error
from graph.store.reads import Read
from graph.store.streams import open_stream
from graph.store.urls import BACKOFF
from graph.tasks import end

ANSWER_SECONDS = 5.0
CHECK_SECONDS = 0.25
MAX_WAITING = 100_000
RECONNECT_SECONDS = 1.0
RETRIES = 3


class ReadPipeline:
    """Sends reads to one server. It connects on the first read, and again after the connection has failed.

    After four failures in a row (to connect, or a connection that failed before its first reply) all open reads fail
    with StoreUnavailable; the next read connects again. A read fails at its deadline. A connection that has received
    nothing for `ANSWER_SECONDS` is dropped. `on_silence` is called while reads are waiting and the server has sent
    nothing for `patience` seconds. `waiting` is the number of commands without a reply. Values in the cache `near` are
    as current as the newest reply.
    """

    def __init__(
        self,
        make_connection: Callable[[], AbstractConnection],
        load_scripts: Callable[[], Awaitable[None]],
        patience: float,
        on_silence: Callable[[], None],
        near: NearCache | None = None,
    ) -> None:
        self.waiting = 0
        self.near = near
        self.connection: Connection | None = None
        self._make_connection = make_connection
        self._load_scripts = load_scripts
        self._patience = patience
        self._on_silence = on_silence
        self._unsent_since = math.inf
        self._scripts_missing = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[Read] = deque()
        self._opening: asyncio.Task[None] | None = None
        self._failures = 0
        self._reconnected = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def source(self) -> TrackingPeriod | None:
        """The tracking period of the connection; None if there is no connection or it does not track keys."""
        return None if self.connection is None else self.connection.source

    def forget(self) -> None:
        """Drop the cached values that came from the server, and ignore values that open reads add later."""
        if self.connection is not None:
            self.connection.forget()

    def send(self, reads: Sequence[Read]) -> None:
        """Send reads in one write, now or as soon as a connection accepts them."""
        self.waiting += sum([read.size for read in reads])
        if self.connection is None or self.connection.paused or self._unsent:
            self._unsent.extend(reads)
            if self._closed:
                self._fail_unsent(StoreUnavailable("closed"))
                return
            self._send_unsent()
        else:
            self.connection.send(reads)
        if reads and (self._timer is None or self._timer.when() > reads[0].deadline):
            self._check_at(min(reads[0].deadline, self._loop.time() + self._patience))

    def _send_unsent(self) -> None:
        """Send the unsent reads, except those that were cancelled; connect first if necessary."""
        if self.connection is None:
            if self._unsent and self._opening is None:
                self._unsent_since = self._loop.time()
                self._opening = self._loop.create_task(self._open())
        elif self._unsent and not self.connection.paused:
            reads = [read for read in self._unsent if not read.future.done()]
            self.waiting -= sum(read.size for read in self._unsent) - sum(read.size for read in reads)
            self._unsent.clear()
            if reads:
                self.connection.send(reads)

    async def _open(self) -> None:
        """Connect and send the unsent reads, or fail them."""
        try:
            if self._failures:
                await asyncio.sleep(BACKOFF.compute(self._failures))
            if self._scripts_missing:
                await self._load_scripts()
                self._scripts_missing = False
            tracking: list[bool] = []
            stream = await open_stream(self._make_connection(), None if self.near is None else tracking.append)
            source = self.near.connected() if self.near is not None and any(tracking) else None
            self.connection = Connection(self, stream, self.near, source)
        except Exception as error:
            self._fail_unsent(translate_error(error))
        finally:
            self._opening = None
        if self.connection is not None:
            self._send_unsent()

    def connection_failed(self, connection: Connection, error: Exception) -> None:
        """Send the reads of a failed connection again, or fail them after too many failures in a row."""
        if connection is not self.connection:
            return
        if connection.answered:
            self._failures = 0
        elif connection.reads:
            self._failures += 1
        self._take_back(connection)
        if self._failures > RETRIES:
            self._failures = 0
            self._fail_unsent(StoreUnavailable(error))
        else:
            self._send_unsent()

    def scripts_missing(self, connection: Connection) -> None:
        """Load the scripts, because the oldest read needs one. Then send all open reads again, in order."""
        connection.reads[0].scripts_loaded = True
        self._scripts_missing = True
        self._take_back(connection)
        self._send_unsent()

    def reconnect(self) -> None:
        """Drop the connection, at most once a second, because the server has become a replica, and resend the reads."""
        now = self._loop.time()
        if self.connection is not None and now >= self._reconnected + RECONNECT_SECONDS:
            self._reconnected = now
            self._take_back(self.connection)
            self._send_unsent()

    def _take_back(self, connection: Connection) -> None:
        self._unsent.extendleft(reversed(connection.reads))
        self.connection = None
        if self.near is not None and connection.source is not None:
            self.near.disconnected(connection.source)
        connection.drop()

    def _fail_unsent(self, error: Exception) -> None:
        reads, self._unsent = self._unsent, deque()
        self.waiting -= sum(read.size for read in reads)
        for read in reads:
            read.fail(error)

    def silent_at(self, now: float) -> bool:
        """Return True if reads are waiting and the server has sent nothing for at least `patience` seconds."""
        return now - self._silent_since() >= self._patience

    def _silent_since(self) -> float:
        """Return the time since which the server has been silent while reads are waiting; infinity if none are."""
        if self.connection is None:
            return self._unsent_since if self._unsent else math.inf
        return self.connection.last_received if self.connection.reads else math.inf

    def _check(self) -> None:
        """Fail the reads past their deadline, drop or report a silent connection, and schedule the next check."""
        self._timer = None
        now, connection, next_deadline = self._loop.time(), self.connection, math.inf
        for read in [*(connection.reads if connection is not None else ()), *self._unsent]:
            if read.deadline <= now:
                read.fail(StoreUnavailable(f"no answer for {ANSWER_SECONDS:.0f} seconds"))
            elif not read.future.done():
                next_deadline = min(next_deadline, read.deadline)
        if connection is not None and connection.reads and now - connection.last_received >= ANSWER_SECONDS:
            self.connection_failed(connection, exceptions.TimeoutError(f"silent for {ANSWER_SECONDS:.0f} seconds"))
        silent = self.silent_at(now)
        if next_deadline < math.inf:
            self._check_at(min(next_deadline, now + CHECK_SECONDS if silent else self._silent_since() + self._patience))
        if silent:
            self._on_silence()

    def _check_at(self, time: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(time, self._check)

    async def close(self) -> None:
        """Close the connection. Open and later reads fail with StoreUnavailable."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            await end([self._opening])
        if self.connection is not None:
            self._take_back(self.connection)
        self._fail_unsent(StoreUnavailable("closed"))
