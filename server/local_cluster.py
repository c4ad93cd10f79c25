"""A private cluster of three primaries and three replicas on this machine, with its data in a folder.

Each node is an embedded store that also listens on two TCP ports of 127.0.0.1, one for cluster clients and one for the
other nodes. Nodes that a killed process left running are reused, like the server of the embedded store.
"""

import contextlib
import itertools
import json
import random
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from server.embedded import Durability, EmbeddedStore, EmbeddedStoreError
from server.file_locks import locked

PRIMARIES = 3
SLOTS = 16384
NODE_TIMEOUT = 1000  # ms without an answer, after which the other nodes replace a primary with its replica
JOIN_SECONDS = 30.0  # time limit for the nodes to find each other
POLL_SECONDS = 0.1  # between looks at all nodes, each of which answers a command or two
PORTS = range(10_240, 32_000)  # below the range that systems use for outgoing connections
PORT_TAKEN = "Address already in use"
"""Text in the log of a server that could not start because its port is taken."""


class ClusterNode(EmbeddedStore):
    """One server of a cluster."""

    _commands: redis.Redis | None = None

    @property
    def port(self) -> int:
        """The TCP port for clients, once started."""
        return self._ports()[0]

    @property
    def cluster_port(self) -> int:
        """The TCP port for the other nodes, once started."""
        return self._ports()[1]

    @property
    def id(self) -> str:
        """The node's name in the cluster."""
        return str(self.run("CLUSTER MYID"))

    def run(self, *words: str | int) -> Any:
        """Return the reply to a command, sent over the node's unix socket. Raises redis-py's exceptions."""
        if self._commands is None:
            self._commands = self.client()
            self._commands.set_retry(Retry(NoBackoff(), 1))  # the connection breaks when the node restarts
        client: Any = self._commands  # redis-py's method has no types
        return client.execute_command(*words)

    def stop(self) -> None:
        """Stop using the node. The last process to do so stops it."""
        if self._commands is not None:
            self._commands.close()
            self._commands = None
        super().stop()

    def known(self) -> set[str]:
        """Return the ids of the nodes that this node knows, including its own."""
        lines = self.run("CLUSTER NODES").values()
        return {line["node_id"] for line in lines if "handshake" not in line["flags"]}

    def _join_or_launch(self, alone: bool) -> bool:
        try:
            return super()._join_or_launch(alone)
        except EmbeddedStoreError as error:
            if PORT_TAKEN not in str(error):
                raise
            return super()._join_or_launch(alone)  # on other ports: another program has just taken one of these

    def _ports(self) -> tuple[int, int]:
        port, cluster_port = json.loads((self.folder / "ports").read_text(encoding="ascii"))
        return port, cluster_port

    def _settings(self, path: Path) -> dict[str, str]:
        ports = self._free_ports()
        new = self.folder / "ports.new"
        new.write_text(json.dumps(ports), encoding="ascii")
        new.replace(self.folder / "ports")  # other processes read it at any time
        return {
            **super()._settings(path),
            "bind": "127.0.0.1",
            "port": str(ports[0]),
            "cluster-port": str(ports[1]),
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(NODE_TIMEOUT),
            "cluster-replica-validity-factor": "0",
            "cluster-require-full-coverage": "no",
            "repl-diskless-sync-delay": "0",
        }

    def _free_ports(self) -> tuple[int, int]:
        """Return the ports of the previous run if both are free, else two random free ports."""
        with contextlib.suppress(FileNotFoundError):
            ports = self._ports()
            if len({*ports}) == len(ports) and all(map(_is_free, ports)):
                return ports
        port = _free_port()
        while (cluster_port := _free_port()) == port:
            pass
        return port, cluster_port


class LocalCluster:
    """The cluster of one data folder, in use by this process between `start` and `stop`.

    Usable as a context manager. Initially, the first three nodes are primaries, and the other three are their replicas
    in the same order. `start` takes about two seconds.
    """

    def __init__(self, data_dir: Path, durability: Durability = Durability.SAFE) -> None:
        self.folder = data_dir.expanduser().absolute()
        self.nodes = [ClusterNode(self.folder / str(index), durability) for index in range(2 * PRIMARIES)]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the cluster, once started."""
        return "valkey+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self) -> None:
        """Start the nodes that are not running, and form a cluster of all nodes. Raises EmbeddedStoreError."""
        with contextlib.ExitStack() as started:
            started.callback(self.stop)
            for node in self.nodes:
                node.start()
            with locked(self.folder / "mutex"):
                self._join()
            started.pop_all()

    def stop(self) -> None:
        """Stop using the cluster. The last process to do so stops the nodes and waits until their data is on disk."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(ClusterNode.stop, self.nodes))

    def _join(self) -> None:
        """Form a cluster of the nodes unless they already form one. Start over if an earlier attempt did not finish."""
        joined = self.folder / "joined"
        if not joined.exists():
            self._share_slots()
        for one, other in itertools.permutations(self.nodes, 2):  # this also announces changed ports
            one.run("CLUSTER MEET", "127.0.0.1", other.port, other.cluster_port)
        known = {node.id for node in self.nodes}
        self._wait(lambda: all(node.known() == known for node in self.nodes))
        if not joined.exists():
            for primary, replica in zip(itertools.cycle(self.nodes[:PRIMARIES]), self.nodes[PRIMARIES:], strict=False):
                replica.run("CLUSTER REPLICATE", primary.id)
        self._wait(self.is_complete)
        joined.touch()

    def _share_slots(self) -> None:
        for node in self.nodes:
            node.run("CLUSTER RESET", "HARD")
        for index, node in enumerate(self.nodes[:PRIMARIES]):
            node.run("CLUSTER SET-CONFIG-EPOCH", index + 1)
            first, last = SLOTS * index // PRIMARIES, SLOTS * (index + 1) // PRIMARIES - 1
            node.run("CLUSTER ADDSLOTSRANGE", first, last)

    def is_complete(self) -> bool:
        """Return True if each slot has a primary, and all other nodes are replicas with a working link."""
        replicas = [node for node in self.nodes if node.run("INFO", "replication").get("master_link_status") == "up"]
        states = [node.run("CLUSTER INFO") for node in self.nodes]
        return len(replicas) == len(self.nodes) - PRIMARIES and all(
            state["cluster_state"] == "ok" and state["cluster_slots_ok"] == str(SLOTS) for state in states
        )

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + JOIN_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise EmbeddedStoreError(
                    f"The nodes of the cluster in {self.folder} cannot find each other. Their logs are named store.log."
                )
            time.sleep(POLL_SECONDS)


def _is_free(port: int) -> bool:
    """Return True if a server can listen on a port of this machine."""
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def _free_port() -> int:
    while not _is_free(port := random.SystemRandom().choice(PORTS)):
        pass
    return port
