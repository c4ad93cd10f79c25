"""Locks between processes, on files (flock). A lock ends with the process that holds it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

    EXCLUSIVE, SHARED = fcntl.LOCK_EX, fcntl.LOCK_SH


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file during the block. Wait until no other process holds it."""
    with opened(path) as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a lock file. Closing the file releases the lock, unless a child process inherited the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def lock(descriptor: int, kind: int) -> bool:
    """Try to take a lock, EXCLUSIVE or SHARED, without waiting. Return True on success."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
