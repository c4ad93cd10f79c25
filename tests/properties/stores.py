"""Stores that exchange commands over a blocking socket, behind a gate, and note what is appended to the log."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import hiredis
from redis import Redis, exceptions

from graph.store.commands import Command, load_scripts, script
from graph.store.reads import Convert, TrackedRead
from tests.properties.gate import Gate
from tests.properties.journal import Journal
from tests.properties.near import PREFIXES, CheckedCache
from tests.support.stores import InterceptedStore

CACHING: Command = ("CLIENT", "CACHING", "YES")
SCAN_COUNT = 1000
LOADED: set[str] = set()
"""The servers that have the scripts. They keep them while the tests run."""


def ignore(messages: Sequence[Any]) -> None:
    """Do nothing."""


class Exchange:
    """Sends commands over one blocking socket. Only for a program that does nothing else until it has the replies.

    `pushed` gets the messages about tracked keys that have arrived with the replies.
    """

    def __init__(self, url: str, pushed: Callable[[Sequence[Any]], None] = ignore) -> None:
        self._pushed = pushed
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(url.removeprefix("unix://"))
        self._parser = hiredis.Reader(encoding="utf-8")
        self([("HELLO", 3)])

    def __call__(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, which may be errors."""
        packed: list[Any] = list(commands)
        self._socket.sendall(b"".join(map(hiredis.pack_command, packed)))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._parser.gets()
            if reply is False:
                self._parser.feed(self._socket.recv(1 << 16))
            elif type(reply) is hiredis.PushNotification:
                self._pushed([reply])
            else:
                replies.append(as_error(reply) if isinstance(reply, hiredis.ReplyError) else reply)
        return replies

    def changes(self) -> int:
        """Return how often the content of the server has changed."""
        [found] = self([("INFO", "persistence")])
        return int(found.partition("rdb_changes_since_last_save:")[2].partition("\r")[0])

    def close(self) -> None:
        self._socket.close()


class DirectClient(Redis):
    """The client library's client over one blocking socket, much faster than its pool of connections."""

    def __init__(self, url: str) -> None:
        super().__init__(protocol=3, decode_responses=True)
        self.exchange = Exchange(url)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Return the reply to a command as the client library does."""
        [reply] = self.exchange([args])
        if isinstance(reply, Exception):
            raise reply
        callbacks: Any = self.response_callbacks
        callback = callbacks.get(args[0])
        return reply if callback is None else callback(reply, **options)

    def close(self) -> None:
        self.exchange.close()
        super().close()


class DirectStore(InterceptedStore):
    """A store over one blocking socket, much faster than the client library.

    Only for tests whose processes take turns. Every appended event is noted in the journal.
    """

    def __init__(self, url: str, journal: Journal, *, single_slot: bool = False) -> None:
        super().__init__(url, single_slot=single_slot)
        self._journal = journal
        self.exchange = Exchange(url)
        if url not in LOADED:
            self.exchange(load_scripts())
            LOADED.add(url)

    async def _pipeline(self, commands: Sequence[Command]) -> list[Any]:
        replies = self.exchange(commands)
        append = script("append").sha
        for command, reply in zip(commands, replies, strict=True):
            if command[:2] == ("EVALSHA", append) and isinstance(reply, list) and reply[0] == "appended":
                self._journal.note(command, [int(number) for number in reply[1:]])
        return replies

    async def scan(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield lists of the keys that match a pattern."""
        cursor = "0"
        while True:
            [[cursor, found]] = await self._exchange([("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)])
            yield list(found)
            if int(cursor) == 0:
                return

    async def replicate(self, key: str, milliseconds: int) -> None:
        """Write a time to `key`. There are no replicas to wait for."""
        await self._exchange([("SET", key, int(time.time()))])

    async def ask_primaries(self, *commands: Command) -> dict[str, list[Any]]:
        """Return no replies: nothing is known about the memory of the server, which has room."""
        return {}

    async def close(self) -> None:
        await super().close()
        self.exchange.close()


def as_error(reply: hiredis.ReplyError) -> Exception:
    """Return the client library's exception for an error reply."""
    kind = exceptions.NoScriptError if str(reply).startswith("NOSCRIPT") else exceptions.ResponseError
    return kind(str(reply))


class GatedStore(DirectStore):
    """The store of one process, behind the gate."""

    def __init__(self, url: str, journal: Journal, gate: Gate, process: str, *, single_slot: bool) -> None:
        super().__init__(url, journal, single_slot=single_slot)
        self._gate = gate
        self._process = process

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        async with self._gate.turn(self._process):
            return await super()._exchange(commands)


class NearStore(GatedStore):
    """The store of one process with a near cache, behind the gate. Its reads have a connection of their own."""

    def __init__(self, url: str, journal: Journal, gate: Gate, process: str, *, single_slot: bool) -> None:
        super().__init__(url, journal, gate, process, single_slot=single_slot)
        self._pipe = Exchange(url, self._invalidate)
        self._watch = Exchange(url, self._note_writes)
        self.near = self._checked = CheckedCache(self._watch)
        everything = [word for prefix in PREFIXES for word in ("PREFIX", prefix)]
        self._watch([("CLIENT", "TRACKING", "ON", "BCAST", *everything)])
        self._pipe([("CLIENT", "TRACKING", "ON", "OPTIN")])
        self._source = self.near.connected()

    def _invalidate(self, messages: Sequence[Any]) -> None:
        for _, names in messages:
            if names is None:
                self._source = self._checked.renewed(self._source)
            else:
                self._checked.invalidate(names)

    def _note_writes(self, messages: Sequence[Any]) -> None:
        self._checked.note_writes(messages)

    def track(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert, known: list[Any]
    ) -> "asyncio.Future[list[Any]]":
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        read = TrackedRead(self._checked, b"", keys, convert, known, future)
        commands: list[Command] = [(name, key, *words) for key in keys]

        def resolve(replies: list[Any]) -> None:
            read.source = self._source
            read.resolve(replies)
            for command, row in zip(commands, replies[1::2], strict=True):
                self._checked.note_row(str(command[1]), command, row)

        def fail(done: "asyncio.Future[None]") -> None:
            if done.cancelled():
                future.cancel()
            elif (error := done.exception()) is not None and not future.done():
                future.set_exception(error)

        asked = self.ask([each for command in commands for each in (CACHING, command)], resolve)
        asked.add_done_callback(fail)
        return future

    async def _exchange_reads(self, commands: Sequence[Command]) -> list[Any]:
        async with self._gate.turn(self._process):
            near = self._checked
            near.sent += 1
            replies = self._pipe(commands)
            self._source.answered = near.sent
            near.executed, near.written = near.executed + 1, set()
            self._watch([("PING",)])
            near.written = set()
            return replies

    async def close(self) -> None:
        await super().close()
        self._pipe.close()
        self._watch.close()
