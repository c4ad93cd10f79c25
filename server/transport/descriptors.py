"""File descriptors: the process takes as many as it may, and connections leave a reserve for everything else."""

import sys

if sys.platform != "win32":
    import resource

UNLIMITED = 65_536  # where the system names no limit
MIN_RESERVE = 64
MAX_RESERVE = 1000


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard limit, as far as the system lets it."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, UNLIMITED) if hard == resource.RLIM_INFINITY else hard
    if soft not in (wanted, resource.RLIM_INFINITY):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return  # macOS has a lower limit that it does not tell; what there is has to do


def ceiling() -> int:
    """Return the lowest descriptor that no connection may have.

    The system gives out the lowest descriptor that is free, so the number of a new one tells how many are in use.
    A tenth is kept for the store, the archive and files, within MIN_RESERVE and MAX_RESERVE.
    """
    if sys.platform == "win32":
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = UNLIMITED if soft == resource.RLIM_INFINITY else soft
    reserve = min(max(limit // 10, MIN_RESERVE), MAX_RESERVE, limit // 2)
    return limit - reserve
