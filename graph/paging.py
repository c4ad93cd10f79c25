"""Pagination: cursors, and windows over numbers, newest first.

A cursor contains the number of an entry and the kind of its list. It therefore stays valid when entries are added and
removed, and is refused for another kind of list. Cursors of one kind have the same length and sort like their numbers,
so that clients can sort live posts into a page.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from graph.errors import BadPaging
from graph.model import MAX_NUMBER, NOTHING_RELATED, Page

T = TypeVar("T")

MAX_PAGE = 100
DIGITS = 14
"""The number of hexadecimal digits of MAX_NUMBER."""
LOG_CURSOR_HINT = "a subscription requires a log cursor: a `liveCursor` or an event's `cursor`"


class CursorKind(Enum):
    """The kinds of list that a cursor can point into."""

    POST = "post"
    FOLLOW = "follow"
    LIKE = "like"
    BOOKMARK = "bookmark"
    USER = "user"
    LOG = "log"
    NOTIFICATION = "notification"


KINDS = frozenset(kind.value for kind in CursorKind)
IS_NUMBER = re.compile(f"[01][0-9a-f]{{{DIGITS - 1}}}", re.ASCII).fullmatch


def encode_cursor(kind: CursorKind, number: int) -> str:
    """Return the cursor of an entry. As strings, cursors of one kind sort like their numbers."""
    return f"{kind.value}-{number:0{DIGITS}x}"


def encode_cursors(kind: CursorKind, numbers: Sequence[int]) -> list[str]:
    """Return the cursors of entries, formatted in one call."""
    form = f"{kind.value}-%0{DIGITS}x "
    return (form * len(numbers) % tuple(numbers)).split()


def decode_cursor(kind: CursorKind, cursor: str, argument: str = "after") -> int:
    """Return the number in a cursor. Raises BadPaging for anything other than a cursor of this kind of list."""
    live = kind is CursorKind.LOG
    message = f"'{argument}' is not a cursor of this API{f'; {LOG_CURSOR_HINT}' if live else ''}."
    name, _, digits = cursor.rpartition("-")
    if name not in KINDS or not IS_NUMBER(digits):
        raise BadPaging(message)
    if name != kind.value:
        wanted = LOG_CURSOR_HINT if live else f"this list requires a {kind.value} cursor"
        raise BadPaging(f"'{argument}' is a {name} cursor; {wanted}.")
    return int(digits, 16)


@dataclass(frozen=True, slots=True)
class Window:
    """A request for a page: at most `count` entries with numbers between `low` and `high`, both exclusive.

    A `forward` window (`first`) has the newest of these entries, a backward one (`last`) the oldest. Pages are always
    ordered newest first.
    """

    count: int
    forward: bool
    low: int = 0
    high: int = MAX_NUMBER + 1

    @classmethod
    def of(
        cls,
        kind: CursorKind,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
    ) -> "Window":
        """Return the window that a connection's arguments request.

        Raises BadPaging unless exactly one of `first` and `last` is given, its value is from 1 to 100, and all cursors
        are of this kind.
        """
        if first is None and last is None:
            raise BadPaging(f"Specify 'first' or 'last', from 1 to {MAX_PAGE}: the number of entries to return.")
        if first is not None and last is not None:
            raise BadPaging("Specify either 'first' or 'last', not both.")
        name, count = ("first", first) if first is not None else ("last", last)
        if count is None or not 1 <= count <= MAX_PAGE:
            raise BadPaging(f"'{name}' must be from 1 to {MAX_PAGE}, not {count}.")
        high = MAX_NUMBER + 1 if after is None else decode_cursor(kind, after, "after")
        low = 0 if before is None else decode_cursor(kind, before, "before")
        return cls(count, name == "first", low, high)

    @property
    def bounded_above(self) -> bool:
        """Whether a cursor bounds the page at its newest end."""
        return self.high <= MAX_NUMBER

    @property
    def bounded_below(self) -> bool:
        """Whether a cursor bounds the page at its oldest end."""
        return self.low > 0

    def beyond(self, bound: int) -> "Window | None":
        """Return the part of the window beyond a number, in the direction of paging, or None if it is empty."""
        rest = replace(self, high=bound) if self.forward else replace(self, low=bound)
        return rest if rest.low + 1 < rest.high else None

    def page(
        self, found: Sequence[T], reached: int | None = None, related: Mapping[int, T] = NOTHING_RELATED
    ) -> Page[T]:
        """Build the page from up to `count + 1` entries in the direction of paging.

        An extra entry beyond `count` only shows that there are more. `reached` is the number of the last entry that was
        scanned, if the page is short although there may be more entries.
        """
        items, more = tuple(found[: self.count]), len(found) > self.count
        reached = None if more else reached
        more = more or reached is not None
        if self.forward:
            return Page(items, more, self.bounded_above, reached, related)
        return Page(items[::-1], self.bounded_below, more, reached, related)

    def cut(self, page: Page[T]) -> Page[T]:
        """Return this window's part of the page of a wider window with the same bounds and direction."""
        surplus = len(page.items) - self.count
        if surplus <= 0:
            return page
        if self.forward:
            return Page(page.items[: self.count], True, page.has_previous, None, page.related)
        return Page(page.items[surplus:], page.has_next, True, None, page.related)
