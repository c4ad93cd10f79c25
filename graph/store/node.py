"""One server of the store: a pool of connections for exchanges, and a read pipeline."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from graph import keys
from graph.errors import NotDurable
from graph.store.commands import ASKING, Command, keys_of, load_scripts, script, writes
from graph.store.exchange import ExclusiveConnection
from graph.store.near_cache import NearCache
from graph.store.outages import OUTAGES, RETRYABLE
from graph.store.read_pipeline import RECONNECT_SECONDS, ReadPipeline
from graph.store.streams import open_stream

MAX_CONNECTIONS = 50
REPLICATION_SECONDS = 2.0
MARK_SECONDS = 1
REFUSED_SECONDS = 0.1


def ignore() -> None:
    """Do nothing about a silent server: there is no other server to use."""


@dataclass(frozen=True)
class NodeSettings:
    """The settings that all nodes of a store share.

    A server that sends nothing for `patience` seconds while commands wait is silent, and `on_silence` is called. Writes
    wait until at least `replicas` replicas have received them. Values that reads fetch may be kept in the cache `near`.
    `stable_key` takes the name of a node, and returns a key in a slot that this node owns, or None if it knows none.
    """

    patience: float
    on_silence: Callable[[], None] = ignore
    replicas: int = 0
    near: NearCache | None = None
    stable_key: Callable[[str], str | None] = lambda _: None


class Node:
    """One server, called `name`. Its connections are opened when they are needed, at most 50 for exchanges."""

    def __init__(
        self, name: str, make_connection: Callable[[int], AbstractConnection], connect_retries: int, terms: NodeSettings
    ) -> None:
        self.name = name
        self.reads = ReadPipeline(
            lambda: make_connection(connect_retries),
            self.load_scripts,
            terms.patience,
            terms.on_silence,
            terms.near,
        )
        self._make_connection = make_connection
        self._terms = terms
        self._replicas = terms.replicas
        self._permits = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[ExclusiveConnection] = []
        self._lent: set[ExclusiveConnection] = set()
        self._refused_until = 0.0
        self._refusal = ""
        self._reconnected = -math.inf
        self._closed = False

    def exchange(self, commands: Sequence[Command], deadline: float) -> Coroutine[Any, Any, list[Any]]:
        """Return what `ask` returns. If the settings require it, wait until replicas have received the writes.

        Raises NotDurable if too few replicas have received the writes in time.
        """
        is_durable = self._terms.replicas and any(map(writes, commands))
        return self._exchange_durably(commands, deadline) if is_durable else self.ask(commands, deadline)

    async def ask(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        """Return the replies to commands, errors included. One round trip. Loads the scripts if one is missing.

        Raises `OUTAGES` if the server does not answer by the deadline.
        """
        async with self.lend(deadline) as connection:
            return await exchange_over(connection, commands, (), deadline)

    @asynccontextmanager
    async def lend(self, deadline: float) -> AsyncIterator[ExclusiveConnection]:
        """Lend a connection. Raises `OUTAGES` if none is available by the deadline."""
        connection = await self._take(deadline)
        self._lent.add(connection)
        try:
            yield connection
        finally:
            self._lent.discard(connection)
            self._permits.release()
            if connection.busy or self._closed:  # the node may have been closed while the connection was opened
                connection.drop(exceptions.ConnectionError("closed"))
            elif not connection.closed:
                self._idle.append(connection)
            if connection.read_only:
                self._reconnect()

    def _reconnect(self) -> None:
        """Drop all connections, at most once a second: the name of a demoted server may now resolve to another."""
        now = asyncio.get_running_loop().time()
        if now < self._reconnected + RECONNECT_SECONDS:
            return
        self._reconnected = now
        for connection in (*self._idle, *self._lent):
            connection.drop(exceptions.ConnectionError("the server became a replica"))
        self.reads.reconnect()

    async def _take(self, deadline: float) -> ExclusiveConnection:
        if self._permits.locked():
            async with asyncio.timeout_at(deadline):
                await self._permits.acquire()
        else:
            await self._permits.acquire()
        try:
            if self._closed:
                raise exceptions.ConnectionError("closed")
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
            return await self._open()
        except BaseException:
            self._permits.release()
            raise

    async def _open(self) -> ExclusiveConnection:
        """Open a connection. For 0.1 s after a failure, fail without trying, so as not to flood the server."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._refused_until:
            raise exceptions.ConnectionError(self._refusal)
        try:
            stream = await open_stream(self._make_connection(0))
        except OUTAGES as error:
            self._refused_until, self._refusal = loop.time() + REFUSED_SECONDS, str(error)
            raise
        return ExclusiveConnection(stream, self._terms.patience, self._terms.on_silence)

    async def _exchange_durably(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        """Return the replies once all connected replicas, and at least the required number, have the writes.

        Waits first for as many replicas as the last exchange found connected, so one round trip is enough unless that
        number has grown.
        """
        async with self.lend(deadline) as connection:
            expected, milliseconds = self._replicas, int(REPLICATION_SECONDS * 1000)
            marking = mark_for(commands, self._terms.stable_key(self.name))
            tail = [*marking, ("ROLE",), ("WAIT", expected, milliseconds)]
            everything = await exchange_over(connection, commands, tail, deadline)
            replies, (marked, role, received) = everything[: len(commands)], everything[-3:]
            if all(isinstance(reply, RETRYABLE) for reply in replies):
                return replies
            if isinstance(marked, Exception) or isinstance(role, Exception) or role[0] != "master":
                raise exceptions.ConnectionError(f"the role or the slot changed during the write: {marked} {role}")
            self._replicas = max(self._terms.replicas, len(role[2]))
            if self._replicas > expected:
                [received] = await connection.exchange([("WAIT", self._replicas, milliseconds)], deadline)
        if isinstance(received, Exception):  # demoted meanwhile
            raise exceptions.ConnectionError(str(received))
        if received < self._replicas:
            raise NotDurable(f"{received} of {self._replicas} replicas of {self.name} received a write in time")
        return replies

    async def load_scripts(self) -> None:
        """Load all scripts. One round trip."""
        deadline = asyncio.get_running_loop().time() + self._terms.patience
        async with self.lend(deadline) as connection:
            await load_over(connection, deadline)

    def silent_at(self, now: float) -> bool:
        """Return True if commands are waiting and the server has sent nothing for at least `patience` seconds."""
        return self.reads.silent_at(now) or any(connection.silent_at(now) for connection in self._lent)

    async def close(self) -> None:
        """Close all connections. Open and later exchanges fail with ConnectionError, reads with StoreUnavailable."""
        self._closed = True
        for connection in (*self._idle, *self._lent):
            connection.drop(exceptions.ConnectionError("closed"))
        self._idle.clear()
        await self.reads.close()


def mark_for(commands: Sequence[Command], stable_key: str | None) -> list[Command]:
    """Return commands that write a short-lived key, so that a `WAIT` after them covers all earlier commands.

    `WAIT` covers what precedes the last write of its connection, and a repeated command may write nothing. While a slot
    moves key by key, its two nodes must not both hold a key with the same name: the move would fail and never complete.
    So the key is in the slot of `stable_key`, or, on a node that is importing the slot of the commands, has a unique
    name.
    """
    key = keys_of(next(filter(writes, commands)))[0]
    if commands[0] == ASKING:
        return [ASKING, script("set").call([keys.write_mark(key, f":{token_hex(8)}")], "", MARK_SECONDS)]
    return [script("set").call([keys.write_mark(stable_key or key)], "", MARK_SECONDS)]


async def load_over(connection: ExclusiveConnection, deadline: float) -> None:
    """Load all scripts over a connection. Raises the first error reply."""
    for reply in await connection.exchange(load_scripts(), deadline):
        if isinstance(reply, Exception):
            raise reply


async def exchange_over(
    connection: ExclusiveConnection, commands: Sequence[Command], tail: Sequence[Command], deadline: float
) -> list[Any]:
    """Return the replies to commands and then to `tail`.

    If scripts are missing, load them, and resend the commands that needed them and all of `tail`.
    """
    everything = [*commands, *tail]
    replies = await connection.exchange(everything, deadline)
    if not connection.has_errors:
        return replies
    missing = {index for index, reply in enumerate(replies) if isinstance(reply, exceptions.NoScriptError)}
    if missing:
        await load_over(connection, deadline)
        indexes = sorted(missing.union(range(len(commands), len(everything))))
        again = await connection.exchange([everything[index] for index in indexes], deadline)
        for index, reply in zip(indexes, again, strict=True):
            replies[index] = reply
    for reply in replies:
        if isinstance(reply, exceptions.ConnectionError):  # LOADING, or too many clients
            raise reply
        connection.read_only = connection.read_only or isinstance(reply, exceptions.ReadOnlyError)
    return replies
