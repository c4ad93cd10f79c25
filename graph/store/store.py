"""The connection to Valkey or Redis, single or clustered: pipelines, scripts, and the shared read pipeline.

Everything the graph does to the store is a list of commands sent in one round trip by `Store.send`, through redis-py,
or a read that shares a round trip with the other reads of its event-loop tick (`Store.ask`), through a lane of its own
(`graph.store.read_pipeline`), which costs a tenth. A read may be repeated, so what writes is sent.

Every write of the graph is idempotent, because a write that timed out may have been applied, and the client
library repeats it by itself.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any, Self, TypeVar

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.crc import key_slot

from graph.errors import StoreUnavailable
from graph.store.cluster_pipeline import ClusterPipeline
from graph.store.commands import Command, Word, refuse_many_slots, script
from graph.store.connection import Read
from graph.store.outages import OUTAGES, as_graph_error
from graph.store.read_pipeline import ANSWER_SECONDS, MOST_WAITING, ReadPipeline
from graph.tasks import end

C = TypeVar("C", Redis, RedisCluster)
K = TypeVar("K")
V = TypeVar("V")

SOCKET_TIMEOUT = 5.0
BLOCK_SECONDS = 2.0
RETRIES = 3
SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss", "unix": "unix"}
CLUSTER_SCHEMES = ("valkey+cluster", "redis+cluster")
SCANNED_AT_ONCE = 1000
HELD_TICKS = 3


class Store:
    """The store, shared by all of one process.

    `round_trips` and `commands` count what was sent. With `single_slot`, a command whose keys lie in different
    cluster slots raises SlotError even on a single server, so that tests find it. `in_order` tells that a read asked
    for earlier is answered as of an earlier moment: so on a single server, not on a cluster.
    """

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        self.url = url
        self.single_slot = single_slot
        self.round_trips = 0
        self.commands = 0
        self._client = connect(url)
        self.in_order = not isinstance(self._client, RedisCluster)
        self._asked: list[Read] = []
        self._asked_commands = 0
        self._read_pipeline: ReadPipeline | ClusterPipeline | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: set[asyncio.Task[Any]] = set()

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one round trip; answer with their replies in order.

        An error reply is raised (the first one), after all commands have run. Raises StoreUnavailable if the store
        does not answer: then any of them may or may not have been applied. A caller that is cancelled goes at once;
        the exchange goes on without it, so that no connection is left half used.
        """
        replies = await asyncio.shield(self._start(self._exchange(commands)))
        for reply in replies:
            if isinstance(reply, Exception):
                raise as_graph_error(reply)
        return replies

    async def run(self, *command: Word) -> Any:
        """Send one command in a round trip of its own."""
        return (await self.send([command]))[0]

    async def read(self, commands: Sequence[Command]) -> list[Any]:
        """Send reads together with all others of these event-loop ticks, in one round trip.

        Commands of one call keep their order; a cancelled caller disturbs nobody else. Raises like `send`.
        """
        return await self.ask(commands, unchanged)

    def ask(self, commands: Sequence[Command], answer: Callable[[list[Any]], V]) -> "asyncio.Future[V]":
        """Give a future of `answer(replies)` for reads, which leave with all others of the next few event-loop ticks.

        The future fails with the first error reply, with what `answer` raises, or with StoreUnavailable: if there is
        no answer for five seconds, or if too many reads wait already. A read may be sent more than once, so it must
        not write, unless repeating it does little harm (`graph.rates`). Cancelling the future disturbs nobody else.
        """
        loop = self.running_loop()
        future: asyncio.Future[V] = loop.create_future()
        try:
            if self.single_slot:
                for command in commands:
                    refuse_many_slots(command)
            self._queue(loop, Read(commands, answer, future))
        except Exception as error:
            future.set_exception(error)
        return future

    def ask_each(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], answer: Callable[[list[Any]], V]
    ) -> "asyncio.Future[V]":
        """Do what `ask` does, for the command `name key word…` on each of many keys: the same, but cheaper to pack."""
        if self.single_slot or not self.in_order:
            return self.ask([(name, key, *words) for key in keys], answer)
        loop = self.running_loop()
        future: asyncio.Future[V] = loop.create_future()
        self._queue(loop, Read.of_each(name, keys, words, answer, future))
        return future

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """Give the running loop: the one of the lane, as long as it runs, since to ask for it is a system call."""
        loop = self._loop
        return loop if loop is not None and loop.is_running() else asyncio.get_running_loop()

    def _queue(self, loop: asyncio.AbstractEventLoop, read: Read) -> None:
        """Let a read leave with the others."""
        if not read.size:
            read.settle([])
            return
        pipeline = self._read_pipeline
        if pipeline is None or loop is not self._loop:
            pipeline = self._pipeline_on(loop)
        if pipeline.waiting + self._asked_commands + read.size > MOST_WAITING:
            read.fail(StoreUnavailable(f"more than {MOST_WAITING} reads wait for an answer"))
            return
        if not self._asked:
            loop.call_soon(self._hold, loop, pipeline, HELD_TICKS)
        self._asked.append(read)
        self._asked_commands += read.size

    def _hold(self, loop: asyncio.AbstractEventLoop, pipeline: ReadPipeline | ClusterPipeline, ticks: int) -> None:
        """Let reads wait a little for others of the same request, which are asked for through tasks and dataloaders."""
        if ticks:
            loop.call_soon(self._hold, loop, pipeline, ticks - 1)
        else:
            self._flush(pipeline)

    def _flush(self, pipeline: ReadPipeline | ClusterPipeline) -> None:
        reads, self._asked = self._asked, []
        self.round_trips += 1
        self.commands += self._asked_commands
        self._asked_commands = 0
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        for read in reads:
            read.deadline = deadline
        pipeline.send(reads)

    def _pipeline_on(self, loop: asyncio.AbstractEventLoop) -> ReadPipeline | ClusterPipeline:
        """Begin a lane on an event loop. One on another loop, which must have ended, is forgotten."""
        pipeline: ReadPipeline | ClusterPipeline
        if isinstance(self._client, RedisCluster):
            pipeline = ClusterPipeline(self._client, self._load_scripts)
        else:
            pipeline = ReadPipeline(
                self._client.connection_pool.make_connection, partial(self._load_scripts, [self._client])
            )
        self._asked, self._asked_commands = [], 0
        self._read_pipeline, self._loop = pipeline, loop
        return pipeline

    def _start(self, work: Coroutine[Any, Any, V]) -> "asyncio.Task[V]":
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and answer with replies, of which some may be exceptions; the one way to the store."""
        if self.single_slot:
            for command in commands:
                refuse_many_slots(command)
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

    def together(self, items: Iterable[K], key: Callable[[K], str], most: int) -> Iterator[list[K]]:
        """Group items into lists whose keys one command may name: of one slot each on a cluster, else any.

        `key` gives one key of an item, in whose slot all keys of the item are. No list is longer than `most`.
        """
        groups: defaultdict[int, list[K]] = defaultdict(list)
        many_slots = self.single_slot or isinstance(self._client, RedisCluster)
        for item in items:
            groups[key_slot(key(item).encode()) if many_slots else 0].append(item)
        for group in groups.values():
            for start in range(0, len(group), most):
                yield group[start : start + most]

    async def scan(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield the store's keys that match a pattern, some at a time; a key may come twice.

        Every key that exists throughout is found. One round trip for about every thousand keys in the store.
        """
        if isinstance(self._client, RedisCluster):
            await self._client.initialize()
        for node in self._nodes():
            cursor = "0"
            while True:
                self.round_trips += 1
                self.commands += 1
                try:
                    cursor, found = await node.execute_command(
                        "SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED_AT_ONCE
                    )
                except OUTAGES as error:
                    raise StoreUnavailable(error) from error
                yield list(found)
                if int(cursor) == 0:
                    break

    def reader(self) -> Self:
        """Give a second connection to the same store for blocking reads, so that they hold up nobody."""
        return type(self)(self.url, single_slot=self.single_slot)

    async def close(self) -> None:
        """Close all connections."""
        await end(list(self._under_way))
        if self._read_pipeline is not None:
            await self._read_pipeline.close()
        await self._client.aclose()


def unchanged(replies: list[Any]) -> list[Any]:
    """Answer a read with its replies as they are."""
    return replies


def check_url(url: str) -> None:
    """Raise ValueError, saying what is wrong without repeating it, unless a URL can be that of a store."""
    scheme, _, rest = url.partition("://")
    if scheme in CLUSTER_SCHEMES:
        for number, node in enumerate(rest.rstrip("/").split(","), 1):
            if not re.fullmatch(r"[\w.:\[\]-]*:\d{1,5}", node):
                raise ValueError(f"node {number} of the cluster is not like host:6379")
    elif scheme not in SCHEMES:
        raise ValueError(f"must begin with one of {', '.join(f'{name}://' for name in (*SCHEMES, *CLUSTER_SCHEMES))}")
    elif taken := set(_options_of(f"{SCHEMES[scheme]}://{rest}")) & {"protocol", "decode_responses"}:
        raise ValueError(f"must not set {' or '.join(sorted(taken))}")


def _options_of(url: str) -> Mapping[str, Any]:
    """Parse a URL. Raises ValueError, without what is in the URL: it may be a password."""
    try:
        return parse_url(url)
    except ValueError:
        message = "is not a URL like valkey://user:password@host:6379/0; in a password, write %23 for # and %2F for /"
        raise ValueError(message) from None


def connect(url: str) -> Redis | RedisCluster:
    """Make a client for a store's URL without connecting yet: one server, or the nodes of a cluster.

    Raises ValueError for a URL that names no store.
    """
    check_url(url)
    options: dict[str, Any] = {
        "decode_responses": True,
        "protocol": 3,
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": SOCKET_TIMEOUT,
    }
    scheme, _, rest = url.partition("://")
    if scheme in CLUSTER_SCHEMES:
        nodes = [node.rpartition(":") for node in rest.rstrip("/").split(",")]
        startup = [ClusterNode(host or "127.0.0.1", int(port)) for host, _, port in nodes]
        return with_raw_replies(RedisCluster(startup_nodes=startup, **options))
    retry = Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), RETRIES, (exceptions.ConnectionError,))
    pool = BlockingConnectionPool.from_url(
        f"{SCHEMES[scheme]}://{rest}", max_connections=50, timeout=SOCKET_TIMEOUT, retry=retry, **options
    )
    return with_raw_replies(Redis.from_pool(pool))


def with_raw_replies(client: C) -> C:
    """Leave replies as the protocol gives them, except those that the client itself needs for a cluster."""
    callbacks: Any = client.response_callbacks
    for name in [name for name in callbacks if not str(name).upper().startswith(("CLUSTER", "COMMAND"))]:
        del callbacks[name]
    return client
