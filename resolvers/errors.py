"""Errors that end up in a response's `errors`, and the stable code that each of them has there.

Expected failures of mutations are not here: they are `graph.errors.Rejected`, and become `userErrors`.
"""

from graph.errors import (
    ArchiveUnavailable,
    BadFilter,
    BadPaging,
    NotPermitted,
    Overloaded,
    SessionOver,
    StoreUnavailable,
)


class BadInput(Exception):
    """An argument makes no sense: a malformed id, or too many of them."""


class Unauthenticated(Exception):
    """The operation needs a viewer, and there is none."""

    def __init__(self) -> None:
        super().__init__("Log in first: this needs a viewer.")


class Withheld(Exception):
    """An unexpected error whose text is not shown to anybody: it may quote a password. The message is its type."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__qualname__)


CODES: tuple[tuple[type[Exception], str], ...] = (
    (BadInput, "BAD_USER_INPUT"),
    (BadPaging, "BAD_USER_INPUT"),
    (BadFilter, "BAD_USER_INPUT"),
    (Unauthenticated, "UNAUTHENTICATED"),
    (SessionOver, "UNAUTHENTICATED"),
    (NotPermitted, "FORBIDDEN"),
    (StoreUnavailable, "STORE_UNAVAILABLE"),
    (ArchiveUnavailable, "ARCHIVE_UNAVAILABLE"),
    (Overloaded, "OVERLOADED"),
)


def code_of(error: BaseException | None) -> str | None:
    """Give the code of an error whose message may be shown to the client; None for one to be masked."""
    return next((code for kind, code in CODES if isinstance(error, kind)), None)
