"""The backlog: how far projections and the archive are behind the log, and other figures for operators."""

from dataclasses import dataclass
from datetime import UTC, datetime

from graph import keys
from graph.log.numbers import number_of
from graph.model import EPOCH_MS, time_of
from graph.store.commands import script
from graph.store.store import Store


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unfinished work of workers and of the archiver, and the size of the log, at one moment.

    `unprojected_seconds` and `unarchived_seconds` are the ages of the oldest events that are not projected or not
    archived, or 0 if there are none. `unarchived` counts events that are not archived; the count is exact whenever the
    archiver has reached the end of the log, and the archiver's batches update it in between. `length` counts the events
    in the log, `tasks` the unfinished fan-out tasks, and `dead` the dead letters. `alarm` says why the archiver has
    stopped, or is empty. `binding` and `rebuild` are the values of the store's keys with these names, or empty.
    `erasing` counts the deleted users who are not erased yet. `ahead_seconds` is how far the next event would be ahead
    of this process's clock, negative if it would be behind.

    The other fields are totals: events `archived`, the `batches` in which they were archived, the `batch_seconds` that
    these batches took, posts `trimmed` from the store, and dead letters `dropped`.
    """

    length: int
    unprojected_seconds: float
    unarchived: int
    unarchived_seconds: float
    tasks: int
    dead: int
    alarm: str
    binding: str
    rebuild: str
    archived: int
    batches: int
    batch_seconds: float
    trimmed: int
    ahead_seconds: float
    dropped: int
    erasing: int


async def read_backlog(store: Store) -> Backlog:
    """Return the backlog. One round trip, O(1)."""
    names = [
        keys.LOG,
        keys.WATERMARK,
        keys.ARCHIVED,
        keys.ARCHIVE_PROGRESS,
        keys.OPEN_FANOUTS,
        keys.DEAD,
        keys.ALARM,
        keys.BINDING,
        keys.REBUILD,
        keys.DEAD_DROPPED,
        keys.ERASING,
    ]
    [reply] = await store.read([script("backlog").call(names, EPOCH_MS)])
    length, unarchived, first_unprojected, first_unarchived, tasks, dead, alarm, binding, rebuild, *totals = reply
    archived, batches, milliseconds, trimmed, upcoming, dropped, erasing = map(int, totals)
    return Backlog(
        length,
        age_of(first_unprojected),
        unarchived,
        age_of(first_unarchived),
        tasks,
        dead,
        alarm,
        binding,
        rebuild,
        archived,
        batches,
        milliseconds / 1000,
        trimmed,
        (time_of(upcoming) - datetime.now(UTC)).total_seconds(),
        dropped,
        erasing,
    )


def age_of(entry: str) -> float:
    """Return the age of a stream entry in seconds, or 0 for the empty string."""
    return max(0.0, (datetime.now(UTC) - time_of(number_of(entry))).total_seconds()) if entry else 0.0
