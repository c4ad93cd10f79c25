"""Snapshots of the store: what a lagging replica holds. A failover replaces the store's keys by those of a snapshot."""

import time
from dataclasses import dataclass
from typing import Any

import redis

from graph import keys
from graph.log.numbers import number_of

PAUSE_SECONDS = 0.002


@dataclass(frozen=True)
class Snapshot:
    """The keys that match a pattern, each with its time to live and its value."""

    pattern: str
    values: dict[bytes, tuple[int, bytes]]


class Snapshots:
    """Takes snapshots of a store, and rolls the store back to them."""

    def __init__(self, url: str) -> None:
        self._raw = redis.Redis.from_url(url)

    def take(self, pattern: str) -> Snapshot:
        """Return a snapshot of the keys that match a pattern."""
        values: dict[bytes, tuple[int, bytes]] = {}
        for key in self._keys(pattern):
            value: Any = self._raw.dump(key)
            values[key] = max(0, self._raw.pttl(key)), value
        return Snapshot(pattern, values)

    def roll_back(self, snapshot: Snapshot) -> set[int]:
        """Replace the keys by those of a snapshot, and return the numbers of the events that the log then lacks.

        A failover takes longer than a millisecond, so no number is assigned again.
        """
        before = self.log()
        if names := self._keys(snapshot.pattern):
            self._raw.delete(*names)
        for key, (ttl, value) in snapshot.values.items():
            self._raw.restore(key, ttl, value)
        time.sleep(PAUSE_SECONDS)
        return before - self.log()

    def log(self) -> set[int]:
        """Return the numbers of the events in the log."""
        entries: Any = self._raw.xrange(keys.LOG)
        return {number_of(entry.decode()) for entry, _ in entries}

    def _keys(self, pattern: str) -> list[bytes]:
        return list(self._raw.scan_iter(pattern, count=1000))

    def close(self) -> None:
        self._raw.close()
