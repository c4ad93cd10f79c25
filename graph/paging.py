"""Pagination: opaque cursors, and windows over numbers, newest first.

A cursor contains the number of an entry and the kind of its list. So it stays valid when entries are added and removed,
and a cursor of another kind of list is refused.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from graph.errors import BadPaging
from graph.model import MAX_NUMBER, Page

T = TypeVar("T")

MAX_PAGE = 100
LOG_CURSOR_HINT = "a subscription requires a log cursor: a page's `liveCursor` or an event's `cursor`"


class CursorKind(Enum):
    """The kinds of list that a cursor can point into."""

    POST = "post"
    FOLLOW = "follow"
    LOG = "log"


def encode_cursor(kind: CursorKind, number: int) -> str:
    """Return the cursor of an entry."""
    return encode_texts([f"{kind.value}:{number}"])[0]


def encode_cursors(kind: CursorKind, numbers: Sequence[int]) -> list[str]:
    """Return the cursors of entries."""
    prefix = f"{kind.value}:"
    return encode_texts([f"{prefix}{number}" for number in numbers])


def encode_texts(texts: Sequence[str]) -> list[str]:
    """Return ASCII texts as base64url without padding. Texts of equal lengths are encoded in one call.

    Letters, digits and colons never produce the characters in which base64url differs from base64.
    """
    if not texts:
        return []
    length = len(texts[0])
    if len(set(map(len, texts))) > 1:
        return [encode_texts([text])[0] for text in texts]
    padding = "\0" * (-length % 3)
    encoded = binascii.b2a_base64("".join([text + padding for text in texts]).encode(), newline=False).decode()
    step, kept = (length + 2) // 3 * 4, (length * 4 + 2) // 3
    return [encoded[start : start + kept] for start in range(0, len(encoded), step)]


def decode_cursor(kind: CursorKind, cursor: str, argument: str = "after") -> int:
    """Return the number in a cursor. Raises BadPaging for anything other than a cursor of this kind of list."""
    live = kind is CursorKind.LOG
    message = f"'{argument}' is not a cursor of this API{f'; {LOG_CURSOR_HINT}' if live else ''}."
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise BadPaging(message) from None
    name, _, digits = text.partition(":")
    kinds = {known.value: known for known in CursorKind}
    valid = name in kinds and digits.isdecimal() and len(digits) <= 16 and int(digits) <= MAX_NUMBER
    if not valid or encode_cursor(kinds[name], int(digits)) != cursor:
        raise BadPaging(message)
    if name != kind.value:
        wanted = LOG_CURSOR_HINT if live else f"this list requires a {kind.value} cursor"
        raise BadPaging(f"'{argument}' is a {name} cursor; {wanted}.")
    return int(digits)


@dataclass(frozen=True, slots=True)
class Window:
    """The entries that a page asks for: `count` of those with a number between `low` and `high`, both exclusive.

    A `forward` page (first) has the newest of them, a backward page (last) the oldest. Both are ordered newest first.
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
        """Return the window of a connection's arguments.

        Raises BadPaging unless exactly one of first and last is given, from 1 to 100, with cursors of this kind.
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

    def page(self, found: Sequence[T]) -> Page[T]:
        """Return the page of up to `count + 1` entries, given in the direction of paging.

        The last entry only shows that there are more.
        """
        items, more = tuple(found[: self.count]), len(found) > self.count
        if self.forward:
            return Page(items, has_next=more, has_previous=self.bounded_above)
        return Page(items[::-1], has_next=self.bounded_below, has_previous=more)
