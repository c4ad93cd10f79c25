"""What can go wrong in the social graph, as exceptions that carry a stable code.

`Rejected` is for the expected: input that breaks a rule, found before anything is written. The others say that
something around the graph failed.
"""

from dataclasses import dataclass
from enum import Enum


class ProblemCode(Enum):
    """Why an input was rejected; the names are part of the GraphQL contract."""

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


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule that an input breaks: a stable code, a sentence for people, the path inside the input."""

    code: ProblemCode
    message: str
    field: tuple[str, ...] = ()


class GraphError(Exception):
    """The base of every error that the social graph raises on purpose."""


class Rejected(GraphError):
    """An expected failure: the input breaks rules, and nothing was written."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems

    @classmethod
    def because(cls, code: ProblemCode, message: str, *field: str) -> "Rejected":
        """Build the rejection of one field for one reason."""
        return cls(Problem(code, message, field))


class BadPaging(GraphError):
    """A page was asked for in a way that has no answer: bad first/last, or a foreign or broken cursor."""


class BadFilter(GraphError):
    """A filter of events that makes no sense or goes beyond a limit; the message names the field."""


class StoreUnavailable(GraphError):
    """The store did not answer. Nothing is known of a write under way; its retry with the same key is safe.

    The message may be shown to anybody; `reason` says more, for the log of whoever runs the store.
    """

    def __init__(self, reason: object = "") -> None:
        super().__init__("The store does not answer. Try again in a moment.")
        self.reason = str(reason)


class ArchiveUnavailable(GraphError):
    """The archive did not answer. A write under way may have been done or not; its retry is safe.

    The message may be shown to anybody; `reason` says more, for the log of whoever runs the archive.
    """

    def __init__(self, reason: object = "") -> None:
        super().__init__("Older posts cannot be read at the moment. Try again later.")
        self.reason = str(reason)


class Overloaded(GraphError):
    """Too many passwords wait to be hashed. Nothing was done; trying again in a moment is safe."""

    def __init__(self) -> None:
        super().__init__("Too many passwords are being checked. Try again in a moment.")


class WrongArchive(GraphError):
    """The archive is not the one that holds this store's older posts."""

    def __init__(self) -> None:
        super().__init__("This is not the archive that holds the store's older posts. Was another one used before?")


class NumbersExhausted(GraphError):
    """The log has no number left in its 53 bits (the year 2089), or a clock is set decades ahead."""


class OutOfStep(GraphError):
    """The log cannot give imported events the numbers they came with: somebody else has written to it."""


class SessionOver(GraphError):
    """The session of a live stream has ended; so does the stream."""


class NotPermitted(GraphError):
    """What was asked for needs a permission that the viewer does not have, or no longer has."""
