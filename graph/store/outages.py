"""Which errors mean that the store is unavailable, and which commands are sent again on a cluster."""

from typing import Any, TypeGuard

from redis import exceptions

from graph.errors import StoreFull, StoreUnavailable

OUTAGES = (exceptions.ConnectionError, exceptions.TimeoutError, OSError, TimeoutError)
IMMEDIATE_REDIRECTIONS = 4
RETRYABLE = (
    exceptions.AskError,
    exceptions.MovedError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
)
OUTAGE_PREFIXES = ("MISCONF", "BUSY ", "NOREPLICAS")


def is_asking(error: Any) -> TypeGuard[exceptions.AskError]:
    """Return True for a redirection of one command, to the node that is importing its slot."""
    return isinstance(error, exceptions.AskError) and not isinstance(error, exceptions.MovedError)


def translate_error(error: Exception) -> Exception:
    """Return StoreUnavailable or StoreFull for an error that means an outage, and any other error unchanged."""
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreFull(error)
    if isinstance(error, (*OUTAGES, *RETRYABLE)) or str(error).startswith(OUTAGE_PREFIXES):
        return StoreUnavailable(error)
    return error
