"""The read pipeline: reads of one event loop to one server, pipelined over one connection.

A `Lane` opens a wire when it is needed, and again when it is lost. Reads are harmless to repeat: those that were under
way when a wire was lost go out again on the next one, in the same order, until their time is up.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from redis import exceptions
from redis.asyncio.connection import AbstractConnection
from redis.backoff import ExponentialWithJitterBackoff

from graph.errors import StoreUnavailable
from graph.store.connection import Connection, Read
from graph.store.outages import as_graph_error
from graph.tasks import end

ANSWER_SECONDS = 5.0
MOST_WAITING = 100_000
RETRIES = 3
BACKOFF = ExponentialWithJitterBackoff(base=0.05, cap=0.5)


class ReadPipeline:
    """Sends reads to one server over one wire, which it opens at the first read, and again when it is lost.

    After four failures in a row to connect, or to get a single answer, all reads that wait fail with StoreUnavailable;
    the next one tries again. A read fails by itself if it has no answer after five seconds; a wire that was silent for
    so long is dropped. `waiting` counts the commands without an answer.
    """

    def __init__(
        self, connection: Callable[[], AbstractConnection], load_scripts: Callable[[], Awaitable[None]]
    ) -> None:
        self.waiting = 0
        self.connection: Connection | None = None
        self._make_connection = connection
        self._load_scripts = load_scripts
        self._scripts_missing = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[Read] = deque()
        self._opening: asyncio.Task[None] | None = None
        self._failures = 0
        self._watch: asyncio.TimerHandle | None = None

    def send(self, reads: Sequence[Read]) -> None:
        """Send reads in one write, or as soon as there is a wire that takes them."""
        self.waiting += sum([read.size for read in reads])
        if self.connection is None or self.connection.paused or self._unsent:
            self._unsent.extend(reads)
            if self._closed:
                self._fail(StoreUnavailable("closed"))
                return
            self._send_unsent()
        else:
            self.connection.send(reads)
        if reads and (self._watch is None or self._watch.when() > reads[0].deadline):
            self._look_at(reads[0].deadline)

    def _send_unsent(self) -> None:
        """Send what waits for a wire, but for those whose askers are gone."""
        if self.connection is None:
            if self._unsent and self._opening is None:
                self._opening = self._loop.create_task(self._open())
        elif self._unsent and not self.connection.paused:
            reads = [read for read in self._unsent if not read.future.done()]
            self.waiting -= sum(read.size for read in self._unsent) - sum(read.size for read in reads)
            self._unsent.clear()
            if reads:
                self.connection.send(reads)

    async def _open(self) -> None:
        """Open a wire, or fail all reads that wait for one."""
        try:
            if self._failures:
                await asyncio.sleep(BACKOFF.compute(self._failures))
            if self._scripts_missing:
                await self._load_scripts()
                self._scripts_missing = False
            self.connection = await self._connect()
        except Exception as error:
            self._fail(as_graph_error(error))
        finally:
            self._opening = None
        if self.connection is not None:
            self._send_unsent()

    async def _connect(self) -> Connection:
        """Open a connection through redis-py, with its settings and retries, and take over its stream."""
        opened = self._make_connection()
        try:
            await opened.connect()  # type: ignore[no-untyped-call] # redis-py declares nothing here
            writer = opened._writer
            if writer is None or await opened.can_read():
                raise exceptions.ConnectionError("the store hung up, or talks without being asked")
            connection = Connection(self, writer)
            opened._reader = opened._writer = None
        except BaseException:
            await opened.disconnect(nowait=True)
            raise
        return connection

    def lost(self, connection: Connection, error: Exception) -> None:
        """Go on after a wire has failed: ask what it held again, unless it was one failure too many."""
        if connection is not self.connection:
            return
        if connection.answered:
            self._failures = 0
        elif connection.reads:
            self._failures += 1
        self._take_back(connection)
        if self._failures > RETRIES:
            self._failures = 0
            self._fail(StoreUnavailable(error))
        else:
            self._send_unsent()

    def lack_scripts(self, connection: Connection) -> None:
        """Load the scripts, of which the wire's oldest read lacks one, before it and all after it are asked again."""
        connection.reads[0].scripts_loaded = True
        self._scripts_missing = True
        self._take_back(connection)
        self._send_unsent()

    def _take_back(self, connection: Connection) -> None:
        self._unsent.extendleft(reversed(connection.reads))
        self.connection = None
        connection.drop()

    def _fail(self, error: Exception) -> None:
        """Fail all reads that wait for a wire."""
        reads, self._unsent = self._unsent, deque()
        self.waiting -= sum(read.size for read in reads)
        for read in reads:
            read.fail(error)

    def _look(self) -> None:
        """Fail the reads whose time is up, drop a wire that is silent, and look again when the next one is due."""
        self._watch = None
        now, connection, due = self._loop.time(), self.connection, math.inf
        for read in [*(connection.reads if connection is not None else ()), *self._unsent]:
            if read.deadline <= now:
                read.fail(StoreUnavailable(f"no answer for {ANSWER_SECONDS:.0f} seconds"))
            elif not read.future.done():
                due = min(due, read.deadline)
        if connection is not None and connection.reads and now - connection.heard >= ANSWER_SECONDS:
            self.lost(connection, exceptions.TimeoutError(f"silent for {ANSWER_SECONDS:.0f} seconds"))
        if due < math.inf:
            self._look_at(due)

    def _look_at(self, time: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._loop.call_at(time, self._look)

    async def close(self) -> None:
        """End the wire; reads that wait fail with StoreUnavailable, and so do those to come."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        if self._opening is not None:
            await end([self._opening])
        if self.connection is not None:
            self._take_back(self.connection)
        self._fail(StoreUnavailable("closed"))
