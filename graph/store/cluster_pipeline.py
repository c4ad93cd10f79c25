"""The cluster pipeline: one read pipeline per node, and the slot map of redis-py's cluster client.

Each command goes to the node that owns its keys. A command is sent again, elsewhere or later, after a redirection
(MOVED, ASK), a temporary refusal (TRYAGAIN, CLUSTERDOWN) or the failure of its node, until the deadline of its read.
So reads survive resharding and failover.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from redis import exceptions
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from graph.errors import StoreUnavailable
from graph.store.commands import Command, keys_of
from graph.store.outages import OUTAGES, translate_error
from graph.store.read_pipeline import BACKOFF, ReadPipeline
from graph.store.reads import Read
from graph.tasks import end

ASKING: Command = ("ASKING",)
REDIRECTIONS = (exceptions.AskError, exceptions.MovedError)
RETRYABLE = (*REDIRECTIONS, exceptions.ClusterDownError, exceptions.MasterDownError, exceptions.TryAgainError)
IMMEDIATE_REDIRECTIONS = 4

LoadScripts: TypeAlias = Callable[[Sequence[ClusterNode]], Awaitable[None]]


class SplitRead:
    """A read whose commands go to several nodes, with the replies received so far."""

    def __init__(self, read: Read, pipeline: "ClusterPipeline") -> None:
        self.read = read
        self.redirect = pipeline.redirect
        self.tries = 0
        self._replies: list[Any] = [None] * read.size
        self._missing = read.size

    def add(self, index: int, reply: Any) -> None:
        """Add the reply or error of one command; resolve the read with the last one."""
        if isinstance(reply, RETRYABLE):
            self.redirect(self, index, reply)
            return
        self._replies[index] = reply
        self._missing -= 1
        if self._missing:
            return
        error = next((each for each in self._replies if isinstance(each, Exception)), None)
        if error is None:
            self.read.resolve(self._replies)
        else:
            self.read.reject(self._replies, error)


class NodeRead(Read):
    """The commands of a split read that go to one node; with `asking`, to a node that is importing their slot."""

    __slots__ = ("_indexes", "_split")

    def __init__(self, split: SplitRead, indexes: Sequence[int], *, asking: bool = False) -> None:
        read = split.read
        commands = [read.commands[index] for index in indexes]
        if asking:
            commands = [each for command in commands for each in (ASKING, command)]
        super().__init__(commands, read.convert, read.future)
        self.deadline = read.deadline
        self._split = split
        self._indexes = indexes

    def resolve(self, replies: list[Any]) -> None:
        """Pass the replies on, some of which may be errors."""
        stride = self.size // max(1, len(self._indexes))
        indexes, self._indexes = self._indexes, ()
        for index, reply in zip(indexes, replies[stride - 1 :: stride], strict=False):
            self._split.add(index, reply)

    def reject(self, replies: list[Any], error: Exception) -> None:
        """Pass the replies on."""
        self.resolve(replies)

    def fail(self, error: Exception) -> None:
        """Send the commands again, because the node does not answer."""
        indexes, self._indexes = self._indexes, ()
        for index in indexes:
            self._split.redirect(self._split, index, error)


@dataclass(slots=True)
class RedirectedRead:
    """One command of a split read that must be sent again, and the error of the last try, if any."""

    split: SplitRead
    index: int
    error: Exception | None


class ClusterPipeline:
    """Sends reads to the nodes of a cluster, through one read pipeline per node."""

    def __init__(self, client: RedisCluster, load_scripts: LoadScripts) -> None:
        self._client = client
        self._load_scripts = load_scripts
        self._pipelines: dict[str, ReadPipeline] = {}
        self._redirected: list[RedirectedRead] = []
        self._resending: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of commands without a reply."""
        return len(self._redirected) + sum([pipeline.waiting for pipeline in self._pipelines.values()])

    def send(self, reads: Sequence[Read]) -> None:
        """Send each command to the node that owns its keys, in one write per node."""
        self._dispatch([(SplitRead(read, self), range(read.size)) for read in reads])

    def redirect(self, split: SplitRead, index: int, error: Exception | None) -> None:
        """Send a command again once its node is known."""
        if self._closed:
            split.read.fail(StoreUnavailable("closed"))
            return
        split.tries += 1
        self._redirected.append(RedirectedRead(split, index, error))
        if self._resending is None:
            self._resending = asyncio.get_running_loop().create_task(self._resend_redirected())

    def _dispatch(self, commands: Sequence[tuple[SplitRead, Sequence[int]]]) -> None:
        """Send commands to the nodes that own their keys; redirect those whose owner is unknown."""
        node_reads: defaultdict[str, list[NodeRead]] = defaultdict(list)
        nodes: dict[str, ClusterNode] = {}
        for split, indexes in commands:
            indexes_of: defaultdict[str, list[int]] = defaultdict(list)
            for index in indexes:
                node = self._owner(split.read.commands[index])
                if node is None:
                    self.redirect(split, index, None)
                else:
                    nodes[node.name] = node
                    indexes_of[node.name].append(index)
            for name, group in indexes_of.items():
                node_reads[name].append(NodeRead(split, group))
        for name, reads in node_reads.items():
            self._pipeline_to(nodes[name]).send(reads)

    def _owner(self, command: Command) -> ClusterNode | None:
        keys = keys_of(command)
        owners = self._client.nodes_manager.slots_cache.get(key_slot(keys[0].encode()) if keys else 0)
        return owners[0] if owners else None

    def _pipeline_to(self, node: ClusterNode) -> ReadPipeline:
        pipeline = self._pipelines.get(node.name)
        if pipeline is None:
            pipeline = ReadPipeline(partial(connection_to, node), partial(self._load_scripts, [node]))
            self._pipelines[node.name] = pipeline
        return pipeline

    async def _resend_redirected(self) -> None:
        """Send redirected commands again until none is left: each has a reply or has passed its deadline."""
        loop = asyncio.get_running_loop()
        try:
            while self._redirected:
                await asyncio.sleep(max(delay_before(each) for each in self._redirected))
                now = loop.time()
                self._redirected = [each for each in self._redirected if not is_over(each, now)]
                if self._redirected:
                    await self._resend(list(self._redirected))
        finally:
            self._resending = None

    async def _resend(self, redirected: Sequence[RedirectedRead]) -> None:
        """Update the slot map and send these commands, the first ones of `_redirected`; keep them during an outage."""
        try:
            async with asyncio.timeout_at(min(each.split.read.deadline for each in redirected)):
                await self._update_slots([each.error for each in redirected])
        except OUTAGES as error:
            for each in redirected:
                each.error, each.split.tries = error, each.split.tries + 1
            return
        except Exception as error:
            for each in redirected:
                each.split.read.fail(translate_error(error))
            return
        del self._redirected[: len(redirected)]
        for each in redirected:
            if isinstance(each.error, exceptions.AskError):
                self._send_asking(each.split, each.index, each.error)
        self._dispatch([(e.split, [e.index]) for e in redirected if not isinstance(e.error, exceptions.AskError)])

    async def _update_slots(self, errors: Sequence[Exception | None]) -> None:
        """Update the slot map from MOVED errors; after errors other than redirections, reload the map."""
        nodes = self._client.nodes_manager
        if not nodes.slots_cache:
            await self._client.initialize()
        for error in errors:
            if isinstance(error, exceptions.MovedError):
                await nodes.move_slot(error)
        if not all(error is None or isinstance(error, REDIRECTIONS) for error in errors):
            await nodes.initialize()
            for name in [name for name in self._pipelines if name not in nodes.nodes_cache]:
                await self._pipelines.pop(name).close()

    def _send_asking(self, split: SplitRead, index: int, error: exceptions.AskError) -> None:
        """Send a command to the node that is importing its slot."""
        nodes = self._client.nodes_manager
        node = nodes.get_node(error.host, error.port) or ClusterNode(error.host, error.port, **nodes.connection_kwargs)
        self._pipeline_to(node).send([NodeRead(split, [index], asking=True)])

    async def close(self) -> None:
        """Close all connections. Open and later reads fail with StoreUnavailable."""
        self._closed = True
        if self._resending is not None:
            await end([self._resending])
        for pipeline in self._pipelines.values():
            await pipeline.close()
        for each in self._redirected:
            each.split.read.fail(StoreUnavailable("closed"))


def connection_to(node: ClusterNode) -> AbstractConnection:
    """Return a connection to a node, with the client's settings but without retries, because slots may move."""
    return node.connection_class(**{**node.connection_kwargs, "retry": Retry(NoBackoff(), 0)})


def is_over(redirected: RedirectedRead, now: float) -> bool:
    """Return True if the command's read is done. A read past its deadline fails here."""
    read = redirected.split.read
    if read.deadline <= now:
        read.fail(StoreUnavailable(redirected.error or "the node that owns a slot is unknown"))
    return read.future.done()


def delay_before(redirected: RedirectedRead) -> float:
    """Return the seconds to wait before the next try: 0 for the first redirections, then a backoff."""
    split, error = redirected.split, redirected.error
    if split.tries <= IMMEDIATE_REDIRECTIONS and (error is None or isinstance(error, REDIRECTIONS)):
        return 0
    return BACKOFF.compute(split.tries)
