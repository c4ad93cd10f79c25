"""The near cache of a process of the machine, which checks each value that it returns.

Reads use one connection, which tracks keys, and writes another one. The process receives invalidations only with the
reply to its next read, so it acts on values that others may have changed.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from graph.store.commands import Command
from graph.store.near_cache import MISSING, Moment, NearCache
from tests.properties.exchange import Exchange

MOST = 12
PREFIXES = (
    *("post:{", "user:{", "followers:{", "following:{", "posts:{", "cold:{"),
    *("blocking:{", "blockers:{", "muting:{", "{suspended}"),
)


class CheckedCache(NearCache):
    """A near cache that compares its values with the store, except those of keys written since the last read.

    For each server, `executed` is the number of its last read, and `written` the keys written since then, according to
    connections on which the servers report all writes. `now` reads the store.
    """

    def __init__(self, now: Exchange) -> None:
        super().__init__(MOST, absences=len(now.lines) == 1)
        self.written: list[set[str] | None] = [set() for _ in now.lines]
        self.executed = [0 for _ in now.lines]
        self._now = now
        self._rows: dict[str, tuple[Command, Any]] = {}

    def note_row(self, key: str, command: Command, row: Any) -> None:
        """Note the reply from which a key's value was built."""
        if self.holds([key]):
            self._rows[key] = command, row

    def note_writes(self, place: int, pushed: Iterable[Any]) -> None:
        """Note messages about keys that were written."""
        for _, names in pushed:
            before = self.written[place]
            self.written[place] = None if names is None or before is None else before.union(names)

    def find(self, keys: Sequence[str], moment: Moment) -> tuple[list[Any], list[int]]:
        """Return the values of the cache, and check that they are those of the store.

        The cache must not return a value of a server that has not yet executed a read of the request.
        """
        values, places = super().find(keys, moment)
        self._now([("PING",)])  # delivers messages about all writes
        checked = []
        for key, value in zip(keys, values, strict=True):
            if value is not MISSING:
                place = self._now.servers.place_of(key)
                assert self.executed[place] > moment, "a value is used before the request has read"
                written = self.written[place]
                if written is not None and key not in written:
                    checked.append(key)
        if checked:
            rows = self._now([self._rows[key][0] for key in checked])
            assert rows == [self._rows[key][1] for key in checked], "the near cache is not as of the newest reply"
        return values, places
