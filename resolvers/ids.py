"""Global ids: what stands wherever the schema says `ID`.

An id is the base64url form of a kind and its numbers, as `User:4711`. It is opaque to clients and good as a
cache key: a thing has exactly one id, so anything that is not exactly what `encode` makes is malformed.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from graph.model import MAX_NUMBER
from graph.paging import encode_texts
from resolvers.errors import BadInput


class Kind(Enum):
    """What an id can stand for; the value is how many numbers it takes to name one."""

    USER = "User", 1
    POST = "Post", 1
    HOME_TIMELINE = "HomeTimeline", 1
    USER_TIMELINE = "UserTimeline", 1
    RELATIONSHIP = "Relationship", 2

    def __init__(self, label: str, arity: int) -> None:
        self.label = label
        self.arity = arity


MAX_LENGTH = 100  # twice the longest id

KINDS = {kind.label: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class GlobalId:
    """A decoded id: the kind of thing and the numbers that name it. The thing itself need not exist."""

    kind: Kind
    numbers: tuple[int, ...]


def encode(kind: Kind, *numbers: int) -> str:
    """Make the global id of a thing."""
    return _encode(":".join((kind.label, *map(str, numbers))))


def encode_all(kind: Kind, numbers: Sequence[int]) -> list[str]:
    """Make the global ids of many things of a kind that takes one number."""
    prefix = f"{kind.label}:"
    return encode_texts([f"{prefix}{number}" for number in numbers])


def decode(text: str) -> GlobalId:
    """Read a global id back. Raises BadInput if it is none."""
    if len(text) > MAX_LENGTH:
        raise BadInput("The id is malformed. Send an id that this API returned.")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        raise BadInput("The id is malformed. Send an id that this API returned.") from None
    label, *digits = raw.split(":")
    kind = KINDS.get(label)
    if kind is None or len(digits) != kind.arity or not all(map(_is_number, digits)) or _encode(raw) != text:
        raise BadInput("The id is malformed. Send an id that this API returned.")
    return GlobalId(kind, tuple(map(int, digits)))


def number(kind: Kind, text: str) -> int | None:
    """Read the one number of an id of this kind; None if another kind's. Raises BadInput if malformed."""
    found = decode(text)
    return found.numbers[0] if found.kind is kind else None


def _encode(raw: str) -> str:
    return encode_texts([raw])[0]


def _is_number(digits: str) -> bool:
    return digits.isdecimal() and len(digits) <= 16 and digits == str(int(digits)) and 0 < int(digits) <= MAX_NUMBER
