"""A store and an archive whose calls wait for their turn, so that a test chooses how processes interleave and die."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import hiredis
from redis import exceptions
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive.archive import Archive
from graph.archive.database import Database
from graph.store.commands import Command
from tests.support.stores import InterceptedStore

T = TypeVar("T")

TICKS = 12


@dataclass(eq=False)
class Turn:
    """A call to the store or the archive that waits for its turn."""

    process: str
    allowed: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    fatal: bool = False


class Gate:
    """Lets the calls of several processes run one at a time, in the order that the test chooses."""

    def __init__(self) -> None:
        self.waiting: list[Turn] = []

    @asynccontextmanager
    async def turn(self, process: str) -> AsyncIterator[None]:
        """Wait for a turn for one call. A fatal turn never ends."""
        turn = Turn(process)
        self.waiting.append(turn)
        try:
            await turn.allowed.wait()
        except asyncio.CancelledError:
            if turn in self.waiting:
                self.waiting.remove(turn)
            raise
        try:
            yield
        finally:
            turn.finished.set()
        if turn.fatal:
            await asyncio.Event().wait()

    async def run_until_blocked(self) -> None:
        """Run all tasks until they wait for the gate."""
        for _ in range(TICKS):
            await asyncio.sleep(0)

    async def admit(self, turn: Turn, *, fatal: bool = False) -> None:
        """Run one call and wait for its reply. If it is fatal, its process never sees the reply."""
        turn.fatal = fatal
        self.waiting.remove(turn)
        turn.allowed.set()
        await turn.finished.wait()
        await self.run_until_blocked()


class DirectStore(InterceptedStore):
    """A store over one blocking socket, much faster than the client library.

    Only for tests whose processes take turns.
    """

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        super().__init__(url, single_slot=single_slot)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(url.removeprefix("unix://"))
        self._parser = hiredis.Reader(encoding="utf-8")
        self._exchange_now([("HELLO", 3)])

    def _exchange_now(self, commands: Sequence[Command]) -> list[Any]:
        packed: list[Any] = list(commands)
        self._socket.sendall(b"".join(map(hiredis.pack_command, packed)))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._parser.gets()
            if reply is False:
                self._parser.feed(self._socket.recv(1 << 16))
            else:
                replies.append(as_error(reply) if isinstance(reply, hiredis.ReplyError) else reply)
        return replies

    async def _pipeline(self, commands: Sequence[Command]) -> list[Any]:
        return self._exchange_now(commands)

    async def close(self) -> None:
        await super().close()
        self._socket.close()


def as_error(reply: hiredis.ReplyError) -> Exception:
    """Return the client library's exception for an error reply."""
    kind = exceptions.NoScriptError if str(reply).startswith("NOSCRIPT") else exceptions.ResponseError
    return kind(str(reply))


class GatedStore(DirectStore):
    """The store of one process, behind the gate."""

    def __init__(self, url: str, gate: Gate, process: str, *, single_slot: bool) -> None:
        super().__init__(url, single_slot=single_slot)
        self._gate = gate
        self._process = process

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        async with self._gate.turn(self._process):
            return await super()._exchange(commands)


class SharedArchive(Archive):
    """An archive on a database that all processes of a test share."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def close(self) -> None:
        """Keep the database open for the other processes."""


class GatedArchive(SharedArchive):
    """The archive of one process, behind the gate."""

    def __init__(self, database: Database, gate: Gate, process: str) -> None:
        super().__init__(database)
        self._gate = gate
        self._process = process

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._gate.turn(self._process):
            return await super()._transaction(work)
