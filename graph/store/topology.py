"""The topology of a cluster: its nodes, and the primary that owns each slot.

The slot map is read from several nodes at once, in one task at a time. No command waits for the answer of a node that
hangs, and commands to slots whose owner is known do not wait for the map.
"""

import asyncio
import math
import random
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from redis import exceptions
from redis.crc import key_slot

from graph import keys
from graph.store.commands import Command, keys_of
from graph.store.node import Node
from graph.store.outages import OUTAGES
from graph.tasks import end

SLOTS = 16384
SAMPLES = 1000
ASKED_NODES = 5
ASK_SECONDS = 0.5
LATE_SECONDS = 0.05
REFRESH_SECONDS = 0.25


@dataclass(frozen=True)
class SlotMap:
    """A node's reply to `CLUSTER SLOTS`, with the state and the epoch that the node reports for the cluster."""

    healthy: bool
    epoch: int
    ranges: tuple[tuple[int, int, str], ...]
    names: frozenset[str]

    @classmethod
    def parse(cls, name: str, info: str, ranges: Sequence[Any]) -> "SlotMap":
        """Return the slot map in the replies of the node called `name`."""
        fields = dict(line.partition(":")[::2] for line in info.split())
        found, names = [], set()
        for first, last, *nodes in ranges:
            known = [address_of(str(host or ""), int(port), name) for host, port, *_ in nodes if host != "?"]
            names.update(known)
            if nodes[0][0] != "?":
                found.append((int(first), int(last), known[0]))
        epoch = int(fields.get("cluster_current_epoch", 0))
        return cls(fields.get("cluster_state") == "ok", epoch, tuple(found), frozenset(names))


class Topology:
    """The nodes of a cluster and the owner of each slot.

    `primaries` are the names of the nodes that own slots, `samples` contains one key owned by each of them, if known,
    and `problem` says why the map could not be read.
    """

    def __init__(self, startup: Sequence[str], new_node: Callable[[str], Node]) -> None:
        self.primaries: tuple[str, ...] = ()
        self.samples: deque[str] = deque()
        self.problem = ""
        self.nodes: dict[str, Node] = {}
        self._startup = startup
        self._new_node = new_node
        self._owners: list[str | None] = [None] * SLOTS
        self._samples: dict[str, list[str]] = {}
        self._names = frozenset(startup)
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed = -math.inf

    def node(self, name: str) -> Node:
        """Return the node with this name."""
        node = self.nodes.get(name)
        if node is None:
            node = self.nodes[name] = self._new_node(name)
        return node

    def owner(self, command: Command) -> Node | None:
        """Return the primary that owns the keys of a command, or slot 0 if it has no keys; None if unknown."""
        named = keys_of(command)
        name = self._owners[key_slot(named[0].encode()) if named else 0]
        return None if name is None else self.node(name)

    def owner_of(self, key: str) -> str | int:
        """Return the name of the primary that owns a key, or the key's slot if its owner is unknown."""
        slot = key_slot(key.encode())
        return self._owners[slot] or slot

    def sample_of(self, name: str) -> str | None:
        """Return a key that a primary owns according to the slot map; None if it owns none of the 1,000 sample keys."""
        return self._samples[name][-1] if name in self._samples else None

    def any_key_of(self, name: str) -> str | None:
        """Return a random sample key that a primary owns, or None: the slot of any one key may be moving."""
        return random.choice(self._samples[name]) if name in self._samples else None  # noqa: S311 - no secret

    def moved(self, error: exceptions.MovedError, source: Node) -> None:
        """Record the new owner of a slot, and read the map again in the background."""
        owner = address_of(error.host, error.port, source.name)
        self._forget({self._owners[error.slot_id], source.name} - {owner})
        self._owners[error.slot_id] = owner
        self.begin_refresh()

    def _forget(self, names: Collection[str | None]) -> None:
        """Drop the near values of nodes that have lost slots: these nodes do not report writes to the new owners."""
        for name in names:
            if name in self.nodes:
                self.nodes[name].reads.forget()

    async def refresh(self, deadline: float) -> None:
        """Wait until the map has been read again, or until the deadline. It is read at most four times a second."""
        await asyncio.wait([self.begin_refresh()], timeout=deadline - asyncio.get_running_loop().time())

    def begin_refresh(self) -> "asyncio.Task[None]":
        """Start a task that reads the map, unless one is running, and return it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        return self._refreshing

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._refreshed + REFRESH_SECONDS - loop.time())
        now = loop.time()
        well = [name for name in self._names if name not in self.nodes or not self.nodes[name].silent_at(now)]
        try:
            maps = await self._ask(well) or await self._ask(self._startup)
            if maps:
                await self._use(freshest(maps))
        finally:
            self._refreshed = loop.time()  # commands that wait would otherwise ask again at once

    async def _ask(self, names: Sequence[str]) -> list[SlotMap]:
        """Ask up to five of these nodes, and return the maps that arrive within 0.05 s of the first one."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ASK_SECONDS
        some = random.sample(names, min(ASKED_NODES, len(names)))
        pending = {loop.create_task(self._map_of(self.node(name), deadline)) for name in some}
        maps: list[SlotMap] = []
        try:
            while pending and (left := deadline - loop.time()) > 0:
                done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                maps += [found for task in done if (found := task.result()) is not None]
                if maps:
                    deadline = min(deadline, loop.time() + LATE_SECONDS)
        finally:
            await end(pending)
        return maps

    async def _map_of(self, node: Node, deadline: float) -> SlotMap | None:
        try:
            info, ranges = await node.ask([("CLUSTER", "INFO"), ("CLUSTER", "SLOTS")], deadline)
            if isinstance(ranges, Exception):
                raise ranges
            return SlotMap.parse(node.name, str(info), ranges)
        except (*OUTAGES, exceptions.ResponseError) as error:
            self.problem = str(error)
        except (TypeError, ValueError, LookupError) as error:
            self.problem = f"{node.name} sent a map of the slots that cannot be read: {error}"
        return None

    async def _use(self, found: SlotMap) -> None:
        """Use a map. Close nodes that have left the cluster, and nodes that hang and are no longer primaries."""
        before, self._owners = self._owners, [None] * SLOTS
        for first, last, name in found.ranges:
            self._owners[first : last + 1] = [name] * (last + 1 - first)
        if before != self._owners:
            self._forget({old for old, new in zip(before, self._owners, strict=True) if old != new})
        self._names = found.names
        self.primaries = tuple(sorted({name for _, _, name in found.ranges}))
        owned: defaultdict[str, list[str]] = defaultdict(list)
        for key, slot in sample_slots():
            owned[self._owners[slot] or ""].append(key)
        self._samples = {name: owned[name] for name in self.primaries if name in owned}
        self.samples = deque(each[-1] for each in self._samples.values())
        now = asyncio.get_running_loop().time()
        for node in [node for node in self.nodes.values() if node.name not in self.primaries]:
            if node.name not in self._names or node.silent_at(now):
                self.nodes.pop(node.name, None)
                await node.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._refreshing is not None:
            await end([self._refreshing])
        for node in self.nodes.values():
            await node.close()


@cache
def sample_slots() -> list[tuple[str, int]]:
    """Return 1,000 sample keys with their slots: enough for each primary to own one."""
    return [(key, key_slot(key.encode())) for key in map(keys.post, range(SAMPLES))]


def freshest(maps: Sequence[SlotMap]) -> SlotMap:
    """Return the map with the highest epoch, from a healthy node if there is one.

    A node that is cut off from the others misses failovers.
    """
    return max(maps, key=lambda each: (each.healthy, each.epoch))


def address_of(host: str, port: int, source: str) -> str:
    """Return the name of a node. If its host is not known, use the host of `source`, the node that sent its address."""
    return f"{host or source.rpartition(':')[0]}:{port}"
