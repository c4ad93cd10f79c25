"""A cluster as the store: each command goes to the node that owns its keys.

A command is sent again, elsewhere or later, after a redirection (MOVED, ASK), a temporary refusal (TRYAGAIN,
CLUSTERDOWN …) or the failure of its node, until a deadline. So commands survive resharding and failover; each write may
be applied more than once, and a script may be applied in part.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

from redis import exceptions

from graph.errors import StoreUnavailable
from graph.store.cluster_pipeline import ClusterPipeline
from graph.store.commands import ASKING, Command
from graph.store.near_cache import NearCache
from graph.store.node import Node, NodeSettings
from graph.store.outages import IMMEDIATE_REDIRECTIONS, OUTAGES, is_asking, is_retryable, unavailable
from graph.store.read_pipeline import ANSWER_SECONDS
from graph.store.topology import Topology, address_of
from graph.store.urls import Servers

SILENT_SECONDS = 0.5

Target: TypeAlias = tuple[Node | None, bool]
"""The node that gets commands, None if unknown, and whether each command needs `ASKING` because the node imports its
slot."""


class CommandBatch:
    """Commands, and the replies received so far."""

    def __init__(self, commands: Sequence[Command], now: float) -> None:
        self.commands = commands
        self.replies: list[Any] = [None] * len(commands)
        self.deadline = now + ANSWER_SECONDS
        self.importing: dict[int, str] = {}  # by the index of a command, the node that is importing its slot


class Cluster:
    """A client of a cluster."""

    def __init__(self, servers: Servers, replicas: int, near: NearCache | None = None) -> None:
        self._servers = servers
        self._terms = NodeSettings(SILENT_SECONDS, self.begin_refresh, replicas, near, self._stable_key)
        self.topology = Topology(servers.names, self._new_node)
        self.reads = ClusterPipeline(self.topology, near)

    def _new_node(self, name: str) -> Node:
        return Node(name, lambda retries: self._servers.connection(name, retries), 0, self._terms)

    def _stable_key(self, name: str) -> str | None:
        return self.topology.any_key_of(name)

    def begin_refresh(self) -> None:
        """Read the slot map in the background, because a node failed or was demoted."""
        self.topology.begin_refresh()

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, errors included. One round trip to each node. Raises StoreUnavailable."""
        batch = CommandBatch(commands, asyncio.get_running_loop().time())
        await self._deliver(batch, range(len(commands)))
        return batch.replies

    async def _deliver(self, batch: CommandBatch, indexes: Sequence[int], tries: int = 0) -> None:
        """Send commands until each has its reply. Commands to several nodes do not wait for each other."""
        while indexes:
            groups = self._by_target(batch, indexes)
            if len(groups) > 1:
                deliveries = (self._deliver_to(batch, target, group, tries) for target, group in groups.items())
                for outcome in await asyncio.gather(*deliveries, return_exceptions=True):
                    if isinstance(outcome, BaseException):
                        raise outcome
                return
            [(target, group)] = groups.items()
            indexes = await self._try(batch, target, group, tries)
            tries += 1

    async def _deliver_to(self, batch: CommandBatch, target: Target, indexes: Sequence[int], tries: int) -> None:
        await self._deliver(batch, await self._try(batch, target, indexes, tries), tries + 1)

    def _by_target(self, batch: CommandBatch, indexes: Sequence[int]) -> dict[Target, list[int]]:
        groups: defaultdict[Target, list[int]] = defaultdict(list)
        for index in indexes:
            name = batch.importing.pop(index, None)
            node = self.topology.owner(batch.commands[index]) if name is None else self.topology.node(name)
            groups[node, name is not None].append(index)
        return groups

    async def _try(self, batch: CommandBatch, target: Target, indexes: Sequence[int], tries: int) -> Sequence[int]:
        """Send commands to one node. Return the indexes of those to send again, after any necessary wait."""
        node, asking = target
        if node is None:
            await self._wait(batch, exceptions.ConnectionError(f"no node owns the slot; {self.topology.problem}"))
            return indexes
        commands = [batch.commands[index] for index in indexes]
        try:
            if asking:
                commands = [each for command in commands for each in (ASKING, command)]
            replies = await node.exchange(commands, batch.deadline)
        except OUTAGES as error:
            if asking or tries >= IMMEDIATE_REDIRECTIONS or self._is_owner(node, batch, indexes):
                await self._wait(batch, error)
            return indexes
        again: list[int] = []
        for index, reply in zip(indexes, replies[asking :: 1 + asking], strict=True):
            if is_retryable(reply):
                again.append(index)
            batch.replies[index] = reply
        if again:
            await self._heed(batch, node, again, tries)
        return again

    async def _heed(self, batch: CommandBatch, node: Node, indexes: Sequence[int], tries: int) -> None:
        """Follow redirections. After the first four, or after any other error, wait for a new slot map."""
        refusal: Exception | None = None
        for index in indexes:
            error = batch.replies[index]
            if is_asking(error):
                batch.importing[index] = address_of(error.host, error.port, node.name)
            elif isinstance(error, exceptions.MovedError):
                self.topology.moved(error, node)
            else:
                refusal = error
        if refusal is not None or tries >= IMMEDIATE_REDIRECTIONS:
            await self._wait(batch, refusal or batch.replies[indexes[0]])

    def _is_owner(self, node: Node, batch: CommandBatch, indexes: Sequence[int]) -> bool:
        return any(self.topology.owner(batch.commands[index]) is node for index in indexes)

    async def _wait(self, batch: CommandBatch, error: Exception) -> None:
        """Wait for a new slot map. Raises StoreUnavailable once the deadline has passed."""
        await self.topology.refresh(batch.deadline)
        if asyncio.get_running_loop().time() >= batch.deadline:
            raise unavailable(error) from error

    async def owner(self, key: str) -> Node:
        """Return the primary that owns a key. Raises StoreUnavailable if the owner is unknown."""
        await self._know()
        node = self.topology.owner(("GET", key))
        if node is None:
            raise StoreUnavailable(f"no node owns the slot of {key}; {self.topology.problem}")
        return node

    async def primaries(self) -> list[Node]:
        """Return the primaries. Raises StoreUnavailable if they are unknown."""
        await self._know()
        if not self.topology.primaries:
            raise StoreUnavailable(f"the primaries are unknown; {self.topology.problem}")
        return [self.topology.node(name) for name in self.topology.primaries]

    async def _know(self) -> None:
        if not self.topology.primaries:
            await self.topology.refresh(asyncio.get_running_loop().time() + ANSWER_SECONDS)

    async def close(self) -> None:
        """Close all connections. Open and later reads fail with StoreUnavailable."""
        await self.reads.close()
        await self.topology.close()
