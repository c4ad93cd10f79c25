"""The near cache: values of keys in process memory, as current as a read of the store.

The connections that read the values track their keys (`CLIENT TRACKING ON OPTIN`). A server sends the invalidation of
a key before the reply to any command that it executes after the change. So the values that came over a connection are
the state of its server as of the newest reply on that connection. A request may use them as soon as that reply belongs
to a read that was sent after the request had begun. On a cluster, each node has its own connection, and the replies of
a node confirm only the values of that node.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Moment: TypeAlias = int
"""The number of the last write of reads before a request began. Each later read has a higher number."""

NEVER: Moment = sys.maxsize
"""The moment of a look-up that ignores the values of the cache, but may add the values that it reads."""
MISSING = object()
"""A placeholder for a value that the cache does not hold."""
LOST = -1
WINDOW = 50_000
"""The number of looked-up keys after which the cache checks its hit rate."""
LEAST_HITS = 0.2
"""The minimum hit rate. Below it, the cache rests: look-ups bypass it."""
REST = 500_000
"""The number of looked-up keys for which the cache rests. They are read from the store instead."""


class TrackingPeriod:
    """A period in which the server reported all changes of the keys that one connection has read.

    It ends when the connection is lost, or when the server reports changes without naming the keys. `answered` is the
    number of the last read that was answered, or `LOST` once the period has ended, and `sent` is the number of the last
    read that was sent. `gave` is True once the cache has kept a value that was read in the period.
    """

    __slots__ = ("answered", "gave", "sent")

    def __init__(self) -> None:
        self.answered = self.sent = 0
        self.gave = False


class NearCache:
    """At most `limit` values by key, in two generations. The least recently used values are dropped first.

    `absences` is True if the cache also remembers absent keys. It does not on a cluster: a node that loses a slot
    invalidates the keys that it held, but not absent ones, which clients may then create on the new node.

    A tracked read costs the store and the process a little more than an untracked one. So the cache rests if few
    look-ups find a value, as in a process that mostly answers queries for something other than pages.

    `sent` is the number of the last write of reads to any server. `expected` is the latest moment passed to `expect`
    since the nodes were last asked, or `LOST` if there is none. `hits`, `misses` and `invalidations` count keys, and
    `added` counts the commands that were sent only for the cache.
    """

    def __init__(self, limit: int, *, absences: bool = True) -> None:
        self.absences = absences
        self.expected: Moment = LOST
        self.sent: Moment = 0
        self.hits = self.misses = self.invalidations = self.added = 0
        self._sources: set[TrackingPeriod] = set()
        self._judged_at, self._judged_hits, self._rest = WINDOW, 0, 0
        self._half = max(1, limit // 2)
        self._floor: Moment = 0
        self._young: dict[str, tuple[TrackingPeriod, Any]] = {}
        self._old: dict[str, tuple[TrackingPeriod, Any]] = {}
        self._asked: dict[str, object] = {}

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._young) + len(self._old)

    @property
    def tracking(self) -> bool:
        """True if look-ups use the cache: a connection tracks keys, and the cache is not suspended (`rest`)."""
        return bool(self._sources) and self._rest <= 0

    def rest(self, look_ups: int) -> None:
        """Count look-ups that bypassed the resting cache. After `REST` of them, the cache is used again."""
        if self._rest > 0:
            self._rest -= look_ups

    def _judge(self) -> None:
        """Rest if few of the last look-ups found a value."""
        if self.hits - self._judged_hits < LEAST_HITS * WINDOW:
            self._rest = REST
        self._judged_at, self._judged_hits = self.hits + self.misses + WINDOW, self.hits

    def begin(self) -> Moment:
        """Return the current moment: a request that begins now may use values after the reply to a later read."""
        return self.sent

    def advance(self) -> None:
        """Ignore all values until the reply to a later read: the process has learnt of a newer state elsewhere."""
        self._floor = self.sent

    def expect(self, moment: Moment) -> None:
        """Make the next round trip ask every node with cached values, for a request that began at `moment`."""
        self.expected = max(self.expected, moment)

    def find(self, keys: Sequence[str], moment: Moment) -> tuple[list[Any], list[int]]:
        """Return the values of keys for a request that began at a moment, and the indexes of keys with no usable value.

        Such a key has the value MISSING: the cache holds no value for it, or the value's source has not answered a read
        that was sent after the moment and after the last `advance`. O(1) per key. Finding a value may drop others.
        """
        after = max(moment, self._floor)
        young = self._young
        found: list[Any] = []
        places = []
        for place, key in enumerate(keys):
            entry = young.get(key)
            if entry is not None and entry[0].answered > after:
                found.append(entry[1])
            else:
                found.append(MISSING)
                places.append(place)
        if places and self._old:
            for place in places:
                entry = self._old.get(keys[place])
                if entry is not None and entry[0].answered > after:
                    del self._old[keys[place]]
                    self._keep(keys[place], entry)
                    found[place] = entry[1]
            places = [place for place in places if found[place] is MISSING]
        self.misses += len(places)
        self.hits += len(keys) - len(places)
        if self.hits + self.misses >= self._judged_at:
            self._judge()
        return found, places

    def peek(self, keys: Iterable[str]) -> list[Any]:
        """Return the values of keys, or MISSING. They may be stale, so they are only a hint about what to read."""
        young, old = self._young, self._old
        found = []
        for key in keys:
            entry = young.get(key) or old.get(key)
            found.append(MISSING if entry is None or entry[0].answered == LOST else entry[1])
        return found

    def holds(self, keys: Iterable[str]) -> bool:
        """Return True if there are values for all keys."""
        return MISSING not in self.peek(keys)

    def ask(self, keys: Iterable[str], read: object) -> None:
        """Record that `read` asks for the values of keys, which the server tracks from then on."""
        self._asked.update(dict.fromkeys(keys, read))

    def keep(
        self, keys: Sequence[str], values: Sequence[Any], sources: Sequence[TrackingPeriod | None], read: object
    ) -> None:
        """Keep the values that `read` has received, except those of keys that were invalidated or read again since.

        `sources` are the tracking periods in which the values were read, or None for values that must not be kept.
        """
        asked = self._asked
        for key, value, source in zip(keys, values, sources, strict=True):
            if asked.get(key) is read:
                del asked[key]
                if source is not None:
                    source.gave = True
                    self._old.pop(key, None)
                    self._keep(key, (source, value))

    def release(self, keys: Iterable[str], read: object) -> None:
        """Forget that `read` asks for the values of keys, because it is done."""
        for key in keys:
            if self._asked.get(key) is read:
                del self._asked[key]

    def _keep(self, key: str, entry: tuple[TrackingPeriod, Any]) -> None:
        if len(self._young) >= self._half:
            self._young, self._old = {}, self._young
        self._young[key] = entry

    def invalidate(self, keys: Iterable[str]) -> None:
        """Drop the values of keys, and do not keep the values that open reads will return for them."""
        for key in keys:
            self.invalidations += 1
            self._young.pop(key, None)
            self._old.pop(key, None)
            self._asked.pop(key, None)

    def connected(self) -> TrackingPeriod:
        """Return the tracking period of a new connection that tracks keys."""
        source = TrackingPeriod()
        self._sources.add(source)
        return source

    def disconnected(self, source: TrackingPeriod) -> None:
        """Drop all values from a source, because its connection may have missed invalidations."""
        source.answered = LOST
        self._sources.discard(source)
        if not self._sources:
            self._young.clear()
            self._old.clear()

    def disconnect_all(self) -> None:
        """Drop all values: the event loop of the connections has ended."""
        for source in list(self._sources):
            self.disconnected(source)

    def renewed(self, source: TrackingPeriod) -> TrackingPeriod:
        """Drop all values from a source, and return a new source for its connection, because unnamed keys changed.

        Values that open reads of the old source return are not used.
        """
        self.disconnected(source)
        return self.connected()
