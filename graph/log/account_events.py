"""The events that end an account. See `graph.log.events`."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from graph.log.body import Body


@dataclass(frozen=True, slots=True)
class UserDeleted(Body):
    """A user deleted their account. The log holds no later event of this user, except events of the erasure.

    `login_hash` is the hash of the user's login (see the function `login_hash`). Nobody can sign up with this login
    again.
    """

    ACTOR: ClassVar[str | None] = "user"

    user: int
    login_hash: str


@dataclass(frozen=True, slots=True)
class UserErased(Body):
    """All data of a deleted user has been erased."""

    ACTOR: ClassVar[str | None] = "user"

    user: int


def login_hash(login: str) -> str:
    """Return the hash of a lower-case login, kept after the user is deleted: SHA-256, as hexadecimal digits."""
    return hashlib.sha256(login.encode()).hexdigest()
