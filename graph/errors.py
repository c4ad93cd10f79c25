"""The errors of the social graph.

`Rejected` means that an input breaks a rule and nothing was written. Most other errors mean that the store, the archive
or a limit prevented the operation.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

FULL_SECONDS = 10
"""The retry delay for clients, in seconds, while the store or the log is full. Archiving and deletions free space."""


class ProblemCode(Enum):
    """Why an input was rejected. The names are part of the GraphQL schema."""

    INVALID = "INVALID"
    LOGIN_TAKEN = "LOGIN_TAKEN"
    LOGIN_INVALID = "LOGIN_INVALID"
    PASSWORD_TOO_WEAK = "PASSWORD_TOO_WEAK"  # noqa: S105 - a code, not a password
    WRONG_CREDENTIALS = "WRONG_CREDENTIALS"
    TEXT_EMPTY = "TEXT_EMPTY"
    TEXT_TOO_LONG = "TEXT_TOO_LONG"
    NOT_FOUND = "NOT_FOUND"
    NOT_ALLOWED = "NOT_ALLOWED"
    TOO_MANY = "TOO_MANY"
    TOO_MANY_ATTEMPTS = "TOO_MANY_ATTEMPTS"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    BLOCKED = "BLOCKED"


class Param(NamedTuple):
    """A value in the message of a problem."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: a stable code, a message for users, the path of the input field, and the message's values.

    The names of the values are `min`, `max`, `length` and `retryAfter`, in seconds. Clients use them for messages in
    other languages.
    """

    code: ProblemCode
    message: str
    field: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()

    @classmethod
    def about(cls, code: ProblemCode, message: str, field: tuple[str, ...], params: Mapping[str, object]) -> "Problem":
        """Return a problem with these values in its message."""
        return cls(code, message, field, tuple(Param(name, str(value)) for name, value in params.items()))


class GraphError(Exception):
    """The base class of the errors of the social graph."""


class Rejected(GraphError):
    """The input breaks rules. Nothing was written."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems

    @classmethod
    def because(cls, code: ProblemCode, message: str, *field: str, **params: object) -> "Rejected":
        """Return a rejection with one problem."""
        return cls(Problem.about(code, message, field, params))


class BadPaging(GraphError):
    """The arguments of a connection are invalid, such as `first` out of range, or a cursor of another kind of list."""


class BadFilter(GraphError):
    """An event filter is invalid or exceeds a limit. The message names the field."""


class StoreUnavailable(GraphError):
    """The store did not answer. A write may or may not have been applied; retrying it with the same key is safe.

    The message is safe to show to clients. `reason` holds details for the operator's logs.
    """

    message = "The store does not answer. Try again in a moment."

    def __init__(self, reason: object = "") -> None:
        super().__init__(self.message)
        self.reason = str(reason)


class NotDurable(StoreUnavailable):
    """A write was applied, but too few replicas have it: it may be lost in a failover. Retrying it is safe."""

    message = "The write is not yet on all replicas and may be lost. Retry it with the same idempotency key."


class StoreNotReady(StoreUnavailable):
    """The store answers but must not be used: it is being rebuilt, or does not belong to the archive.

    `reason` says what to do, and is safe to show.
    """


class StoreFull(StoreUnavailable):
    """The store has no memory left for a write. Nothing was written. Reads and deletions still work."""

    message = (
        "The store is full. Changes other than deletions, unfollows, blocks and log-outs are refused. Try again later."
    )


class ClockAhead(StoreUnavailable):
    """The next event's number would be more than an hour ahead of this process's clock. Nothing was written.

    `reason` says what an operator must do.
    """

    message = "Changes cannot be accepted at the moment. Try again later."


class ArchiveUnavailable(GraphError):
    """The archive did not answer. A write may or may not have been applied; retrying it is safe.

    The message is safe to show to clients. `reason` holds details for the operator's logs.
    """

    def __init__(self, reason: object = "") -> None:
        super().__init__("Older posts cannot be read at the moment. Try again later.")
        self.reason = str(reason)


class StoreReplaced(GraphError):
    """The store is not the one that this process started with, or its rebuild is not complete. Nothing was written.

    The message is safe to show to clients.
    """

    def __init__(self) -> None:
        super().__init__("The server's store has been replaced. Try again in a moment.")


class Overloaded(GraphError):
    """Too many passwords are waiting to be hashed or events to be archived, or the store is nearly full.

    Nothing was written. The message is safe to show to clients, which should try again after `seconds`.
    """

    def __init__(self, message: str = "", seconds: int = 2) -> None:
        super().__init__(message)
        self.seconds = seconds


class WrongArchive(GraphError):
    """The configured store and archive do not belong together. The message says what to do."""


class StoreTooNew(WrongArchive):
    """A later version has changed the keys of the store. The message says what to do."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"The store is in format {found}, written by a later version; this version knows format {known}. "
            "Use the later version."
        )


class RebuildRefused(GraphError):
    """The store cannot be rebuilt from the archive. The message says why, and what to do."""


class ArchiverStopped(GraphError):
    """The archive cannot take further events until an operator acts. The message says why, and what to do."""


class OutdatedWorker(GraphError):
    """The log holds an event of a kind that this version does not know. A worker of a later version must project it.

    `kind` is the kind of the event, and `entry` the id of its entry in the log.
    """

    def __init__(self, kind: str, entry: str) -> None:
        super().__init__(
            f"Entry {entry} of the log is an event of kind {kind[:100]!r}, which this version does not know. "
            "Run workers of the version that wrote it."
        )
        self.kind = kind
        self.entry = entry


class AccountDeleted(GraphError):
    """The acting user is deleted. Nothing was written. The message is safe to show to clients."""

    def __init__(self) -> None:
        super().__init__("This account is deleted.")


class FolloweesDeleted(GraphError):
    """`users` are deleted, and cannot be followed. Nothing was written."""

    def __init__(self, users: Collection[int]) -> None:
        super().__init__(f"Deleted users cannot be followed: {', '.join(map(str, users))}")
        self.users = users


class SessionOver(GraphError):
    """The session of a live stream has ended, and the stream ends with it."""


class NotPermitted(GraphError):
    """The operation needs a permission that the viewer does not have."""


class ViewerNeeded(GraphError):
    """An execution whose result is for several viewers needs data that depends on the viewer."""

    def __init__(self) -> None:
        super().__init__("The value depends on the viewer, but the execution is for several viewers.")
