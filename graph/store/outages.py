"""Outages of the store, told from faults of a request."""

from redis import exceptions

from graph.errors import StoreUnavailable

OUTAGES = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.RedisClusterException, OSError, TimeoutError)
OUTAGE_REPLIES = (
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
)
OUTAGE_PREFIXES = ("MISCONF", "BUSY ", "NOREPLICAS")


def as_graph_error(error: Exception) -> Exception:
    """Turn an error reply that means an outage into StoreUnavailable; leave the others as they are."""
    if isinstance(error, (*OUTAGES, *OUTAGE_REPLIES)) or str(error).startswith(OUTAGE_PREFIXES):
        return StoreUnavailable(error)
    return error
