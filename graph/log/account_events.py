"""The events that end an account. See `graph.log.events`."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from graph.log.body import Body


@dataclass(frozen=True, slots=True)
class UserDeleted(Body):
    """A user deleted their account. The log holds no later event of this user, except those of the erasure.

    `login_hash` is the hash of the login, with which nobody can sign up again (see the function `login_hash`).
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
    """Return the hash of a folded login that is kept when the user is deleted: SHA-256, as hexadecimal digits."""
    return hashlib.sha256(login.encode()).hexdigest()
