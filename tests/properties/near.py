"""The near cache of a process of the machine, which checks each value that it returns.

Reads go over a connection of their own, which tracks keys, and writes over another one. The process reads invalidations
only with the reply to its next read, so it acts on values that others have changed meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graph.store.commands import Command
from graph.store.near_cache import MISSING, Moment, NearCache

MOST = 12
PREFIXES = (
    *("post:{", "user:{", "followers:{", "following:{", "posts:{", "cold:{"),
    *("blocking:{", "blockers:{", "muting:{", "{suspended}"),
)

Send = Callable[[Sequence[Command]], list[Any]]


class CheckedCache(NearCache):
    """A near cache that compares its values with the store, except of keys that were written since the last read.

    `executed` counts the reads, and `written` holds the keys written since the last one, by the account of a connection
    to which the server tells all writes. `now` reads the store.
    """

    def __init__(self, now: Send) -> None:
        super().__init__(MOST)
        self.written: set[str] | None = set()
        self.executed = 0
        self._now = now
        self._rows: dict[str, tuple[Command, Any]] = {}

    def note_row(self, key: str, command: Command, row: Any) -> None:
        """Note the reply from which the value of a key was made."""
        if self.holds([key]):
            self._rows[key] = command, row

    def note_writes(self, pushed: Iterable[Any]) -> None:
        """Note messages about keys that were written."""
        for _, names in pushed:
            self.written = None if names is None or self.written is None else self.written.union(names)

    def find(self, keys: Sequence[str], moment: Moment) -> tuple[list[Any], list[int]]:
        """Return what the cache returns, which must be what the store holds.

        It must return nothing before the request's first read was executed.
        """
        values, places = super().find(keys, moment)
        assert len(places) == len(keys) or self.executed > moment, "a value is used before the request has read"
        self._now([("PING",)])  # brings messages about all writes
        found = [key for key, value in zip(keys, values, strict=True) if value is not MISSING]
        if self.written is not None and (checked := [key for key in found if key not in self.written]):
            rows = self._now([self._rows[key][0] for key in checked])
            assert rows == [self._rows[key][1] for key in checked], "the near cache is not as of the newest reply"
        return values, places
