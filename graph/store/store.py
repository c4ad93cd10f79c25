"""The store: sends commands and scripts to Valkey or Redis, a single server or a cluster.

Commands are sent in two ways. `Store.send` sends commands in a separate round trip. A read (`Store.read`, `Store.ask`)
shares a round trip with the other reads of the same event-loop ticks and goes through the read pipeline
(`graph.store.read_pipeline`), which takes less processor time. A read may be retried any number of times, so writes
must use `Store.send`.

Every write of the graph is idempotent, because a write that gets no reply is retried although it may have been applied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias, TypeVar

from redis import exceptions
from redis.crc import key_slot

from graph.chunks import chunks
from graph.errors import StoreUnavailable
from graph.recording import RECORDING
from graph.store.cluster import Cluster
from graph.store.cluster_pipeline import ClusterPipeline
from graph.store.commands import Command, Word, check_slots, in_groups, script
from graph.store.exchange import ExclusiveConnection
from graph.store.near_cache import Moment, NearCache
from graph.store.node import exchange_over
from graph.store.outages import OUTAGES, RETRYABLE, translate_error, unavailable
from graph.store.read_pipeline import ANSWER_SECONDS, MAX_WAITING, ReadPipeline
from graph.store.reads import Convert, Read, ReadAcrossSlots, ScatteredRead, TrackedRead
from graph.store.single import SingleServer
from graph.store.urls import servers_of
from graph.tasks import end

K = TypeVar("K")
V = TypeVar("V")
Client: TypeAlias = SingleServer | Cluster
Pipeline: TypeAlias = ReadPipeline | ClusterPipeline

BLOCK_SECONDS = 2.0
PRIMARY_SECONDS = 1.0
SCAN_COUNT = 1000
HELD_TICKS = 3


class Store:
    """A client of one store, shared by the whole process.

    `round_trips` and `commands` count what was sent. With `single_slot`, a command whose keys are in different cluster
    slots raises SlotError on a single server too, so that tests find it. `in_order` is True on a single server, which
    executes reads in the order in which they were queued; a cluster does not.

    `send` waits until all connected replicas of a shard, and at least `wait_for_replicas`, have its writes; 0 means no
    waiting. Raises ValueError for a URL that names no store. Connections are opened on first use.

    `near` keeps up to `near_cache` values for `graph.store.recall`; it is None if `near_cache` is 0.
    """

    def __init__(self, url: str, *, single_slot: bool = False, wait_for_replicas: int = 0, near_cache: int = 0) -> None:
        self.url = url
        self.single_slot = single_slot
        self.round_trips = 0
        self._commands = 0
        self._servers = servers_of(url)
        self._replicas = wait_for_replicas
        self.in_order = not self._servers.is_cluster
        self.near = NearCache(near_cache, absences=self.in_order) if near_cache else None
        self._client: Client | None = None
        self._queued: list[Read] = []
        self._queued_commands = 0
        self._read_pipeline: Pipeline | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def commands(self) -> int:
        """The number of commands that were sent."""
        return self._commands + (0 if self.near is None else self.near.added)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, in order. One round trip.

        Raises the first error reply, after all commands have run. Raises StoreUnavailable if the store does not answer;
        each command may or may not have been applied. Raises NotDurable if too few replicas have the writes. Cancelling
        the caller does not stop the exchange, so that its connection can be used again.
        """
        replies = await asyncio.shield(self._start(self._exchange(commands)))
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate_error(reply)
        return replies

    async def run(self, *command: Word) -> Any:
        """Return the reply to one command. One round trip. Raises the same errors as `send`."""
        return (await self.send([command]))[0]

    async def read(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to reads, which share a round trip with the other reads of the same event-loop ticks.

        Raises the same errors as `send`.
        """
        return await self.ask(commands, unchanged)

    async def read_across_slots(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to scripts that each name one key and read further keys, in any slots of the same node.

        `on_one_node` groups such keys. Raises SlotMoving if a slot has moved or is moving, and the same errors as
        `read`.
        """
        return await self.ask(commands, unchanged, ReadAcrossSlots)

    def ask(
        self, commands: Sequence[Command], convert: Callable[[list[Any]], V], kind: type[Read] = Read
    ) -> "asyncio.Future[V]":
        """Return a future of `convert(replies)`; the reads share a round trip with those of the same event-loop ticks.

        The future fails with the first error reply, with the exception that `convert` raises, or with StoreUnavailable
        if there is no answer for five seconds or too many reads are waiting. A read may be sent more than once, so it
        must not write, unless repeating it does little harm (`graph.rates`). Cancelling the future affects no other
        read.
        """
        loop = self.running_loop()
        future: asyncio.Future[V] = loop.create_future()
        try:
            if self.single_slot:
                check_slots(commands)
            self._queue(loop, kind(commands, convert, future))
        except Exception as error:
            future.set_exception(error)
            future.exception()  # mark the exception as retrieved, as `Read.fail` does
        return future

    def ask_each(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Callable[[list[Any]], V]
    ) -> "asyncio.Future[V]":
        """Return a future of `convert(replies)` for one command `name key word…` per key. Packs faster than `ask`."""
        if self.single_slot or not self.in_order:
            return self.ask([(name, key, *words) for key in keys], convert)
        loop = self.running_loop()
        future: asyncio.Future[V] = loop.create_future()
        self._queue(loop, Read.for_each_key(name, keys, words, convert, future))
        return future

    def track(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert, known: list[Any]
    ) -> "asyncio.Future[list[Any]]":
        """Return a future of `known` with its missing values read and cached. Needs a near cache; see `NearRead`."""
        loop = self.running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        assert self.near is not None  # noqa: S101 - documented
        kind = TrackedRead if self.in_order else ScatteredRead
        self._queue(loop, kind(self.near, name, keys, words, convert, known, future))
        return future

    def begin(self) -> Moment | None:
        """Return the moment of a request that begins now, for `graph.store.recall`; None without a near cache."""
        return None if self.near is None else self.near.begin()

    def expect(self, moment: Moment | None) -> None:
        """Let a request that began at a moment use near values of all nodes of a cluster after the next round trip."""
        if self.near is not None and moment is not None:
            self.near.expect(moment)

    def advance(self) -> None:
        """Ignore near values until a later read is answered: the process has learnt from elsewhere of a newer state."""
        if self.near is not None:
            self.near.advance()

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop. Faster than asyncio.get_running_loop, which makes a system call."""
        loop = self._loop
        return loop if loop is not None and loop.is_running() else asyncio.get_running_loop()

    def _queue(self, loop: asyncio.AbstractEventLoop, read: Read) -> None:
        if not read.size:
            read.resolve([])
            return
        pipeline = self._read_pipeline
        if pipeline is None or loop is not self._loop:
            pipeline = self._client_on(loop).reads
        if pipeline.waiting + self._queued_commands + read.size > MAX_WAITING:
            read.fail(StoreUnavailable(f"more than {MAX_WAITING} commands wait for a reply"))
            return
        if not self._queued:
            loop.call_soon(self._flush_after, loop, pipeline, HELD_TICKS)
        self._queued.append(read)
        self._queued_commands += read.size
        if (recording := RECORDING.get()) is not None:
            read.future.add_done_callback(recording.read(self._queued, read.size).answered)

    def _flush_after(self, loop: asyncio.AbstractEventLoop, pipeline: Pipeline, ticks: int) -> None:
        """Send the queued reads after a few ticks: tasks and dataloaders of the same request may ask for more."""
        if ticks:
            loop.call_soon(self._flush_after, loop, pipeline, ticks - 1)
        else:
            self._flush(pipeline)

    def _flush(self, pipeline: Pipeline) -> None:
        reads, self._queued = self._queued, []
        self.round_trips += 1
        self._commands += self._queued_commands
        self._queued_commands = 0
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        for read in reads:
            read.deadline = deadline
        pipeline.send(reads)

    def _client_on(self, loop: asyncio.AbstractEventLoop) -> Client:
        """Return the client of an event loop. Replaces the client of an earlier loop, which must have ended."""
        if self._client is None or loop is not self._loop:
            self._client = self._new_client()
            self._queued, self._queued_commands = [], 0
            self._read_pipeline, self._loop = self._client.reads, loop
        return self._client

    def _new_client(self) -> Client:
        if self.near is not None:
            self.near.disconnect_all()
        if self.in_order:
            return SingleServer(self._servers, self._replicas, self.near)
        return Cluster(self._servers, self._replicas, self.near)

    def _start(self, work: Coroutine[Any, Any, V]) -> "asyncio.Task[V]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: the caller may have been cancelled

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, errors included."""
        if not commands:
            return []
        if self.single_slot:
            check_slots(commands)
        self.round_trips += 1
        self._commands += len(commands)
        recording = RECORDING.get()
        recorded = None if recording is None else recording.exchange(len(commands))
        try:
            return await self._client_on(asyncio.get_running_loop()).exchange(commands)
        except exceptions.RedisError as error:  # while scripts were loaded
            raise translate_error(error) from error
        finally:
            if recorded is not None:
                recorded.answered()

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
        await self.run("EXISTS", "{log}")

    async def primaries(self) -> dict[str, str]:
        """Return the address of each primary with its replication id, which changes when another server takes over.

        Primaries that do not answer in time are left out. One round trip to each. Raises StoreUnavailable if the
        primaries are unknown.
        """
        found = {}
        for name, [text] in (await self.ask_primaries(("INFO", "replication"))).items():
            fields = dict(line.partition(":")[::2] for line in str(text).splitlines())
            if fields.get("role") == "master":
                found[name] = fields["master_replid"]
            else:
                self._client_on(asyncio.get_running_loop()).begin_refresh()
        return found

    async def ask_primaries(self, *commands: Command) -> dict[str, list[Any]]:
        """Return the replies of each primary to commands, errors included, by address.

        Primaries that do not answer in time are left out. One round trip to each, which `round_trips` does not count,
        because no request waits for it. Raises StoreUnavailable if the primaries are unknown.
        """
        loop = asyncio.get_running_loop()
        client = self._client_on(loop)
        nodes = await client.primaries()
        exchanges = (
            asyncio.wait_for(node.ask(commands, loop.time() + PRIMARY_SECONDS), PRIMARY_SECONDS) for node in nodes
        )
        outcomes = await asyncio.shield(self._start(gathered(exchanges)))
        if any(isinstance(outcome, OUTAGES) for outcome in outcomes):
            client.begin_refresh()
        return {node.name: outcome for node, outcome in zip(nodes, outcomes, strict=True) if isinstance(outcome, list)}

    async def replicate(self, key: str, milliseconds: int) -> None:
        """Write the time to `key`, and wait up to `milliseconds` for the replicas of its shard to receive it.

        A replica that has received it also has all earlier writes to the shard. Two round trips, or one if there are no
        replicas. Raises StoreUnavailable if the server does not answer, or was demoted before or during the wait.
        """
        await asyncio.shield(self._start(self._replicate(key, milliseconds)))

    async def _replicate(self, key: str, milliseconds: int) -> None:
        loop = asyncio.get_running_loop()
        client = self._client_on(loop)
        node = await client.owner(key)
        try:
            async with node.lend(loop.time() + ANSWER_SECONDS) as connection:
                write = script("set").call([key], int(time.time()), 0)
                role = (await self._ask_over(connection, write, ("ROLE",)))[1]
                if role[0] != "master":
                    raise exceptions.ConnectionError("the server was demoted")
                if role[2]:
                    await self._ask_over(connection, ("WAIT", len(role[2]), milliseconds))
        except RETRYABLE as error:
            await self.run("EXISTS", key)  # follows the redirection, and learns the slot's new owner
            raise unavailable(error) from error
        except (*OUTAGES, exceptions.ResponseError) as error:
            client.begin_refresh()
            raise StoreUnavailable(error) from error

    async def _ask_over(self, connection: ExclusiveConnection, *commands: Command) -> list[Any]:
        """Return the replies to commands on one connection. One round trip. Raises the first error reply."""
        self.round_trips += 1
        self._commands += len(commands)
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        replies = await exchange_over(connection, commands, (), deadline)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def next_sample(self) -> str:
        """Return a key owned by the next primary, in rotation; empty on a single server or if no such key is known."""
        samples = self._client.topology.samples if isinstance(self._client, Cluster) else None
        if not samples:
            return ""
        samples.rotate()
        return samples[0]

    def together(self, items: Iterable[K], key: Callable[[K], str], limit: int) -> Iterator[Sequence[K]]:
        """Yield lists of at most `limit` items whose keys one command may name: on a cluster, the keys of one slot.

        `key` returns a key of an item; all keys of the item must be in its slot.
        """
        if self.in_order and not self.single_slot:
            return chunks([*items], limit)
        return in_groups(items, lambda item: key_slot(key(item).encode()), limit)

    def on_one_node(self, items: Iterable[K], key: Callable[[K], str], limit: int) -> Iterator[Sequence[K]]:
        """Yield lists of at most `limit` items whose keys are on one node, according to the slot map.

        `read_across_slots` reads them.
        """
        client = self._client
        if not isinstance(client, Cluster):
            return chunks([*items], limit)
        owner_of = client.topology.owner_of
        return in_groups(items, lambda item: owner_of(key(item)), limit)

    async def scan(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield lists of the keys that match a pattern. A key may be yielded twice.

        Every key that exists during the whole scan is found. One round trip per 1,000 keys in the store.
        """
        loop = asyncio.get_running_loop()
        client = self._client_on(loop)
        for node in await client.primaries():
            cursor = "0"
            while True:
                self.round_trips += 1
                self._commands += 1
                command = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
                try:
                    [reply] = await node.ask([command], loop.time() + ANSWER_SECONDS)
                except OUTAGES as error:
                    client.begin_refresh()
                    raise StoreUnavailable(error) from error
                if isinstance(reply, Exception):
                    raise translate_error(reply)
                cursor, found = reply
                yield list(found)
                if int(cursor) == 0:
                    break

    def reader(self) -> Self:
        """Return another client of the same store, for blocking reads."""
        return type(self)(self.url, single_slot=self.single_slot)

    async def close(self) -> None:
        """Close all connections. Open reads fail with StoreUnavailable."""
        await end(list(self._tasks))
        if self._client is not None:
            await self._client.close()
            await asyncio.sleep(0)  # let the event loop close the sockets of dropped connections


async def gathered(exchanges: Iterable[Coroutine[Any, Any, V]]) -> list[V | BaseException]:
    """Run coroutines concurrently, and return their results or exceptions, in order."""
    return await asyncio.gather(*exchanges, return_exceptions=True)


def unchanged(replies: list[Any]) -> list[Any]:
    """Return replies without conversion."""
    return replies
