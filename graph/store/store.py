"""The store: sends commands and scripts to Valkey or Redis, a single server or a cluster.

Commands are sent in two ways. `Store.send` sends commands in one round trip of their own through redis-py. A read
(`Store.read`, `Store.ask`) shares a round trip with the other reads of the same event-loop ticks and goes through the
read pipeline (`graph.store.read_pipeline`), at a tenth of the processor time. Reads may be repeated, so writes must use
`Store.send`.

Every write of the graph is idempotent, because redis-py repeats a write that timed out, which may have been applied.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from typing import Any, Self, TypeAlias, TypeVar

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.crc import key_slot

from graph.errors import StoreUnavailable
from graph.store.cluster_pipeline import ClusterPipeline
from graph.store.commands import Command, Word, check_slot, script
from graph.store.outages import OUTAGES, translate_error
from graph.store.read_pipeline import ANSWER_SECONDS, MAX_WAITING, ReadPipeline
from graph.store.reads import Read
from graph.store.urls import close, connect
from graph.tasks import end

K = TypeVar("K")
V = TypeVar("V")
Pipeline: TypeAlias = ReadPipeline | ClusterPipeline

BLOCK_SECONDS = 2.0
SCAN_COUNT = 1000
HELD_TICKS = 3


class Store:
    """A client of one store, shared by the whole process.

    `round_trips` and `commands` count what was sent. With `single_slot`, a command whose keys are in different cluster
    slots raises SlotError on a single server too, so that tests find it. `in_order` is True on a single server, which
    executes reads in the order in which they were asked; a cluster does not.
    """

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        self.url = url
        self.single_slot = single_slot
        self.round_trips = 0
        self.commands = 0
        self._client = connect(url)
        self.in_order = not isinstance(self._client, RedisCluster)
        self._queued: list[Read] = []
        self._queued_commands = 0
        self._read_pipeline: Pipeline | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, in order. One round trip.

        Raises the first error reply, after all commands have run. Raises StoreUnavailable if the store does not
        answer; each command may then have been applied or not. Cancelling the caller does not stop the exchange, so
        that no connection is returned to the pool with unread replies.
        """
        replies = await asyncio.shield(self._start(self._exchange(commands)))
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate_error(reply)
        return replies

    async def run(self, *command: Word) -> Any:
        """Return the reply to one command. One round trip. Raises like `send`."""
        return (await self.send([command]))[0]

    async def read(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to reads, which share a round trip with the other reads of the same event-loop ticks.

        Raises like `send`.
        """
        return await self.ask(commands, unchanged)

    def ask(self, commands: Sequence[Command], convert: Callable[[list[Any]], V]) -> "asyncio.Future[V]":
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
                for command in commands:
                    check_slot(command)
            self._queue(loop, Read(commands, convert, future))
        except Exception as error:
            future.set_exception(error)
        return future

    def ask_each(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Callable[[list[Any]], V]
    ) -> "asyncio.Future[V]":
        """Ask for the replies to `name key word…`, one command per key. Cheaper to pack than `ask`."""
        if self.single_slot or not self.in_order:
            return self.ask([(name, key, *words) for key in keys], convert)
        loop = self.running_loop()
        future: asyncio.Future[V] = loop.create_future()
        self._queue(loop, Read.for_each_key(name, keys, words, convert, future))
        return future

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
            pipeline = self._pipeline_on(loop)
        if pipeline.waiting + self._queued_commands + read.size > MAX_WAITING:
            read.fail(StoreUnavailable(f"more than {MAX_WAITING} commands wait for a reply"))
            return
        if not self._queued:
            loop.call_soon(self._flush_after, loop, pipeline, HELD_TICKS)
        self._queued.append(read)
        self._queued_commands += read.size

    def _flush_after(self, loop: asyncio.AbstractEventLoop, pipeline: Pipeline, ticks: int) -> None:
        """Send the queued reads after some ticks: tasks and dataloaders of the same request may ask for more."""
        if ticks:
            loop.call_soon(self._flush_after, loop, pipeline, ticks - 1)
        else:
            self._flush(pipeline)

    def _flush(self, pipeline: Pipeline) -> None:
        reads, self._queued = self._queued, []
        self.round_trips += 1
        self.commands += self._queued_commands
        self._queued_commands = 0
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        for read in reads:
            read.deadline = deadline
        pipeline.send(reads)

    def _pipeline_on(self, loop: asyncio.AbstractEventLoop) -> Pipeline:
        """Return a new read pipeline, in place of that of another event loop, which must have ended."""
        pipeline: Pipeline
        if isinstance(self._client, RedisCluster):
            pipeline = ClusterPipeline(self._client, self._load_scripts)
        else:
            pipeline = ReadPipeline(
                self._client.connection_pool.make_connection, partial(self._load_scripts, [self._client])
            )
        self._queued, self._queued_commands = [], 0
        self._read_pipeline, self._loop = pipeline, loop
        return pipeline

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
        """Return the replies to commands, errors included. Loads the scripts if the server lacks one."""
        if self.single_slot:
            for command in commands:
                check_slot(command)
        if not commands:
            return []
        replies = await self._pipeline(commands)
        missing = [index for index, reply in enumerate(replies) if isinstance(reply, exceptions.NoScriptError)]
        if missing:
            await self._load_scripts(self._nodes())
            again = await self._pipeline([commands[index] for index in missing])
            for index, reply in zip(missing, again, strict=True):
                replies[index] = reply
        return replies

    async def _pipeline(self, commands: Sequence[Command]) -> list[Any]:
        self.round_trips += 1
        self.commands += len(commands)
        try:
            if len(commands) == 1:
                return [await self._one(commands[0])]
            async with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(await pipeline.execute(raise_on_error=False))
        except OUTAGES as error:
            raise StoreUnavailable(error) from error

    async def _one(self, command: Command) -> Any:
        try:
            return await self._client.execute_command(*command)
        except exceptions.ResponseError as error:
            return error

    def _nodes(self) -> Sequence[Redis | ClusterNode]:
        if isinstance(self._client, RedisCluster):
            return [node for node in self._client.get_primaries() if isinstance(node, ClusterNode)]
        return [self._client]

    async def _load_scripts(self, nodes: Sequence[Redis | ClusterNode]) -> None:
        names = [entry.name.removesuffix(".lua") for entry in resources.files("graph.scripts").iterdir()]
        sources = [script(name).source for name in names if not name.startswith("__")]
        try:
            for node in nodes:
                for source in sources:
                    self.round_trips += 1
                    self.commands += 1
                    await node.execute_command("SCRIPT LOAD", source)
        except OUTAGES as error:
            raise StoreUnavailable(error) from error

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
        await self.run("EXISTS", "{log}")

    async def replicate(self, key: str, milliseconds: int) -> None:
        """Write a time to `key`, and wait until the replicas of its shard have received it, for a limited time.

        They have then received all earlier writes to the shard too. One round trip without replicas, else two. Raises
        StoreUnavailable also if the server was demoted before or during the wait.
        """
        try:
            async with self._connection_for(key) as connection:
                self.round_trips += 1
                self.commands += 2
                _, role = await _ask(connection, ("SET", key, int(time.time())), ("ROLE",))
                if role[0] == "master" and role[2]:
                    self.round_trips += 1
                    self.commands += 1
                    await _ask(connection, ("WAIT", len(role[2]), milliseconds))
        except (exceptions.AskError, exceptions.MovedError) as error:
            await self.run("EXISTS", key)  # redis-py follows the redirection, and learns the slot's new owner
            raise StoreUnavailable(error) from error
        except (*OUTAGES, exceptions.ResponseError) as error:
            raise StoreUnavailable(error) from error

    @asynccontextmanager
    async def _connection_for(self, key: str) -> AsyncIterator[AbstractConnection]:
        """Lend a connection to the primary that holds a key."""
        if isinstance(self._client, RedisCluster):
            await self._client.initialize()
            node = self._client.get_node_from_key(key)
            if node is None:
                raise StoreUnavailable(f"no node serves the slot of {key}")
            connection = node.acquire_connection()
            try:
                yield connection
            except BaseException:
                await connection.disconnect()
                raise
            finally:
                node.release(connection)
            return
        pool: Any = self._client.connection_pool  # parts of redis-py have no types
        lent: AbstractConnection = await pool.get_connection()
        try:
            yield lent
        except BaseException:
            await lent.disconnect()
            raise
        finally:
            await pool.release(lent)

    def together(self, items: Iterable[K], key: Callable[[K], str], most: int) -> Iterator[list[K]]:
        """Yield lists of at most `most` items whose keys one command may name: on a cluster, the keys of one slot.

        `key` returns a key of an item; all keys of the item must be in its slot.
        """
        groups: defaultdict[int, list[K]] = defaultdict(list)
        many_slots = self.single_slot or isinstance(self._client, RedisCluster)
        for item in items:
            groups[key_slot(key(item).encode()) if many_slots else 0].append(item)
        for group in groups.values():
            for start in range(0, len(group), most):
                yield group[start : start + most]

    async def scan(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield lists of the keys that match a pattern. A key may be yielded twice.

        Every key that exists during the whole scan is found. One round trip per 1,000 keys in the store.
        """
        if isinstance(self._client, RedisCluster):
            await self._client.initialize()
        for node in self._nodes():
            cursor = "0"
            while True:
                self.round_trips += 1
                self.commands += 1
                try:
                    cursor, found = await node.execute_command("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
                except OUTAGES as error:
                    raise StoreUnavailable(error) from error
                yield list(found)
                if int(cursor) == 0:
                    break

    def reader(self) -> Self:
        """Return another client of the same store, for blocking reads."""
        return type(self)(self.url, single_slot=self.single_slot)

    async def close(self) -> None:
        """Close all connections. Open reads fail with StoreUnavailable."""
        await end(list(self._tasks))
        if self._read_pipeline is not None:
            await self._read_pipeline.close()
        await close(self._client)


async def _ask(connection: AbstractConnection, *commands: Command) -> list[Any]:
    """Return the replies to commands on one connection. One round trip. Raises the first error that is replied."""
    await connection.send_packed_command(connection.pack_commands(commands))
    return [await connection.read_response() for _ in commands]


def unchanged(replies: list[Any]) -> list[Any]:
    """Return replies without conversion."""
    return replies
