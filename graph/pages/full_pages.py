"""Pages of lists from which some entries are left out: reading continues until a page is full.

A page ends after 2,000 scanned entries, so that a list in which the viewer sees nothing is not read completely. The
page may then be short, even empty, although there are more entries; its cursor continues after them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from graph.model import Page
from graph.paging import Window

MOST_SCANNED = 2000
MOST_AT_ONCE = 500


class Numbered(Protocol):
    """An entry of a list, with its position."""

    @property
    def number(self) -> int:
        """The position in the list. The list is ordered by these numbers."""


E = TypeVar("E", bound=Numbered)
S = TypeVar("S", bound=Numbered)


async def full_pages(
    owners: Sequence[int],
    window: Window,
    read: Callable[[Mapping[int, Window]], Awaitable[Sequence[Sequence[E]]]],
    show: Callable[[Sequence[int], Sequence[Sequence[E]]], Awaitable[Sequence[Sequence[S] | None]]],
) -> list[Page[S]]:
    """Return a page of the list of each owner.

    `read` gets some of the owners with a window for each, and returns the first entries of each owner's list in the
    window, in paging direction. `show` returns the entries that a viewer sees, None for a list that the viewer must not
    see. Both are called once for all lists, and up to four times more for the lists whose pages are not full yet.
    """
    pending = dict.fromkeys(owners, replace(window, count=window.count + 1))
    found: dict[int, list[S]] = {owner: [] for owner in owners}
    reached: dict[int, int] = {}
    scanned = 0
    while pending:
        lists = await read(pending)
        scanned += max(map(len, lists), default=0)
        rest: dict[int, Window] = {}
        shown = await show([*pending], lists)
        for (owner, part), entries, some in zip(pending.items(), lists, shown, strict=True):
            if some is None:
                continue
            found[owner] += some
            if len(found[owner]) <= window.count and len(entries) == part.count:
                if scanned < MOST_SCANNED:
                    rest[owner] = beyond(part, entries[-1].number)
                else:
                    reached[owner] = entries[-1].number
        pending = rest
    return [window.page(found[owner], reached.get(owner)) for owner in owners]


def beyond(read: Window, last: int) -> Window:
    """Return the larger window that follows the entry `last`, in paging direction."""
    following = replace(read, count=MOST_AT_ONCE)
    return replace(following, high=last) if read.forward else replace(following, low=last)
