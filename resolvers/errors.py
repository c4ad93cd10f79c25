"""Errors that clients see in `errors`, and their stable codes.

Expected failures of mutations are `graph.errors.Rejected` and become `userErrors` instead.
"""

from graph.archive.usage import ScanLimit
from graph.errors import (
    AccountDeleted,
    ArchiveUnavailable,
    BadFilter,
    BadPaging,
    NotDurable,
    NotPermitted,
    Overloaded,
    SessionOver,
    StoreReplaced,
    StoreUnavailable,
)


class BadInput(Exception):
    """An argument is invalid: a malformed id, or too many ids."""


class Unauthenticated(Exception):
    """The operation requires a viewer, and the request is anonymous."""

    def __init__(self) -> None:
        super().__init__("This operation requires a viewer. Log in and send the access token.")


class RedactedError(Exception):
    """Replaces an unexpected error whose message may contain a password. The new message is only its type."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__qualname__)


CODES: tuple[tuple[type[Exception], str], ...] = (
    (BadInput, "BAD_USER_INPUT"),
    (BadPaging, "BAD_USER_INPUT"),
    (BadFilter, "BAD_USER_INPUT"),
    (Unauthenticated, "UNAUTHENTICATED"),
    (SessionOver, "UNAUTHENTICATED"),
    (AccountDeleted, "UNAUTHENTICATED"),
    (NotPermitted, "FORBIDDEN"),
    (NotDurable, "NOT_DURABLE"),
    (StoreUnavailable, "STORE_UNAVAILABLE"),
    (StoreReplaced, "STORE_UNAVAILABLE"),
    (ArchiveUnavailable, "ARCHIVE_UNAVAILABLE"),
    (Overloaded, "OVERLOADED"),
    (ScanLimit, "COST_LIMIT"),
)


def code_of(error: BaseException | None) -> str | None:
    """Return the code of an error whose message clients may see, or None if the error must be masked."""
    return next((code for kind, code in CODES if isinstance(error, kind)), None)
