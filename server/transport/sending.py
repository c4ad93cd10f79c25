"""The unsent data of a connection, and whether the client is receiving it."""

import asyncio
import sys

from server.transport.limits import MIN_PROGRESS

if sys.platform != "win32":
    import fcntl
    import termios


def unsent(transport: asyncio.Transport) -> int:
    """Return the number of bytes that the client has not received, in this process and, on Linux, in the kernel.

    The kernel's buffer may hold megabytes. With a slow client, minutes may pass before the process's buffer shrinks.
    """
    return transport.get_write_buffer_size() + _in_system(transport)


def still_unsent(transport: asyncio.Transport, before: int) -> int | None:
    """Return the number of unsent bytes, or None if nothing is unsent or the client has stalled.

    `before` is the number at the last check. A client has stalled if it has received fewer than MIN_PROGRESS bytes
    since then.
    """
    size = unsent(transport)
    return size if 0 < size <= before - MIN_PROGRESS else None


def _in_system(transport: asyncio.Transport) -> int:
    """Return the number of unsent or unacknowledged bytes in the kernel, or 0 if the kernel does not report it."""
    if not sys.platform.startswith("linux"):
        return 0
    socket = transport.get_extra_info("socket")
    try:
        answer = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int.from_bytes(answer, sys.byteorder)
