"""What waits to be sent to a client, and whether the client takes any of it."""

import asyncio
import sys

from server.transport.limits import MIN_PROGRESS

if sys.platform != "win32":
    import fcntl
    import termios


def unsent(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not received: those in the process and, on Linux, in the system.

    The system's buffer may hold megabytes, so a slow client empties it for minutes before the process sees progress.
    """
    return transport.get_write_buffer_size() + _in_system(transport)


def still_unsent(transport: asyncio.Transport, before: int) -> int | None:
    """Return how many bytes are unsent if the client has taken MIN_PROGRESS of those `before`; else None."""
    size = unsent(transport)
    return size if 0 < size <= before - MIN_PROGRESS else None


def _in_system(transport: asyncio.Transport) -> int:
    """Return how many bytes the system has yet to send or to have acknowledged; 0 where it does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    socket = transport.get_extra_info("socket")
    try:
        answer = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int.from_bytes(answer, sys.byteorder)
