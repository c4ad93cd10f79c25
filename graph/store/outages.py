"""Which errors mean that the store is unavailable."""

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


def translate_error(error: Exception) -> Exception:
    """Return StoreUnavailable for an error that means an outage, and any other error unchanged."""
    if isinstance(error, (*OUTAGES, *OUTAGE_REPLIES)) or str(error).startswith(OUTAGE_PREFIXES):
        return StoreUnavailable(error)
    return error
