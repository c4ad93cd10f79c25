"""Reads events of users from the archive, in pages of bounded size, and folds them into batches."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from graph.archive.rows import EventRow
from graph.fold.content import Content
from graph.fold.hot_window import Cuts
from graph.log.encoding import decode
from graph.log.events import Event
from graph.model import MAX_NUMBER

if TYPE_CHECKING:
    from graph.archive.archive import Archive

T = TypeVar("T")

Fold: TypeAlias = Callable[[Content, int, Any], None]
"""Adds an event to the content. The arguments are the content, the event's number and its body."""

Read: TypeAlias = Callable[[Sequence[int], Sequence[str], int, int], Awaitable[list[EventRow]]]
"""`Archive.by_actor` or `Archive.by_subject`."""

ROWS = 10_000


@dataclass(slots=True)
class FoldedBatch:
    """Folded content of some owners, with the data needed to store it. `cuts` has the cuts of the lists in the content.

    If the batch is one of several pages of one versioned set, `is_page` is True: later pages can change elements of
    earlier pages. `events` is the count of events in the batch. `damaged` has the numbers of rows that could not be
    decoded. `deleted` has the deleted posts among the owners of lists under posts.
    """

    content: Content
    fold: Fold
    cuts: Cuts = field(default_factory=dict)
    is_page: bool = False
    events: int = 0
    damaged: list[int] = field(default_factory=list)
    deleted: Collection[int] = ()

    def add(self, rows: Iterable[EventRow]) -> None:
        """Fold rows into the content, and count them. Rows that are damaged or have no body are added to `damaged`."""
        for event in self._decoded(rows):
            self.fold(self.content, event.number, event.body)

    def _decoded(self, rows: Iterable[EventRow]) -> Iterator[Event]:
        for row in rows:
            self.events += 1
            try:
                yield decode(*row)
            except ValueError:
                self.damaged.append(row.number)


class EventReader:
    """Reads the events of users. A query reads at most about `rows` rows."""

    def __init__(self, archive: "Archive", rows: int = ROWS) -> None:
        self.archive = archive
        self.rows = rows

    async def pages(
        self, read: Read, owners: Sequence[int], kinds: Sequence[str], after: int = 0
    ) -> AsyncIterator[tuple[Sequence[int], list[EventRow], bool]]:
        """Yield owners, their rows numbered above `after`, and True if the rows are one of several pages of one owner.

        If there are too many rows for one query, the owners are split into two halves. The rows of one owner are in
        ascending order across pages.
        """
        rows = await read(owners, kinds, after, self.rows)
        if len(rows) < self.rows:
            yield owners, rows, False
            return
        if len(owners) > 1:
            middle = len(owners) // 2
            for part in (owners[:middle], owners[middle:]):
                async for page in self.pages(read, part, kinds, after):
                    yield page
            return
        async for rows in pages_of_one(read, owners[0], kinds, after, self.rows):
            yield owners, rows, True


async def pages_of_one(
    read: Read, owner: int, kinds: Sequence[str], after: int, size: int
) -> AsyncIterator[list[EventRow]]:
    """Yield the rows of one owner in pages, in ascending order of their numbers.

    Each kind is read separately, in index order, because a query for several kinds sorts all their rows.
    """
    held: dict[str, list[EventRow]] = {kind: [] for kind in kinds}
    reached = dict.fromkeys(kinds, after)
    unread = set(kinds)
    while unread or any(held.values()):
        for kind in kinds:
            if kind in unread and not held[kind]:
                held[kind] = await read([owner], [kind], reached[kind], size)
                if len(held[kind]) < size:
                    unread.remove(kind)
                else:
                    reached[kind] = held[kind][-1].number
        up_to = min((reached[kind] for kind in unread), default=MAX_NUMBER)
        page = sorted(row for rows in held.values() for row in rows if row.number <= up_to)
        held = {kind: [row for row in rows if row.number > up_to] for kind, rows in held.items()}
        if page:
            yield page


def names_of(kinds: Iterable[type[Any]]) -> tuple[str, ...]:
    """Return the names of kinds of events, as used in the archive."""
    return tuple(kind.__name__ for kind in kinds)


def last_number(rows: Sequence[EventRow], limit: int) -> int | None:
    """Return the number after which the next read starts, or None if fewer than `limit` rows were read."""
    return rows[-1].number if len(rows) == limit else None
