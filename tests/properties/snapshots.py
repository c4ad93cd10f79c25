"""Snapshots of the store: what a lagging replica holds. A failover restores the keys of a snapshot."""

import time
from dataclasses import dataclass
from typing import Any, cast

import redis

from graph import keys
from graph.log.numbers import number_of

PAUSE_SECONDS = 0.002


@dataclass(frozen=True)
class Snapshot:
    """The keys that match a pattern, each with its time to live and its value, by server."""

    pattern: str
    values: list[dict[bytes, tuple[int, bytes]]]


class Snapshots:
    """Takes snapshots of a store, and rolls the store back to them."""

    def __init__(self, url: str) -> None:
        self._servers = [redis.Redis.from_url(each) for each in url.split(",")]

    def take(self, pattern: str) -> Snapshot:
        """Return a snapshot of the keys that match a pattern."""
        return Snapshot(pattern, [values_of(server, pattern) for server in self._servers])

    def roll_back(self, snapshot: Snapshot) -> set[int]:
        """Replace the keys with those of a snapshot, and return the numbers of the events that the log then lacks.

        A failover takes longer than a millisecond, so no number is assigned twice.
        """
        before = self.log()
        for server, values in zip(self._servers, snapshot.values, strict=True):
            if names := names_of(server, snapshot.pattern):
                server.delete(*names)
            for key, (ttl, value) in values.items():
                server.restore(key, ttl, value)
        time.sleep(PAUSE_SECONDS)
        return before - self.log()

    def log(self) -> set[int]:
        """Return the numbers of the events in the log."""
        entries: Any = [entry for server in self._servers for entry in cast(Any, server.xrange(keys.LOG))]
        return {number_of(entry.decode()) for entry, _ in entries}

    def close(self) -> None:
        for server in self._servers:
            server.close()


def values_of(server: redis.Redis, pattern: str) -> dict[bytes, tuple[int, bytes]]:
    """Return the time to live and the value of each key that matches a pattern."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for key in names_of(server, pattern):
        value: Any = server.dump(key)
        ttl: Any = server.pttl(key)
        found[key] = max(0, ttl), value
    return found


def names_of(server: redis.Redis, pattern: str) -> list[bytes]:
    """Return the keys that match a pattern."""
    return list(server.scan_iter(pattern, count=1000))
