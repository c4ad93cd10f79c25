"""One connection to a server, over which one caller at a time exchanges commands and replies.

The read pipeline shares a connection among all callers (`graph.store.connection`). A write uses a separate connection,
so that `WAIT` covers the caller's write. So does a blocking read, so that no other caller waits for it.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

import hiredis
from redis import exceptions

from graph.store.commands import Command, seconds_blocked
from graph.store.reads import as_received, pack
from graph.store.streams import NO_REPLY, new_parser

CHECK_SECONDS = 0.25


class ExclusiveConnection(asyncio.Protocol):
    """One connection, for one exchange at a time.

    An exchange fails once its deadline has passed and nothing has arrived for `patience` seconds. `on_silence` is
    called when nothing has arrived for `patience` seconds, and then every 0.25 s until something does. `read_only` is
    True once the server has refused a write because it is a replica.
    """

    def __init__(self, writer: asyncio.StreamWriter, patience: float, on_silence: Callable[[], None]) -> None:
        self.closed = False
        self.read_only = False
        self.has_errors = False  # among the replies of the last exchange
        self._loop = asyncio.get_running_loop()
        self._writer = writer  # kept because the connection closes when the writer is garbage-collected
        self._transport = writer.transport
        self._parser = new_parser(self._note_error)
        self._patience = patience
        self._on_silence = on_silence
        self._replies: list[Any] = []
        self._size = 0
        self._future: asyncio.Future[list[Any]] | None = None
        self._blocked = 0.0
        self._deadline = math.inf
        self._last_received = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._transport.set_protocol(self)

    @property
    def busy(self) -> bool:
        """True during an exchange."""
        return self._future is not None

    def exchange(self, commands: Sequence[Command], deadline: float) -> "asyncio.Future[list[Any]]":
        """Send commands in one write, and return a future of their replies, errors included.

        The future fails with one of `OUTAGES`. The time for which the commands may block is added to the deadline.
        """
        try:
            packed = b"".join(map(pack, commands))
        except UnicodeEncodeError:
            packed = b"".join(pack(as_received(command)) for command in commands)
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if self.closed:
            future.set_exception(exceptions.ConnectionError("the connection is closed"))
            return future
        self._blocked = max(map(seconds_blocked, commands))
        self._deadline = deadline + self._blocked
        self._last_received = self._loop.time()
        self._size, self._future, self.has_errors = len(commands), future, False
        if self._timer is None:
            self._check_at(self._last_received + self._blocked + self._patience)
        self._transport.write(packed)
        return future

    def data_received(self, data: bytes) -> None:
        """Parse the data, and resolve the exchange once all replies have arrived."""
        self._last_received = self._loop.time()
        self._parser.feed(data)
        try:
            arrived = list(iter(self._parser.gets, NO_REPLY))
        except Exception as error:
            self.drop(exceptions.ConnectionError(f"an invalid reply: {error}"))
            return
        self._replies += [reply for reply in arrived if type(reply) is not hiredis.PushNotification]
        if len(self._replies) > (self._size if self._future is not None else 0):
            self.drop(exceptions.ConnectionError("a reply without a request"))
        elif self._future is not None and len(self._replies) == self._size:
            future, self._future = self._future, None
            replies, self._replies = self._replies, []
            if not future.done():
                future.set_result(replies)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the exchange."""
        self.drop(exceptions.ConnectionError("the store closed the connection" + (f": {error}" if error else "")))

    def drop(self, error: Exception) -> None:
        """Close the connection at once, and fail the exchange."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_exception(error)
        self._transport.abort()

    def silent_at(self, now: float) -> bool:
        """Return True if commands wait, and nothing has arrived for at least `patience` seconds."""
        return self._future is not None and now - self._last_received >= self._blocked + self._patience

    def _check(self) -> None:
        """Report a silent server; fail the exchange if its deadline has passed."""
        self._timer = None
        if self._future is None:
            return
        now = self._loop.time()
        if not self.silent_at(now):
            self._check_at(self._last_received + self._blocked + self._patience)
        elif now >= self._deadline:
            self.drop(exceptions.TimeoutError(f"no answer for {now - self._last_received:.1f} seconds"))
        else:
            self._check_at(now + CHECK_SECONDS)
            self._on_silence()

    def _check_at(self, time: float) -> None:
        self._timer = self._loop.call_at(time, self._check)

    def _note_error(self) -> None:
        self.has_errors = True
