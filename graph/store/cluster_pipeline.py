"""The cluster pipeline: one read pipeline per node.

Each command goes to the node that owns its keys. A command is sent again, elsewhere or later, after a redirection
(MOVED, ASK), a temporary refusal (TRYAGAIN, CLUSTERDOWN …) or the failure of its node, until the deadline of its read.
So reads survive resharding and failover.
"""

import asyncio
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions

from graph.errors import StoreUnavailable
from graph.store.commands import ASKING
from graph.store.near_cache import LOST, NearCache, TrackingPeriod
from graph.store.node import Node
from graph.store.outages import IMMEDIATE_REDIRECTIONS, is_asking, unavailable
from graph.store.read_pipeline import ANSWER_SECONDS
from graph.store.reads import CACHING, Read, ScatteredRead, pack
from graph.store.topology import Topology, address_of
from graph.tasks import end

CACHED = CACHING.encode()


class SplitRead:
    """A read whose commands go to several nodes, with the replies received so far."""

    def __init__(self, read: Read, pipeline: "ClusterPipeline") -> None:
        self.read = read
        self.redirect = pipeline.redirect
        self.tries = 0
        self._replies: list[Any] = [None] * read.size
        self._missing = read.size

    def add(self, index: int, reply: Any, node: Node, source: TrackingPeriod | None) -> None:
        """Add the reply or error of one command. The last one completes the read.

        `source` is the tracking period of the value, or None if the near cache must not keep the value.
        """
        if self.read.must_be_repeated(reply):
            self.redirect(Redirected(self, index, node, reply))
            return
        if isinstance(self.read, ScatteredRead):
            self.read.sources[index] = source
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
    """The commands of a split read that go to one node; with `asking`, the node is importing their slot.

    Without `asking`, the node tracks the keys of near reads, provided that its connection tracks keys.
    """

    __slots__ = ("_indexes", "_node", "_split", "_stride", "_tracked")

    def __init__(self, split: SplitRead, indexes: Sequence[int], node: Node, *, asking: bool = False) -> None:
        read = split.read
        tracked = False
        if isinstance(read, ScatteredRead) and not asking and node.reads.source is not None:
            tracked = True
            read.near.added += len(indexes)
        self._stride = 2 if asking or tracked else 1
        before = pack(ASKING) if asking else CACHED if tracked else b""
        packed = b"".join([before + pack(read.commands[index]) for index in indexes])
        self._set((), packed, self._stride * len(indexes), read.convert, read.future)
        self.deadline = read.deadline
        self._tracked = tracked
        self._split = split
        self._indexes = indexes
        self._node = node

    def resolve(self, replies: list[Any]) -> None:
        """Pass the replies, some of which may be errors, to the split read."""
        stride = self._stride
        refused = self._tracked and any(isinstance(reply, Exception) for reply in replies[::stride])
        source = self.source if self._tracked and not refused else None
        indexes, self._indexes = self._indexes, ()
        for index, reply in zip(indexes, replies[stride - 1 :: stride], strict=False):
            self._split.add(index, reply, self._node, source)

    def reject(self, replies: list[Any], error: Exception) -> None:
        """Pass the replies to the split read."""
        self.resolve(replies)

    def fail(self, error: Exception) -> None:
        """Send the commands again, because the node does not answer."""
        indexes, self._indexes = self._indexes, ()
        for index in indexes:
            self._split.redirect(Redirected(self._split, index, self._node, error))


@dataclass(eq=False, slots=True)
class Redirected:
    """One command of a split read that must be sent again, and the error of the last try, if any."""

    split: SplitRead
    index: int
    node: Node | None
    error: Exception | None


class ClusterPipeline:
    """Sends reads to the nodes of a cluster, through one read pipeline per node."""

    def __init__(self, topology: Topology, near: NearCache | None) -> None:
        self._topology = topology
        self._near = near
        self._redirected: list[Redirected] = []
        self._held: list[Redirected] = []
        self._holding: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of commands without a reply."""
        nodes = self._topology.nodes.values()
        return len(self._redirected) + len(self._held) + sum([node.reads.waiting for node in nodes])

    def send(self, reads: Sequence[Read]) -> None:
        """Send each command to the node that owns its keys, in one write per node."""
        self._dispatch([(SplitRead(read, self), range(read.size)) for read in reads])

    def redirect(self, redirected: Redirected) -> None:
        """Send a command again, with the others that are redirected in the same event-loop iteration."""
        if self._closed:
            redirected.split.read.fail(StoreUnavailable("closed"))
            return
        if not self._redirected:
            asyncio.get_running_loop().call_soon(self._resend)
        self._redirected.append(redirected)

    def _dispatch(self, commands: Sequence[tuple[SplitRead, Sequence[int]]]) -> None:
        """Send commands to the nodes that own their keys; redirect those whose owner is unknown."""
        node_reads: defaultdict[Node, list[NodeRead]] = defaultdict(list)
        for split, indexes in commands:
            indexes_of: defaultdict[Node, list[int]] = defaultdict(list)
            for index in indexes:
                node = self._topology.owner(split.read.commands[index])
                if node is None:
                    self.redirect(Redirected(split, index, None, None))
                else:
                    indexes_of[node].append(index)
            for node, group in indexes_of.items():
                node_reads[node].append(NodeRead(split, group, node))
        if self._near is not None and self._near.expected != LOST:
            self._touch(self._near, node_reads)
        for node, reads in node_reads.items():
            node.reads.send(reads)

    def _touch(self, near: NearCache, others: Container[Node]) -> None:
        """Send `EXISTS` to each node that has cached values but has been sent nothing since the expected moment.

        Once a node has answered, requests that began before may use its values instead of reading them again. The
        nodes in `others` are about to get reads anyway. A node that has lost its slots refuses the key, and its values
        stay unusable. These commands are sent first, so that their replies are rarely the last to arrive.
        """
        for node in self._topology.nodes.values():
            source = node.reads.source
            if source is None or not source.gave or source.sent > near.expected or node in others:
                continue
            key = self._topology.sample_of(node.name)
            if key is not None:
                loop = asyncio.get_running_loop()
                touch = Read([("EXISTS", key)], bool, loop.create_future())
                touch.deadline = loop.time() + ANSWER_SECONDS
                node.reads.send([touch])
                near.added += 1
        near.expected = LOST

    def _resend(self) -> None:
        """Send redirected commands to their new nodes. Hold those whose node is unknown or fails."""
        redirected, self._redirected = self._redirected, []
        for each in redirected:
            if isinstance(each.error, exceptions.MovedError) and each.node is not None:
                self._topology.moved(each.error, each.node)
        for split in {each.split for each in redirected}:
            split.tries += 1
        ready: list[Redirected] = []
        for each in redirected:
            (self._held if self._must_be_held(each) else ready).append(each)
        self._send_again(ready)
        if self._held and self._holding is None:
            self._holding = asyncio.get_running_loop().create_task(self._send_held())

    def _must_be_held(self, redirected: Redirected) -> bool:
        split, node = redirected.split, redirected.node
        is_owner = node is self._topology.owner(split.read.commands[redirected.index])
        return split.tries > IMMEDIATE_REDIRECTIONS or (is_owner and not is_asking(redirected.error))

    def _send_again(self, redirected: Sequence[Redirected]) -> None:
        """Send commands to the nodes that are importing their slots, or else to those that own them."""
        owned = []
        for each in redirected:
            if is_asking(each.error) and each.node is not None:
                node = self._topology.node(address_of(each.error.host, each.error.port, each.node.name))
                node.reads.send([NodeRead(each.split, [each.index], node, asking=True)])
            else:
                owned.append((each.split, [each.index]))
        self._dispatch(owned)

    async def _send_held(self) -> None:
        """Send held commands after each refresh of the slot map, until each has a reply or its deadline has passed."""
        loop = asyncio.get_running_loop()
        try:
            while self._held:
                await self._topology.refresh(min(each.split.read.deadline for each in self._held))
                now = loop.time()
                held, self._held = self._held, []
                for each in held:
                    if each.split.read.deadline <= now:
                        problem = each.error or f"no node owns the slot; {self._topology.problem}"
                        each.split.read.fail(unavailable(problem))
                self._send_again([each for each in held if not each.split.read.future.done()])
        finally:
            self._holding = None

    async def close(self) -> None:
        """Close the pipeline. Open and later reads fail with StoreUnavailable."""
        self._closed = True
        if self._holding is not None:
            await end([self._holding])
        for each in (*self._redirected, *self._held):
            each.split.read.fail(StoreUnavailable("closed"))
