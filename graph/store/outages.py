"""The errors that mean that the store is unavailable, and those after which a cluster client retries a command."""

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
"""Part of the error of a script that touches a key on another node, because the key's slot has moved or is moving."""


class SlotMoving(exceptions.ResponseError):
    """A script that reads several slots of one node failed, because one of the slots has moved or is moving."""


def is_retryable(reply: Any) -> TypeGuard[exceptions.ResponseError]:
    """Return True for an error after which a command is sent again: a redirection or a temporary refusal.

    Such an error may also come from a script that failed halfway because a key is on another node. Whatever the
    script wrote before that remains.
    """
    return isinstance(reply, RETRYABLE) or (isinstance(reply, exceptions.ResponseError) and ELSEWHERE in str(reply))


def is_asking(error: Any) -> TypeGuard[exceptions.AskError]:
    """Return True for an ASK redirection, which sends one command to the node that is importing its slot."""
    return isinstance(error, exceptions.AskError) and not isinstance(error, exceptions.MovedError)


def translate_error(error: Exception) -> Exception:
    """Return StoreUnavailable or StoreFull for an error that means an outage, and any other error unchanged."""
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreFull(error)
    if isinstance(error, (*OUTAGES, *RETRYABLE)) or str(error).startswith(OUTAGE_PREFIXES):
        return unavailable(error)
    return error


def unavailable(error: Exception | str) -> StoreUnavailable:
    """Return StoreUnavailable with a reason for operators."""
    if isinstance(error, exceptions.AskError):
        return StoreUnavailable(f"slot {error.slot_id} is at {error.host}:{error.port}")
    return StoreUnavailable(error)
