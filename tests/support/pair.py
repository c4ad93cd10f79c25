"""A primary and a replica on this host, which tests can separate, promote, freeze and kill."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from server.embedded import _binary
from tests.server.cli.test_commands import free_port
from tests.support.cluster import until


class Server:
    """A single server, with a port for its replica and a socket for all others."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        self.socket = folder / "socket"
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket),
            "dir": str(folder),
            "logfile": "log",
            "save": "",
            "repl-diskless-sync-delay": "0",
            "repl-ping-replica-period": "1",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen([_binary(), *words])
        self.client: Any = redis.Redis(port=self.port, decode_responses=True, protocol=3)
        until(self.answers)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"unix://{self.socket}"

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


class Pair:
    """A primary and its replica."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._more: list[Server] = []
        self.primary = Server(folder / "primary")
        self.replica = Server(folder / "replica")

    def join(self) -> None:
        """Make the replica follow the primary, and wait until it has caught up."""
        self.replica.run("REPLICAOF", "127.0.0.1", self.primary.port)
        until(self.is_level)

    def renew(self) -> None:
        """Empty the primary, and make the replica follow it again."""
        self.primary.run("FLUSHALL")
        self.join()

    def is_level(self) -> bool:
        """Return True if the replica has everything that the primary has written."""
        primary, replica = (server.run("INFO", "replication") for server in (self.primary, self.replica))
        return bool(
            replica.get("master_link_status") == "up"
            and primary["connected_slaves"]
            and primary["slave0"]["state"] == "online"
            and primary["master_repl_offset"] == replica["slave_repl_offset"]
        )

    def separate(self) -> None:
        """Stop the replication and promote the replica: it accepts writes, and lacks later writes of the primary."""
        until(self.is_level)
        self.replica.run("REPLICAOF", "NO", "ONE")

    def lagging(self) -> Server:
        """Return another server, which holds the primary's current content and none of its later writes."""
        server = Server(self._folder / f"lagging{len(self._more)}")
        self._more.append(server)
        server.run("REPLICAOF", "127.0.0.1", self.primary.port)
        until(lambda: server.run("INFO", "replication")["master_link_status"] == "up")
        server.run("REPLICAOF", "NO", "ONE")
        return server

    def end(self) -> None:
        """Kill all servers."""
        for server in (self.primary, self.replica, *self._more):
            server.end()


@contextmanager
def pair_in(folder: Path) -> Iterator[Pair]:
    """Run a primary and its replica."""
    pair = Pair(folder)
    try:
        pair.join()
        yield pair
    finally:
        pair.end()
