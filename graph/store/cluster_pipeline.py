"""The read pipelines of a cluster: one a node, with the slots that redis-py's cluster client knows.

The commands of a read go to the nodes that own their keys. What a node redirects (MOVED, ASK), cannot tell at the
moment (TRYAGAIN, CLUSTERDOWN) or is not there to answer is asked again, elsewhere or later, until the read's time is
up: so resharding and the death of a node are survived.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from redis import exceptions
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from graph.errors import StoreUnavailable
from graph.store.commands import Command, keys_of
from graph.store.connection import Read
from graph.store.outages import OUTAGES, as_graph_error
from graph.store.read_pipeline import BACKOFF, ReadPipeline
from graph.tasks import end

ASKING: Command = ("ASKING",)
REDIRECTIONS = (exceptions.AskError, exceptions.MovedError)
PASSING = (*REDIRECTIONS, exceptions.ClusterDownError, exceptions.MasterDownError, exceptions.TryAgainError)
REDIRECTIONS_AT_ONCE = 4

LoadScripts = Callable[[Sequence[ClusterNode]], Awaitable[None]]


class SplitRead:
    """A read whose commands go to several nodes, with the replies that have come."""

    def __init__(self, read: Read, pipelines: "ClusterPipeline") -> None:
        self.read = read
        self.astray = pipelines.astray
        self.tries = 0
        self._replies: list[Any] = [None] * read.size
        self._left = read.size

    def take(self, place: int, reply: Any) -> None:
        """Take the reply of one command, or its error; the last one answers the read."""
        if isinstance(reply, PASSING):
            self.astray(self, place, reply)
            return
        self._replies[place] = reply
        self._left -= 1
        if self._left:
            return
        error = next((each for each in self._replies if isinstance(each, Exception)), None)
        if error is None:
            self.read.settle(self._replies)
        else:
            self.read.refuse(self._replies, error)


class Part(Read):
    """The commands of a scattered read that go to one node; with `asking`, to one that imports their slot."""

    __slots__ = ("_places", "_scattered")

    def __init__(self, scattered: SplitRead, places: Sequence[int], *, asking: bool = False) -> None:
        read = scattered.read
        commands = [read.commands[place] for place in places]
        if asking:
            commands = [each for command in commands for each in (ASKING, command)]
        super().__init__(commands, read.answer, read.future)
        self.deadline = read.deadline
        self._scattered = scattered
        self._places = places

    def settle(self, replies: list[Any]) -> None:
        """Pass on the replies, some of which may be errors."""
        stride = self.size // max(1, len(self._places))
        places, self._places = self._places, ()
        for place, reply in zip(places, replies[stride - 1 :: stride], strict=False):
            self._scattered.take(place, reply)

    def refuse(self, replies: list[Any], error: Exception) -> None:
        """Pass on the replies."""
        self.settle(replies)

    def fail(self, error: Exception) -> None:
        """Ask again: the node is not there to answer."""
        places, self._places = self._places, ()
        for place in places:
            self._scattered.astray(self._scattered, place, error)


@dataclass(slots=True)
class RedirectedRead:
    """A command of a scattered read that has to be asked again, and why."""

    scattered: SplitRead
    place: int
    error: Exception | None


class ClusterPipeline:
    """Sends reads to the nodes of a cluster, through one lane each."""

    def __init__(self, client: RedisCluster, load_scripts: LoadScripts) -> None:
        self._client = client
        self._load_scripts = load_scripts
        self._pipelines: dict[str, ReadPipeline] = {}
        self._astray: list[RedirectedRead] = []
        self._guiding: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many commands have no answer."""
        return len(self._astray) + sum([pipeline.waiting for pipeline in self._pipelines.values()])

    def send(self, reads: Sequence[Read]) -> None:
        """Send each command to the node that owns its keys, in one write a node."""
        self._place([(SplitRead(read, self), range(read.size)) for read in reads])

    def astray(self, scattered: SplitRead, place: int, error: Exception | None) -> None:
        """Ask a command again that its node did not answer, once it is known where."""
        if self._closed:
            scattered.read.fail(StoreUnavailable("closed"))
            return
        scattered.tries += 1
        self._astray.append(RedirectedRead(scattered, place, error))
        if self._guiding is None:
            self._guiding = asyncio.get_running_loop().create_task(self._guide())

    def _place(self, wanted: Sequence[tuple[SplitRead, Sequence[int]]]) -> None:
        """Send commands to the nodes that own their keys, as far as these are known."""
        parts: defaultdict[str, list[Part]] = defaultdict(list)
        nodes: dict[str, ClusterNode] = {}
        for scattered, places in wanted:
            own: defaultdict[str, list[int]] = defaultdict(list)
            for place in places:
                node = self._owner(scattered.read.commands[place])
                if node is None:
                    self.astray(scattered, place, None)
                else:
                    nodes[node.name] = node
                    own[node.name].append(place)
            for name, group in own.items():
                parts[name].append(Part(scattered, group))
        for name, some in parts.items():
            self._read_pipeline(nodes[name]).send(some)

    def _owner(self, command: Command) -> ClusterNode | None:
        keys = keys_of(command)
        owners = self._client.nodes_manager.slots_cache.get(key_slot(keys[0].encode()) if keys else 0)
        return owners[0] if owners else None

    def _read_pipeline(self, node: ClusterNode) -> ReadPipeline:
        pipeline = self._pipelines.get(node.name)
        if pipeline is None:
            pipeline = ReadPipeline(partial(connection_to, node), partial(self._load_scripts, [node]))
            self._pipelines[node.name] = pipeline
        return pipeline

    async def _guide(self) -> None:
        """Ask again what went astray, where the cluster says or as soon as it knows, until the reads' time is up."""
        loop = asyncio.get_running_loop()
        try:
            while self._astray:
                await asyncio.sleep(max(delay(each) for each in self._astray))
                now = loop.time()
                self._astray = [each for each in self._astray if not given_up(each, now)]
                if self._astray:
                    await self._guide_once(list(self._astray))
        finally:
            self._guiding = None

    async def _guide_once(self, strays: Sequence[RedirectedRead]) -> None:
        """Learn where the first strays belong, and send them there; they stay what they are if nobody tells."""
        try:
            async with asyncio.timeout_at(min(each.scattered.read.deadline for each in strays)):
                await self._learn([each.error for each in strays])
        except OUTAGES as error:
            for each in strays:
                each.error, each.scattered.tries = error, each.scattered.tries + 1
            return
        except Exception as error:
            for each in strays:
                each.scattered.read.fail(as_graph_error(error))
            return
        del self._astray[: len(strays)]
        for each in strays:
            if isinstance(each.error, exceptions.AskError):
                self._ask(each.scattered, each.place, each.error)
        self._place([(e.scattered, [e.place]) for e in strays if not isinstance(e.error, exceptions.AskError)])

    async def _learn(self, errors: Sequence[Exception | None]) -> None:
        """Learn from errors who owns which slots now; ask the cluster, if they do not say."""
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

    def _ask(self, scattered: SplitRead, place: int, error: exceptions.AskError) -> None:
        """Send a command to the node that is about to own its slot."""
        nodes = self._client.nodes_manager
        node = nodes.get_node(error.host, error.port) or ClusterNode(error.host, error.port, **nodes.connection_kwargs)
        self._read_pipeline(node).send([Part(scattered, [place], asking=True)])

    async def close(self) -> None:
        """End all connections; reads that wait fail with StoreUnavailable, and so do those to come."""
        self._closed = True
        if self._guiding is not None:
            await end([self._guiding])
        for pipeline in self._pipelines.values():
            await pipeline.close()
        for each in self._astray:
            each.scattered.read.fail(StoreUnavailable("closed"))


def connection_to(node: ClusterNode) -> AbstractConnection:
    """Make a connection to a node, with the cluster client's settings; it connects once, because slots may move."""
    return node.connection_class(**{**node.connection_kwargs, "retry": Retry(NoBackoff(), 0)})


def given_up(stray: RedirectedRead, now: float) -> bool:
    """Tell whether nobody waits for a command any more; the read whose time is up fails."""
    read = stray.scattered.read
    if read.deadline <= now:
        read.fail(StoreUnavailable(stray.error or "it is not known which node owns a slot"))
    return read.future.done()


def delay(stray: RedirectedRead) -> float:
    """Give the seconds to wait before a command is asked again: none where the cluster said at once where to ask."""
    if stray.scattered.tries <= REDIRECTIONS_AT_ONCE and (stray.error is None or isinstance(stray.error, REDIRECTIONS)):
        return 0
    return BACKOFF.compute(stray.scattered.tries)
