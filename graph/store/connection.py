"""One connection to a server, over which reads are pipelined.

The server replies in order, so replies belong to the reads in the order in which the reads were sent. After anything
unexpected (a reply that cannot be parsed, or one that no read asked for) the connection is dropped, and its reads are
sent again on a new one. So no reply can reach the wrong read.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import hiredis
from redis import exceptions

from graph.store.near_cache import NearCache, TrackingPeriod
from graph.store.reads import Read
from graph.store.streams import NO_REPLY, new_parser

UNASKED = "a reply without a request"


class ConnectionOwner(Protocol):
    """The pipeline that opened a connection.

    `connection` is the connection in use, and `waiting` is the number of commands without a reply.
    """

    connection: "Connection | None"
    waiting: int

    def connection_failed(self, connection: "Connection", error: Exception) -> None:
        """Drop a connection, and send its reads again on another one."""

    def scripts_missing(self, connection: "Connection") -> None:
        """Load the scripts, because the oldest read needs one. Then send the open reads again."""

    def reconnect(self) -> None:
        """Send the open reads again on another connection, because the server became a replica."""

    def send(self, reads: "Sequence[Read]") -> None:
        """Send these reads, after those that were held back."""


class Connection(asyncio.Protocol):
    """One connection, with the reads that wait for replies, oldest first.

    `answered` is True once a read has been answered, `last_received` is the time when data last arrived, and `paused`
    is True while the server reads more slowly than the pipeline writes. `near` numbers the reads, and drops the keys
    that the server invalidates. `source` is the tracking period of the values that are read over this connection, or
    None if the connection tracks no keys. `_began_unasked` is True while the incomplete message at the end of the data
    began when no read was waiting. Only a push message may begin then.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        writer: asyncio.StreamWriter,
        near: NearCache | None = None,
        source: TrackingPeriod | None = None,
    ) -> None:
        self.reads: deque[Read] = deque()
        self.paused = False
        self.answered = False
        self.last_received = 0.0
        self.source = source
        self._owner = owner
        self._near = near
        self._loop = asyncio.get_running_loop()
        self._writer = writer  # kept because the connection closes when the writer is garbage-collected
        self._transport = writer.transport
        self._reader = new_parser(self._note_error)
        self._replies: list[Any] = []
        self._errors = False
        self._began_unasked = False
        self._transport.set_protocol(self)

    def send(self, reads: Sequence[Read]) -> None:
        """Send reads in one write."""
        if not self.reads:
            self.last_received = self._loop.time()
        self.reads.extend(reads)
        if self._near is not None:
            self._near.sent += 1
            if self.source is not None:
                self.source.sent = self._near.sent
            for read in reads:
                read.number, read.source = self._near.sent, self.source
        self._transport.write(b"".join([read.packed for read in reads]))

    def drop(self) -> None:
        """Close the connection at once. The owner must take back the reads first."""
        self.reads.clear()
        self._replies.clear()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse the data, and resolve the reads whose replies are complete."""
        if self._owner.connection is not self:
            return
        self.last_received = self._loop.time()
        parse_error: Exception | None = None
        self._reader.feed(data)
        try:
            self._replies.extend(iter(self._reader.gets, NO_REPLY))
        except Exception as error:
            parse_error = error
        arrived = bool(self._replies)
        if self._began_unasked and arrived and type(self._replies[0]) is not hiredis.PushNotification:
            self._owner.connection_failed(self, exceptions.InvalidResponse(UNASKED))
            return
        if hiredis.PushNotification in map(type, self._replies):
            self._take_pushed()
        self._resolve_reads()
        if parse_error is not None or (self._replies and not self.reads):
            self._owner.connection_failed(self, parse_error or exceptions.InvalidResponse(UNASKED))
        else:
            begins = not self.reads and (self._reader.has_data() or not arrived)
            self._began_unasked = begins or (self._began_unasked and not arrived)

    def _take_pushed(self) -> None:
        """Remove the push messages from the replies, and invalidate the keys that they name.

        Must run before the reads are resolved, because a value that arrived before its invalidation must not be kept.
        """
        messages = [reply for reply in self._replies if type(reply) is hiredis.PushNotification]
        self._replies = [reply for reply in self._replies if type(reply) is not hiredis.PushNotification]
        if self._near is not None:
            for kind, *content in messages:
                if kind == "invalidate" and content[0] is not None:
                    self._near.invalidate(content[0])
                elif kind == "invalidate":
                    self.forget()

    def forget(self) -> None:
        """Drop the cached values that came over this connection, and ignore values that its open reads add later."""
        if self._near is not None and self.source is not None:
            self.source = self._near.renewed(self.source)

    def _resolve_reads(self) -> None:
        """Resolve the oldest reads whose replies have arrived."""
        reads, replies, start = self.reads, self._replies, 0
        while reads and len(replies) - start >= reads[0].size:
            read = reads[0]
            own = replies[start : start + read.size]
            errors = [reply for reply in own if isinstance(reply, Exception)] if self._errors else []
            if errors and self._handle_server_error(read, errors):
                return
            reads.popleft()
            start += read.size
            self.answered = True
            self._owner.waiting -= read.size
            if errors:
                if any(isinstance(error, exceptions.ReadOnlyError) for error in errors):
                    self._loop.call_soon(self._owner.reconnect)
                read.reject(own, errors[0])
            else:
                if read.source is not None and read.source is self.source:
                    read.source.answered = read.number
                read.resolve(own)
        del replies[:start]
        self._errors = self._errors and bool(replies)

    def _handle_server_error(self, read: Read, errors: Sequence[Exception]) -> bool:
        """Return True if an error concerns the server and not the read. All open reads are then sent again."""
        for error in errors:
            if isinstance(error, exceptions.NoScriptError) and not read.scripts_loaded:
                self._owner.scripts_missing(self)
                return True
            if isinstance(error, exceptions.ConnectionError):  # LOADING, or too many clients
                self._owner.connection_failed(self, error)
                return True
        return False

    def _note_error(self) -> None:
        self._errors = True

    def pause_writing(self) -> None:
        """Hold back further reads: the transport's buffer is full."""
        self.paused = True

    def resume_writing(self) -> None:
        """Send the reads that were held back."""
        self.paused = False
        self._owner.send([])

    def connection_lost(self, error: Exception | None) -> None:
        """Let the owner send the reads again on another connection."""
        self._owner.connection_failed(self, error or exceptions.ConnectionError("the store closed the connection"))
