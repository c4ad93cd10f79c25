"""Pages of archived lists whose entries are scanned as candidates, because not all of them are shown."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from graph.archive.usage import USAGE, check_budget
from graph.model import MAX_NUMBER, Page
from graph.paging import Window

C = TypeVar("C")
T = TypeVar("T")

MOST_SCANNED = 2000
MOST_AT_ONCE = 500
GROWTH = 4  # of the number of candidates from one read to the next
MOST_READS = 16


async def scanned_page(
    window: Window,
    read: Callable[[Window, int], Awaitable[tuple[Sequence[C], Window | None]]],
    show: Callable[[Sequence[C]], Awaitable[list[T]]],
    *,
    up_to: int = MAX_NUMBER,
    limit: int = MOST_SCANNED,
) -> Page[T]:
    """Return a page of the candidates in a window that are shown, with numbers up to `up_to`.

    Scans at most `limit` candidates.

    The scan also stops when the operation's budget, which all its pages share, is used up (`graph.archive.usage`). The
    page may then be short, even empty, although there are more candidates; it has the number at which the next page
    continues. Raises ScanLimit if the budget was already used up. `read` returns the next candidates of a window, up to
    its count, and the rest of the window, or None if it is finished. The second argument of `read` is the number of
    earlier reads; there are at most 16 reads. `show` returns the entries that are shown for a sequence of candidates.
    """
    check_budget()
    usage = USAGE.get()
    high = min(window.high, up_to + 1)
    rest: Window | None = replace(window, high=high) if window.low + 1 < high else None
    found: list[T] = []
    room, wanted = limit, window.count + 1
    for turn in range(MOST_READS):
        allowed = room if usage is None else min(room, usage.rows_left())
        if rest is None or not allowed or len(found) > window.count:
            break
        count = min(allowed, max(wanted, window.count + 1 - len(found)))
        candidates, rest = await read(replace(rest, count=count), turn)
        room, wanted = room - len(candidates), min(MOST_AT_ONCE, GROWTH * wanted)
        found += await show(candidates)
    if rest is None:
        return window.page(found)
    return window.page(found, rest.high if window.forward else rest.low)
