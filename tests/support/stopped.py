"""Processes that are stopped for a while: their connections stay open, but they do not answer."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.cluster import until


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes during the block. When the block begins, none of their threads is running.

    A signal stops the threads of a process one after another: on a busy machine, one of them could still answer.
    Processes that have ended are left out.
    """
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: all(has_stopped(pid) for pid in pids))
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def has_stopped(pid: int) -> bool:
    """Return whether no thread of a process runs."""
    with suppress(FileNotFoundError):
        return all(state_of(task) in "TtZX" for task in list(Path(f"/proc/{pid}/task").iterdir()))
    return True


def state_of(task: Path) -> str:
    """Return the state of a thread as a letter, X if it has ended; see proc(5)."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
