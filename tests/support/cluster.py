"""A cluster of three primaries and three replicas on this host, for tests."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from server.embedded import Durability, EmbeddedStore
from server.local_cluster import PRIMARIES, SLOTS, ClusterNode, LocalCluster
from tests.support.graph_worlds import PATIENCE
from tests.support.graphs import remove_archive

__all__ = ["PRIMARIES", "SLOTS", "Cluster", "Node", "answers", "cluster_in", "kill", "nodes_of", "until"]

Node = ClusterNode


class Cluster(LocalCluster):
    """A cluster whose nodes tests can kill."""

    @property
    def primaries(self) -> list[Node]:
        """The nodes that were primaries at the start."""
        return self.nodes[:PRIMARIES]

    def owner(self, key: str) -> Node:
        """Return the primary that owned a key's slot at the start."""
        return self.primaries[key_slot(key.encode()) * PRIMARIES // SLOTS]


def kill(node: EmbeddedStore) -> None:
    """Kill a server and wait until it is dead."""
    os.kill(node.pid, signal.SIGKILL)
    until(lambda: not answers(node))


def nodes_of(store: EmbeddedStore | LocalCluster) -> Sequence[EmbeddedStore]:
    """Return the servers of a store."""
    return store.nodes if isinstance(store, LocalCluster) else [store]


def answers(node: EmbeddedStore) -> bool:
    """Return True if a server answers."""
    try:
        with node.client() as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def until(condition: Any) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(0.02)


@contextmanager
def cluster_in(folder: Path) -> Iterator[Cluster]:
    """Run a cluster, and remove its archive afterwards: a later cluster can get the same ports."""
    with Cluster(folder, Durability.RELAXED) as cluster:
        try:
            yield cluster
        finally:
            remove_archive(cluster.url)
