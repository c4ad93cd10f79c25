"""Cursors and the windows of pages: keyset paging over numbers, newest first.

A cursor is a number with the kind of list it belongs to, so that it stays right when entries come and go and so
that a cursor of another kind of list is refused instead of misread.
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
SUBSCRIPTIONS_TAKE = "a subscription takes a log cursor: a page's `liveCursor` or an event's `cursor`"


class CursorKind(Enum):
    """The kinds of list that a cursor can point into."""

    POST = "post"
    FOLLOW = "follow"
    LOG = "log"


def encode_cursor(kind: CursorKind, number: int) -> str:
    """Make the opaque cursor of an entry."""
    return encode_texts([f"{kind.value}:{number}"])[0]


def encode_cursors(kind: CursorKind, numbers: Sequence[int]) -> list[str]:
    """Make the opaque cursors of entries."""
    prefix = f"{kind.value}:"
    return encode_texts([f"{prefix}{number}" for number in numbers])


def encode_texts(texts: Sequence[str]) -> list[str]:
    """Write ASCII texts as base64url without padding: in one go if they are all of one length, as they mostly are.

    Characters that base64url writes differently than base64 come only of bytes that no letter, digit or colon has.
    """
    if not texts:
        return []
    length = len(texts[0])
    if len(set(map(len, texts))) > 1:
        return [encode_texts([text])[0] for text in texts]
    filling = "\0" * (-length % 3)
    written = binascii.b2a_base64("".join([text + filling for text in texts]).encode(), newline=False).decode()
    step, kept = (length + 2) // 3 * 4, (length * 4 + 2) // 3
    return [written[start : start + kept] for start in range(0, len(written), step)]


def decode_cursor(kind: CursorKind, cursor: str, argument: str = "after") -> int:
    """Read a cursor back to its number.

    Raises BadPaging, naming the argument, if it is not a cursor or belongs to another kind of list.
    """
    live = kind is CursorKind.LOG
    complaint = f"'{argument}' is not a cursor of this API{f'; {SUBSCRIPTIONS_TAKE}' if live else ''}."
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise BadPaging(complaint) from None
    name, _, digits = text.partition(":")
    kinds = {known.value: known for known in CursorKind}
    valid = name in kinds and digits.isdecimal() and len(digits) <= 16 and int(digits) <= MAX_NUMBER
    if not valid or encode_cursor(kinds[name], int(digits)) != cursor:
        raise BadPaging(complaint)
    if name != kind.value:
        wanted = SUBSCRIPTIONS_TAKE if live else f"this list takes a {kind.value} cursor"
        raise BadPaging(f"'{argument}' is a {name} cursor; {wanted}.")
    return int(digits)


@dataclass(frozen=True, slots=True)
class Window:
    """Which entries a page asks for: `count` of those with a number above `low` and below `high`, both exclusive.

    `forward` pages (first) take the newest of them, the others (last) the oldest; both answer newest first.
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
        """Check a connection's arguments and make them a window.

        Raises BadPaging unless exactly one of first and last is given, from 1 to 100, and the cursors are of the kind.
        """
        if first is None and last is None:
            raise BadPaging("Give 'first' or 'last': how many entries to return, from 1 to 100.")
        if first is not None and last is not None:
            raise BadPaging("Give either 'first' or 'last', not both.")
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
        """Make the page from up to count + 1 entries found in the direction of paging.

        The one entry too many is what makes `has_next` (or, backwards, `has_previous`) exact.
        """
        items, more = tuple(found[: self.count]), len(found) > self.count
        if self.forward:
            return Page(items, has_next=more, has_previous=self.bounded_above)
        return Page(items[::-1], has_next=self.bounded_below, has_previous=more)
