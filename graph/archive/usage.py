"""Counts and limits an operation's reads if their cost is not known in advance: mostly reads of the archive.

`USAGE` holds the usage of the running operation, or None for the work of the system itself. Tasks inherit it, so that a
transaction counts towards the operation that started it, even after the operation has been cancelled.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from graph.errors import GraphError

TRANSACTION_POINTS = 350
"""The points of a transaction: the gate, a connection, BEGIN and COMMIT."""
STATEMENT_POINTS = 260
ROW_POINTS = 7
"""The points of a row that is read and decoded."""
ITEM_POINTS = 1
"""The points of one small step, such as comparing a member of a set."""
BUDGET = 20_000
"""The points after which an operation scans no further."""

USAGE: ContextVar["Usage | None"] = ContextVar("usage", default=None)


class ScanLimit(GraphError):
    """The operation used up its budget before it could read this page."""

    def __init__(self) -> None:
        super().__init__(
            f"The operation has already read data worth {BUDGET:,} points, which is the limit, so this page was not "
            "read. Request the page in a separate operation."
        )


class Usage:
    """The reads of one operation of `caller`, and their points.

    All `anonymous` callers together use at most half of the archive's connections. `charge` is called once with the
    points used, when both the operation and its last transaction have ended: a cancelled operation leaves its
    transaction running. `begun` is called whenever a transaction gets its connection.
    """

    __slots__ = (
        *("_begun", "_charge", "_ended", "_open", "anonymous", "caller"),
        *("items", "rows", "statements", "transactions"),
    )

    def __init__(
        self,
        caller: str,
        *,
        anonymous: bool,
        charge: Callable[[int], None] | None = None,
        begun: Callable[[], None] | None = None,
    ) -> None:
        self._begun = begun
        self.caller = caller
        self.anonymous = anonymous
        self.transactions = 0
        self.statements = 0
        self.rows = 0
        self.items = 0
        self._charge = charge
        self._open = 0
        self._ended = False

    @property
    def points(self) -> int:
        """The points used so far."""
        archive = self.transactions * TRANSACTION_POINTS + self.statements * STATEMENT_POINTS + self.rows * ROW_POINTS
        return archive + self.items * ITEM_POINTS

    @property
    def is_exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.points >= BUDGET

    def rows_left(self) -> int:
        """Return how many more rows the budget allows."""
        return max(0, BUDGET - self.points) // ROW_POINTS

    def begin_transaction(self) -> None:
        """Record that a transaction got its connection."""
        self._open += 1
        self.transactions += 1
        if self._begun is not None:
            self._begun()

    def hold(self) -> None:
        """Postpone the charge until one more call of `end_transaction`: another usage counts reads for this one."""
        self._open += 1

    def add(self, other: "Usage") -> None:
        """Add the counts of another usage."""
        self.transactions += other.transactions
        self.statements += other.statements
        self.rows += other.rows
        self.items += other.items

    def end_transaction(self) -> None:
        """Record that a transaction has ended."""
        self._open -= 1
        self._charge_if_ended()

    def end(self) -> None:
        """Record that the operation has ended."""
        self._ended = True
        self._charge_if_ended()

    def _charge_if_ended(self) -> None:
        if self._ended and not self._open and self._charge is not None and self.points:
            charge, self._charge = self._charge, None
            charge(self.points)


def count_rows(rows: int) -> None:
    """Count rows that the running operation has read."""
    usage = USAGE.get()
    if usage is not None:
        usage.rows += rows


def count_items(items: int) -> None:
    """Count small steps of the running operation whose number was not known in advance."""
    usage = USAGE.get()
    if usage is not None:
        usage.items += items


def affordable(items: Sequence[int]) -> int:
    """Return how many parts of a read the running operation can afford, and count the small steps of these parts.

    `items` has the number of steps of each part. The last affordable part may exceed the budget.
    """
    usage = USAGE.get()
    for place, steps in enumerate(items):
        if usage is not None:
            if usage.is_exhausted:
                return place
            usage.items += steps
    return len(items)


def check_budget() -> None:
    """Raise ScanLimit if the running operation has used up its budget."""
    usage = USAGE.get()
    if usage is not None and usage.is_exhausted:
        raise ScanLimit


def count_statement(_connection: object, _cursor: object, statement: str, *_: object) -> None:
    """Count a statement of the running operation. Listener for SQLAlchemy's `before_cursor_execute`."""
    usage = USAGE.get()
    if usage is not None and not statement.startswith("BEGIN"):
        usage.statements += 1


@contextmanager
def used_by(usage: Usage | None) -> Iterator[None]:
    """Charge the reads of this block, and of the tasks that it starts, to `usage`, or to the system if it is None."""
    token = USAGE.set(usage)
    try:
        yield
    finally:
        USAGE.reset(token)
