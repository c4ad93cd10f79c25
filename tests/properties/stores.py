"""Stores that exchange commands over blocking sockets, behind a gate, and note what is appended to the log."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from redis import Redis

from graph.store.commands import Command, check_slots, in_groups, load_scripts, script
from graph.store.near_cache import LOST, TrackingPeriod
from graph.store.reads import Convert, ScatteredRead, TrackedRead
from tests.properties.exchange import CACHING, Exchange, tag_of
from tests.properties.gate import Gate
from tests.properties.journal import Journal
from tests.properties.near import PREFIXES, CheckedCache
from tests.support.stores import InterceptedStore

CLUSTER = "valkey+cluster://127.0.0.1:1"
"""The URL of stores that use several servers, like a cluster. No store connects to it."""
K = TypeVar("K")

SCAN_COUNT = 1000
LOADED: set[str] = set()
"""The servers on which the scripts are loaded. They stay loaded while the tests run."""


class DirectClient(Redis):
    """The client library's client over blocking sockets, much faster than its connection pools."""

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
    """A store over blocking sockets, much faster than the client library.

    Only for tests whose processes take turns. Every appended event is noted in the journal.
    """

    def __init__(self, url: str, journal: Journal, *, single_slot: bool = False) -> None:
        super().__init__(CLUSTER if "," in url else url, single_slot=single_slot)
        self._journal = journal
        self.exchange = Exchange(url)
        if url not in LOADED:
            self.exchange(load_scripts())
            LOADED.add(url)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if self.single_slot:
            check_slots(commands)
        replies = self.exchange(commands)
        append = script("append").sha
        for command, reply in zip(commands, replies, strict=True):
            if command[:2] == ("EVALSHA", append) and isinstance(reply, list) and reply[0] == "appended":
                numbers = [int(number) for number in reply[1:]]
                self._journal.note(command, numbers)
                self.exchange.servers.note(numbers)
        return replies

    async def scan(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield lists of the keys that match a pattern."""
        cursor = "0"
        while True:
            [[cursor, found]] = await self._exchange([("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)])
            yield list(found)
            if int(cursor) == 0:
                return

    def together(self, items: Iterable[K], key: Callable[[K], str], limit: int) -> Iterator[Sequence[K]]:
        """Yield lists of at most `limit` items whose keys one command may name. Different tags never share a slot."""
        if self.in_order:
            return super().together(items, key, limit)
        return in_groups(items, lambda item: tag_of(key(item)), limit)

    def on_one_node(self, items: Iterable[K], key: Callable[[K], str], limit: int) -> Iterator[Sequence[K]]:
        """Yield lists of at most `limit` items whose keys are on one server."""
        return in_groups(items, lambda item: self.exchange.servers.place_of(key(item)), limit)

    async def replicate(self, key: str, milliseconds: int) -> None:
        """Write a time to `key`. There are no replicas to wait for."""
        await self._exchange([("SET", key, int(time.time()))])

    async def ask_primaries(self, *commands: Command) -> dict[str, list[Any]]:
        """Return no replies: the server's memory limit is unknown, so it counts as having room."""
        return {}

    async def close(self) -> None:
        await super().close()
        self.exchange.close()


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
    """The store of one process with a near cache, behind the gate. Reads have separate connections.

    On a cluster, the reads of each server have a separate turn, so that anything may happen between them.
    """

    def __init__(self, url: str, journal: Journal, gate: Gate, process: str, *, single_slot: bool) -> None:
        super().__init__(url, journal, gate, process, single_slot=single_slot)
        self._pipe = Exchange(url, self._invalidate)
        self._watch = Exchange(url, self._note_writes)
        self.near = self._checked = CheckedCache(self._watch)
        everything = [word for prefix in PREFIXES for word in ("PREFIX", prefix)]
        self._watch([("CLIENT", "TRACKING", "ON", "BCAST", *everything)])
        self._pipe([("CLIENT", "TRACKING", "ON", "OPTIN")])
        self._sources = [self.near.connected() for _ in self._pipe.lines]

    def _invalidate(self, place: int, messages: Sequence[Any]) -> None:
        for _, names in messages:
            if names is None:
                self._sources[place] = self._checked.renewed(self._sources[place])
            else:
                self._checked.invalidate(names)

    def _note_writes(self, place: int, messages: Sequence[Any]) -> None:
        self._checked.note_writes(place, messages)

    def track(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert, known: list[Any]
    ) -> "asyncio.Future[list[Any]]":
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        commands: list[Command] = [(name, key, *words) for key in keys]
        sources = [self._sources[self._pipe.servers.place_of(key)] for key in keys]
        resolve = self._resolver(sources, name, keys, words, convert, known, future)

        def keep(replies: list[Any]) -> None:
            resolve(replies)
            for command, row in zip(commands, replies[1::2], strict=True):
                self._checked.note_row(str(command[1]), command, row)

        def fail(done: "asyncio.Future[None]") -> None:
            if done.cancelled():
                future.cancel()
            elif (error := done.exception()) is not None and not future.done():
                future.set_exception(error)

        asked = self.ask([each for command in commands for each in (CACHING, command)], keep)
        asked.add_done_callback(fail)
        return future

    def _resolver(self, sources: list[TrackingPeriod], *arguments: Any) -> Callable[[list[Any]], None]:
        """Return the function that resolves a near read of these sources."""
        if self.in_order:
            tracked = TrackedRead(self._checked, *arguments)
            tracked.source = sources[0]
            return tracked.resolve
        scattered = ScatteredRead(self._checked, *arguments)
        scattered.sources = [*sources]
        return lambda replies: scattered.resolve(replies[1::2])

    async def _exchange_reads(self, commands: Sequence[Command]) -> list[Any]:
        replies: list[Any] = [None] * len(commands)
        groups = self._pipe.by_place(commands)
        self._touch(groups)

        async def read_from(place: int, indexes: Sequence[int]) -> None:
            found = await self._read_from(place, [commands[index] for index in indexes])
            for index, reply in zip(indexes, found, strict=True):
                replies[index] = reply

        await asyncio.gather(*(read_from(place, indexes) for place, indexes in groups.items()))
        return replies

    def _touch(self, others: Container[int]) -> None:
        """Ping servers that have given near values, as `ClusterPipeline` does, without waiting for the replies."""
        near = self._checked
        if near.expected != LOST and not self.in_order:
            for place, source in enumerate(self._sources):
                if source.gave and source.sent <= near.expected and place not in others:
                    self._start(self._read_from(place, [("PING",)]))
        near.expected = LOST

    async def _read_from(self, place: int, commands: Sequence[Command]) -> list[Any]:
        near, source = self._checked, self._sources[place]
        near.sent += 1
        number = source.sent = near.sent
        async with self._gate.turn(self._process):
            replies = self._pipe.lines[place](commands)
            source.answered = max(number, source.answered)
            near.executed[place] = source.answered
            self._watch.lines[place]([("PING",)])
            near.written[place] = set()
            return replies

    async def close(self) -> None:
        await super().close()
        self._pipe.close()
        self._watch.close()
