"""The near cache: values of keys in process memory, as exact as a read of the store.

The connection that reads the values tracks their keys (`CLIENT TRACKING ON OPTIN`). The server sends the invalidation
of a key before the reply to any command that it executes after the change. So the cache holds the state of the store as
of the newest reply on that connection. A request may use the cache as soon as that reply belongs to a read that was
sent after the request had begun.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Moment: TypeAlias = int
"""The number of reads that were sent before a request began. Each later read has a higher number."""

NEVER: Moment = sys.maxsize
"""The moment of a look-up that uses no value of the cache, but may keep what it reads."""
MISSING = object()
"""Stands for a value that the cache does not hold."""


class NearCache:
    """At most `most` values by key, those that were used least recently dropped first, in two generations.

    The read pipeline keeps `tracking` (the connection tracks keys), `sent` (the number of the last read sent) and
    `answered` (the number of the last read answered). `hits`, `misses` and `invalidations` count keys.
    """

    def __init__(self, most: int) -> None:
        self.tracking = False
        self.sent: Moment = 0
        self.answered: Moment = 0
        self.hits = self.misses = self.invalidations = 0
        self._half = max(1, most // 2)
        self._floor: Moment = 0
        self._young: dict[str, Any] = {}
        self._old: dict[str, Any] = {}
        self._asked: dict[str, object] = {}

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._young) + len(self._old)

    def begin(self) -> Moment:
        """Return the present moment: a request that begins now may use values after the reply to a later read."""
        return self.sent

    def advance(self) -> None:
        """Use no value before the reply to a later read: the process has learnt of a newer state elsewhere."""
        self._floor = self.sent

    def reached(self, moment: Moment) -> bool:
        """Return True if a read was answered that was sent after this moment."""
        return self.answered > moment and self.answered > self._floor

    def find(self, keys: Sequence[str]) -> tuple[list[Any], list[int]]:
        """Return the values of keys, with MISSING for those that the cache does not hold, and the places of these.

        O(1) per key. Only once the moment of the request is `reached`. Finding a value may drop others.
        """
        young = self._young
        found = [young.get(key, MISSING) for key in keys]
        places = [place for place, value in enumerate(found) if value is MISSING]
        if places and self._old:
            for place in places:
                found[place] = value = self._old.pop(keys[place], MISSING)
                if value is not MISSING:
                    self._keep(keys[place], value)
            places = [place for place in places if found[place] is MISSING]
        self.misses += len(places)
        self.hits += len(keys) - len(places)
        return found, places

    def peek(self, key: str) -> Any:
        """Return the value of a key, or MISSING: a hint about what to read, which may be older than any request."""
        value = self._young.get(key, MISSING)
        return self._old.get(key, MISSING) if value is MISSING else value

    def holds(self, keys: Iterable[str]) -> bool:
        """Return True if there are values of all keys."""
        return all(key in self._young or key in self._old for key in keys)

    def ask(self, keys: Iterable[str], read: object) -> None:
        """Note that `read` asks for the values of keys, which the server tracks from then on."""
        self._asked.update(dict.fromkeys(keys, read))

    def keep(self, keys: Sequence[str], values: Sequence[Any], read: object) -> None:
        """Keep the values that `read` has received, except of keys that were invalidated since, or asked for again."""
        asked = self._asked
        for key, value in zip(keys, values, strict=True):
            if asked.get(key) is read:
                del asked[key]
                self._old.pop(key, None)
                self._keep(key, value)

    def release(self, keys: Iterable[str], read: object) -> None:
        """Forget that `read` asks for keys: it is done."""
        for key in keys:
            if self._asked.get(key) is read:
                del self._asked[key]

    def _keep(self, key: str, value: Any) -> None:
        if len(self._young) >= self._half:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def invalidate(self, keys: Iterable[str] | None) -> None:
        """Drop the values of keys, all values for None, and do not keep what reads have asked for."""
        if keys is None:
            self.invalidations += len(self)
            self._clear()
            return
        for key in keys:
            self.invalidations += 1
            self._young.pop(key, None)
            self._old.pop(key, None)
            self._asked.pop(key, None)

    def connected(self, tracking: bool) -> None:
        """Note whether the new connection tracks keys."""
        self.tracking = tracking

    def disconnected(self) -> None:
        """Drop everything: invalidations may be lost."""
        self._clear()
        self.tracking = False

    def _clear(self) -> None:
        self._young.clear()
        self._old.clear()
        self._asked.clear()
