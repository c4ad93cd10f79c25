"""File descriptors: the process's limit, a reserve that connections may not use, and copies of the listening socket."""

import socket
import sys

if sys.platform != "win32":
    import resource

UNLIMITED = 65_536  # used where the system has no limit
MIN_RESERVE = 64
MAX_RESERVE = 1000
ACCEPTED_AT_ONCE = 16
"""The number of connections that are accepted in one iteration of the event loop."""


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard limit, if the system allows it."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, UNLIMITED) if hard == resource.RLIM_INFINITY else hard
    if soft not in (wanted, resource.RLIM_INFINITY):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return  # macOS has a lower, undocumented limit; keep the soft limit


def ceiling() -> int:
    """Return the lowest descriptor that connections may not use.

    The system assigns the lowest free descriptor, so the number of a new descriptor shows how many are in use. A tenth
    of the limit is reserved for the store, the archive and files: at least MIN_RESERVE, and at most MAX_RESERVE or half
    the limit.
    """
    if sys.platform == "win32":
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = UNLIMITED if soft == resource.RLIM_INFINITY else soft
    reserve = min(max(limit // 10, MIN_RESERVE), MAX_RESERVE, limit // 2)
    return limit - reserve


def listeners(listening: socket.socket) -> list[socket.socket]:
    """Return a listening socket and duplicates of it, ACCEPTED_AT_ONCE in total.

    uvloop accepts one connection per listening socket in each iteration of the event loop. With a single socket, the
    clients of a busy process would wait for many iterations.
    """
    return [listening, *(listening.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]
