"""Runs long work in slices, so that the event loop can run other tasks in between."""

import asyncio
from collections import deque
from collections.abc import Generator, Iterator
from contextvars import Context
from typing import Final, TypeAlias, TypeVar

V = TypeVar("V")

Work: TypeAlias = Iterator[None]
"""An iterator that does one slice of the work each time it is advanced."""

NOTHING: Final[Work] = iter(())
DONE: Final = object()


def finish(work: Work) -> None:
    """Run the rest of the work at once."""
    deque(work, maxlen=0)


def result(work: Generator[None, None, V]) -> V:
    """Run the work to completion at once, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


async def in_slices(work: Generator[None, None, V]) -> V:
    """Run the work, one slice in each iteration of the event loop, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        await asyncio.sleep(0)


class Slices:
    """Runs pieces of work in turn: their first slices at once, then one slice in each event-loop iteration."""

    def __init__(self) -> None:
        self._waiting: deque[Work] = deque()

    def start(self, work: Work) -> None:
        """Start a piece of work. Other code may also advance it, as `finish` does."""
        if next(work, DONE) is DONE:
            return
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._schedule()

    def _schedule(self) -> None:
        asyncio.get_running_loop().call_soon(self._run, context=Context())  # the work belongs to no operation

    def _run(self) -> None:
        work = self._waiting[0]
        is_done = True
        try:
            is_done = next(work, DONE) is DONE
        finally:
            self._waiting.popleft()
            if not is_done:
                self._waiting.append(work)
            if self._waiting:
                self._schedule()
