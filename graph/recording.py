"""Recordings of the cost of one operation: exchanges with the store, archive transactions and timeline pages.

`RECORDING` holds the recording of the current operation, or None if the operation is not recorded. Tasks inherit it. A
task that outlives its operation adds nothing to the recording, which has already ended. All times are values of
`time.perf_counter`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from graph.model import TimelineKind

RECORDING: ContextVar["Recording | None"] = ContextVar("recording", default=None)


@dataclass(slots=True)
class Exchange:
    """The operation's commands in one round trip to the store; its replies may arrive at different times."""

    commands: int
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None

    def answered(self, reply: object = None) -> None:
        """Record that a reply has arrived."""
        self.ended = time.perf_counter()


@dataclass(slots=True)
class Transaction:
    """A transaction of the archive, with the number of its statements."""

    statements: int = 0
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None

    def count(self, *event: Any) -> None:
        """Count a statement. The arguments are those of SQLAlchemy's event `before_cursor_execute`."""
        self.statements += 1

    def end(self) -> None:
        """Record that the transaction has ended."""
        self.ended = time.perf_counter()


@dataclass(slots=True)
class TimelinePage:
    """A timeline page that was read: its sources, the number of posts scanned, and the number of posts left out.

    `merged` is the number of authors whose own timelines were merged.
    """

    kind: TimelineKind
    owner: int
    sources: list[str] = field(default_factory=list)
    merged: int = 0
    scanned: int = 0
    dropped: int = 0

    def add(self, sources: Sequence[str], merged: int, scanned: int, dropped: int) -> None:
        """Add one read. A page takes several reads if posts were left out."""
        self.sources += [source for source in sources if source not in self.sources]
        self.merged = max(self.merged, merged)
        self.scanned += scanned
        self.dropped += dropped


class Recording:
    """The cost of one operation so far. Nothing is recorded after its end.

    `owed` is the number of points that are charged after the operation for its reads of the archive.
    """

    def __init__(self) -> None:
        self.started_ns = time.time_ns()
        self.started = time.perf_counter()
        self.ended: float | None = None
        self.exchanges: list[Exchange] = []
        self.transactions: list[Transaction] = []
        self.pages: list[TimelinePage] = []
        self.owed = 0
        self._shared: tuple[object, Exchange] | None = None

    @property
    def commands(self) -> int:
        """The number of commands sent to the store."""
        return sum(exchange.commands for exchange in self.exchanges)

    @property
    def statements(self) -> int:
        """The number of statements sent to the archive."""
        return sum(transaction.statements for transaction in self.transactions)

    def end(self) -> None:
        """End the recording. Nothing more is added to it."""
        self.ended = time.perf_counter()

    def read(self, batch: object, commands: int) -> Exchange:
        """Record a read of the store. Reads of one `batch`, compared by identity, share a round trip."""
        if self._shared is None or self._shared[0] is not batch:
            self._shared = batch, self.exchange(0)
        exchange = self._shared[1]
        if self.ended is None:
            exchange.commands += commands
        return exchange

    def exchange(self, commands: int) -> Exchange:
        """Record a round trip to the store."""
        exchange = Exchange(commands)
        if self.ended is None:
            self.exchanges.append(exchange)
        return exchange

    def transaction(self) -> Transaction:
        """Record a transaction of the archive."""
        transaction = Transaction()
        if self.ended is None:
            self.transactions.append(transaction)
        return transaction

    def page(self, kind: TimelineKind, owner: int) -> TimelinePage:
        """Record a page of a timeline."""
        page = TimelinePage(kind, owner)
        if self.ended is None:
            self.pages.append(page)
        return page


@contextmanager
def recorded(recording: Recording) -> Iterator[None]:
    """Record the cost of the operation that runs in this block."""
    token = RECORDING.set(recording)
    try:
        yield
    finally:
        RECORDING.reset(token)
        recording.end()
