"""Unsent data of a connection, and whether the client receives it."""

import asyncio
import sys

from server.transport.limits import MIN_PROGRESS

if sys.platform != "win32":
    import fcntl
    import termios


def unsent(transport: asyncio.Transport) -> int:
    """Return the bytes that the client has not received: those in the process and, on Linux, in the system.

    The buffer of the system may contain megabytes. A slow client may take minutes before the process sees progress.
    """
    return transport.get_write_buffer_size() + _in_system(transport)


def still_unsent(transport: asyncio.Transport, before: int) -> int | None:
    """Return the unsent bytes if the client has received MIN_PROGRESS of those `before`; else None."""
    size = unsent(transport)
    return size if 0 < size <= before - MIN_PROGRESS else None


def _in_system(transport: asyncio.Transport) -> int:
    """Return the bytes that are unsent or unacknowledged in the system; 0 where it does not report them."""
    if not sys.platform.startswith("linux"):
        return 0
    socket = transport.get_extra_info("socket")
    try:
        answer = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int.from_bytes(answer, sys.byteorder)
