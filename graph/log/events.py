"""The events of the log: what happened, as frozen records, and their form in the store."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeAlias, get_args

import orjson

from graph.model import time_of


@dataclass(frozen=True, slots=True)
class UserCreated:
    """Somebody signed up. The nonce ties the event to the claim of the login; no secret is in it."""

    login: str
    name: str
    nonce: str
    bio: str = ""


@dataclass(frozen=True, slots=True)
class ProfileChanged:
    """A person changed the fields that are not None."""

    user: int
    name: str | None = None
    bio: str | None = None


@dataclass(frozen=True, slots=True)
class PermissionGranted:
    """A person may from now on do what `permission` names."""

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class PermissionRevoked:
    """A person may no longer do what `permission` names."""

    user: int
    permission: str


@dataclass(frozen=True, slots=True)
class SessionsEnded:
    """These sessions of a person were logged out."""

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
    """An author deleted a post of theirs.

    `terms` is the digest of the post's text (`graph.terms`), for filters by keyword. Older versions wrote none, and a
    deletion that is appended again must have none: it would answer guesses about a post that is already gone.
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
"""Fields that older versions wrote, by kind. They are ignored."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its number in the log, which is also its time."""

    number: int
    body: EventBody

    @property
    def at(self) -> datetime:
        """When the event was appended."""
        return time_of(self.number)


def encode_body(body: EventBody) -> str:
    """Give an event's form in the store: its kind and its fields that are not None, as JSON."""
    values = {field.name: getattr(body, field.name) for field in fields(body)}
    return orjson.dumps([type(body).__name__, {k: v for k, v in values.items() if v is not None}]).decode()


def decode_body(text: str) -> EventBody:
    """Read an event back. Raises ValueError for what no version up to this one has written."""
    try:
        kind, values = orjson.loads(text)
        for field in DROPPED.get(kind, ()):
            values.pop(field, None)
        body: EventBody = KINDS[kind](**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Not an event of this version: {text[:200]}") from error
    return body
