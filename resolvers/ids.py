"""Global ids, the values of the type `ID`.

A global id is a kind and its numbers, such as `User:4711`, in base64url. Clients use ids as cache keys, so each object
has exactly one: `decode` accepts only the exact output of `encode`.
"""

import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from graph.model import MAX_NUMBER
from resolvers.errors import BadInput


class Kind(Enum):
    """The kinds of objects with a global id, and how many numbers identify an object of each kind."""

    USER = "User", 1
    VIEWER = "Viewer", 1
    POST = "Post", 1
    REPOST = "Repost", 1
    HOME_TIMELINE = "HomeTimeline", 1
    USER_TIMELINE = "UserTimeline", 1
    REPLIES_TIMELINE = "RepliesTimeline", 1
    PUBLIC_TIMELINE = "PublicTimeline", 0
    RELATIONSHIP = "Relationship", 2
    SESSION = "Session", 1
    NOTIFICATION_FEED = "NotificationFeed", 1
    NOTIFICATION = "Notification", 3
    LIST = "UserList", 1
    LIST_TIMELINE = "ListTimeline", 1

    def __init__(self, label: str, arity: int) -> None:
        self.label = label
        self.arity = arity


MAX_LENGTH = 100  # twice the longest id
MALFORMED = "The id is malformed. Send an id that this API returned."

KINDS = {kind.label: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class GlobalId:
    """A decoded global id: a kind and its numbers. The object might not exist."""

    kind: Kind
    numbers: tuple[int, ...]


def encode(kind: Kind, *numbers: int) -> str:
    """Return the global id of an object."""
    return _encode(":".join((kind.label, *map(str, numbers))))


def encode_all(kind: Kind, numbers: Sequence[int]) -> list[str]:
    """Return the global ids of objects of one kind. Each object is identified by one number.

    If all numbers have the same number of digits, as usual, they are formatted and encoded in one call.
    """
    digits = len(str(numbers[0])) if numbers else 0
    if len(numbers) < 2 or len(str(min(numbers))) != digits or len(str(max(numbers))) != digits:
        return [encode(kind, number) for number in numbers]
    form, slashes = _form(kind.label, digits)
    texts = form * len(numbers) % tuple(numbers)
    return binascii.b2a_base64(texts.encode("latin-1"), newline=False).decode().split(slashes)[:-1]


def decode(text: str) -> GlobalId:
    """Return the kind and numbers of a global id. Raises BadInput if it is malformed."""
    if len(text) > MAX_LENGTH:
        raise BadInput(MALFORMED)
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        raise BadInput(MALFORMED) from None
    label, *digits = raw.split(":")
    kind = KINDS.get(label)
    if kind is None or len(digits) != kind.arity or not all(map(_is_number, digits)) or _encode(raw) != text:
        raise BadInput(MALFORMED)
    return GlobalId(kind, tuple(map(int, digits)))


def number(kind: Kind, text: str) -> int | None:
    """Return the number of a global id of this kind, or None for another kind. Raises BadInput if it is malformed."""
    found = decode(text)
    return found.numbers[0] if found.kind is kind else None


def number_or_none(kind: Kind, text: str) -> int | None:
    """Return the number of a global id of this kind, or None for another kind or a malformed id."""
    with suppress(BadInput):
        return number(kind, text)
    return None


def numbers(kind: Kind, texts: Sequence[str]) -> list[int] | None:
    """Return the numbers of global ids of one kind, or None if any id is malformed or of another kind.

    Objects of the kind are identified by one number. Three times as fast as calling `number` for each id.
    """
    start = len(kind.label) + 1
    try:
        found = [int(binascii.a2b_base64(text + "==")[start:]) for text in texts]
    except ValueError:
        return None
    are_ids = all(map(range(1, MAX_NUMBER + 1).__contains__, found)) and encode_all(kind, found) == list(texts)
    return found if are_ids else None


@lru_cache(maxsize=1000)
def _form(label: str, digits: int) -> tuple[str, str]:
    """Return the format of padded ids with this number of digits, and the padding as it appears in base64: slashes.

    The slashes separate ids that are encoded together: letters, digits and colons never produce a slash. The padding
    does not change the base64 character before it.
    """
    padding, slashes = (("\xff\xff\xff", "////"), ("\x0f\xff", "//"), ("?", "/"))[(len(label) + 1 + digits) % 3]
    return f"{label}:%d{padding}", slashes


def _encode(raw: str) -> str:
    """Return ASCII text as base64url without padding.

    Letters, digits and colons never produce the characters in which base64url differs from base64.
    """
    return binascii.b2a_base64(raw.encode(), newline=False).rstrip(b"=").decode()


def _is_number(digits: str) -> bool:
    return digits.isdecimal() and len(digits) <= 16 and digits == str(int(digits)) and 0 < int(digits) <= MAX_NUMBER
