"""A cluster of three primaries and three replicas on this host."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from server.embedded import _binary
from tests.server.cli.test_commands import free_port
from tests.support.graph_worlds import PATIENCE

SLOTS = 16384
PRIMARIES = 3
NODE_TIMEOUT = "1000"  # ms, after which a node that is silent counts as dead


class Node:
    """One server of a cluster."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "logfile": "log",
            "save": "",
            "cluster-enabled": "yes",
            "cluster-node-timeout": NODE_TIMEOUT,
            "cluster-replica-validity-factor": "0",
            "cluster-port": str(free_port()),
            "repl-diskless-sync-delay": "0",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen([_binary(), *words])
        self.client: Any = redis.Redis(port=self.port, decode_responses=True, protocol=3)
        self.cluster_port = int(options["cluster-port"])
        until(self.answers)
        self.id = str(self.run("CLUSTER", "MYID"))

    def run(self, *words: Any) -> Any:
        """Return the reply to a command."""
        return self.client.execute_command(*words)

    def answers(self) -> bool:
        """Return True if the server answers."""
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def end(self) -> None:
        """Kill the server and wait until it is dead."""
        self.process.kill()
        self.process.wait()
        self.client.close()


class Cluster:
    """The nodes of a cluster, the primaries first, then their replicas in the same order."""

    def __init__(self, folder: Path) -> None:
        self.nodes: list[Node] = []
        for index in range(2 * PRIMARIES):
            self.nodes.append(Node(folder / str(index)))

    @property
    def primaries(self) -> list[Node]:
        """The nodes that were primaries at the start."""
        return self.nodes[:PRIMARIES]

    @property
    def url(self) -> str:
        """The URL of the cluster."""
        return "valkey+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def join(self) -> None:
        """Build the cluster and wait until all nodes know each other."""
        for index, node in enumerate(self.primaries):
            first, last = SLOTS * index // PRIMARIES, SLOTS * (index + 1) // PRIMARIES - 1
            node.run("CLUSTER", "ADDSLOTSRANGE", first, last)
        for node in self.nodes[1:]:
            self.nodes[0].run("CLUSTER", "MEET", "127.0.0.1", node.port, node.cluster_port)
        until(lambda: all(self.knows_all(node) for node in self.nodes))
        for primary, replica in zip(self.primaries, self.nodes[PRIMARIES:], strict=True):
            replica.run("CLUSTER", "REPLICATE", primary.id)
        until(lambda: all(node.run("CLUSTER INFO")["cluster_state"] == "ok" for node in self.nodes))
        until(lambda: all(node.run("INFO", "replication")["connected_slaves"] == 1 for node in self.primaries))

    def knows_all(self, node: Node) -> bool:
        """Return True if a node knows all others."""
        return int(node.run("CLUSTER INFO")["cluster_known_nodes"]) == len(self.nodes)

    def owner(self, key: str) -> Node:
        """Return the primary that owned a key's slot at the start."""
        return self.primaries[key_slot(key.encode()) * PRIMARIES // SLOTS]

    def end(self) -> None:
        """Kill all nodes."""
        for node in self.nodes:
            node.end()


def until(condition: Any) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 3 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(0.02)


@contextmanager
def cluster_in(folder: Path) -> Iterator[Cluster]:
    """Run a cluster."""
    nodes = Cluster(folder)
    try:
        nodes.join()
        yield nodes
    finally:
        nodes.end()
