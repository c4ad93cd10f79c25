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
ELSEWHERE = "non local key"
"""In the error of a script that touches a key which its node does not hold, because its slot has moved or is moving."""


class SlotMoving(exceptions.ResponseError):
    """A script over several slots of one node did not find all of them there."""


def is_retryable(reply: Any) -> TypeGuard[exceptions.ResponseError]:
    """Return True for an error after which a command is sent again: a redirection, or a temporary refusal.

    A script that failed halfway because a key is on another node may have written something.
    """
    return isinstance(reply, RETRYABLE) or (isinstance(reply, exceptions.ResponseError) and ELSEWHERE in str(reply))


def is_asking(error: Any) -> TypeGuard[exceptions.AskError]:
    """Return True for a redirection of one command, to the node that is importing its slot."""
    return isinstance(error, exceptions.AskError) and not isinstance(error, exceptions.MovedError)


def translate_error(error: Exception) -> Exception:
    """Return StoreUnavailable or StoreFull for an error that means an outage, and any other error unchanged."""
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreFull(error)
    if isinstance(error, (*OUTAGES, *RETRYABLE)) or str(error).startswith(OUTAGE_PREFIXES):
        return unavailable(error)
    return error


def unavailable(error: Exception | str) -> StoreUnavailable:
    """Return StoreUnavailable with a reason that operators understand."""
    if isinstance(error, exceptions.AskError):
        return StoreUnavailable(f"slot {error.slot_id} is at {error.host}:{error.port}")
    return StoreUnavailable(error)
