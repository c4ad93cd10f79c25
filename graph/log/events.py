"""The events of the log, as frozen records, and their encoding in the store."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeAlias, get_args

import orjson

from graph.log.numbers import number_of
from graph.model import time_of


@dataclass(frozen=True, slots=True)
class UserCreated:
    """A user signed up. The nonce is that of the login's claim. The event holds no secret."""

    login: str
    name: str
    nonce: str
    bio: str = ""


@dataclass(frozen=True, slots=True)
class ProfileChanged:
    """A user changed the fields that are not None."""

    user: int
    name: str | None = None
    bio: str | None = None


@dataclass(frozen=True, slots=True)
class PermissionGranted:
    """A user was granted a permission."""

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class PermissionRevoked:
    """A user's permission was revoked."""

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class SessionsEnded:
    """Sessions of a user were logged out."""

    user: int
    sessions: list[str]


@dataclass(frozen=True, slots=True)
class PostPublished:
    """An author published a post, whose id is the event's number."""

    author: int
    text: str
    platform: str | None = None
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class PostDeleted:
    """An author deleted a post.

    `terms` is the digest of the post's text (`graph.terms`), for filters by keyword. It is None in events of older
    versions, and in the repeated event of an older deletion: a digest lets a reader test guesses about a deleted text.
    """

    author: int
    post: int
    terms: str | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """`follower` began to follow `followee`."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """`follower` stopped following `followee`."""

    follower: int
    followee: int


EventBody: TypeAlias = (
    UserCreated
    | ProfileChanged
    | PermissionGranted
    | PermissionRevoked
    | SessionsEnded
    | PostPublished
    | PostDeleted
    | Followed
    | Unfollowed
)

KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(EventBody)}
DROPPED = {"PostDeleted": ("latitude", "longitude")}
"""Fields that only older versions wrote, by kind of event. They are ignored."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its number in the log, which contains its time."""

    number: int
    body: EventBody

    @property
    def at(self) -> datetime:
        """The time of the event, in UTC, to the millisecond."""
        return time_of(self.number)


def encode_body(body: EventBody) -> str:
    """Return the JSON of an event: its kind and its fields that are not None."""
    values = {field.name: getattr(body, field.name) for field in fields(body)}
    return orjson.dumps([type(body).__name__, {k: v for k, v in values.items() if v is not None}]).decode()


def decode_body(text: str) -> EventBody:
    """Return the event in a JSON text. Raises ValueError for a text that no version up to this one has written."""
    try:
        kind, values = orjson.loads(text)
        for field in DROPPED.get(kind, ()):
            values.pop(field, None)
        body: EventBody = KINDS[kind](**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Not an event of this version: {text[:200]}") from error
    return body


def decode_entry(entry: tuple[str, list[str] | None]) -> Event | None:
    """Return the event in a stream entry; None if the entry was removed or this version cannot decode it."""
    try:
        [_, body] = entry[1] or []
        return Event(number_of(entry[0]), decode_body(body))
    except ValueError:
        return None
