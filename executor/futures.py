"""Helpers for asyncio futures: share them among callers, mark exceptions as retrieved, cancel tasks."""

import asyncio
from collections.abc import Callable, Collection, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")
W = TypeVar("W")


class LookUpCancelled(Exception):
    """A look-up was cancelled before it returned values. A later call looks the keys up again."""

    def __init__(self) -> None:
        super().__init__("The look-up was cancelled. Repeat it.")


class Shared(Generic[V]):
    """An awaitable of `convert(result)` for a future that several callers share. It can be awaited several times.

    Cancelling a caller does not cancel the future. If the future is cancelled, callers get LookUpCancelled. A `Shared`
    costs less than half as much as a derived future (`derive`), because a result that arrives before it is awaited
    needs no callback. This is common in the executor: a layer awaits several look-ups that arrive together.
    """

    __slots__ = ("_convert", "_future")

    def __init__(self, future: "asyncio.Future[T]", convert: Callable[[T], V]) -> None:
        self._future = future
        self._convert: Callable[[Any], V] = convert

    def __await__(self) -> Generator[Any, None, V]:
        """Wait for the future and return the converted result."""
        future = self._future
        if not future.done():
            waiter: asyncio.Future[None] = future.get_loop().create_future()
            future.add_done_callback(partial(_wake, waiter))
            yield from waiter
        try:
            result = future.result()
        except asyncio.CancelledError:
            raise LookUpCancelled from None
        return self._convert(result)

    def then(self, convert: Callable[[V], W]) -> "Shared[W]":
        """Return an awaitable of `convert(value)`, where `value` is the result of awaiting this object."""
        before = self._convert
        return Shared(self._future, lambda result: convert(before(result)))

    def cancel(self) -> None:
        """Ignore the result, even if it is an error. The future continues for its other callers."""
        self._future.add_done_callback(retrieve_exception)


def _wake(waiter: "asyncio.Future[None]", done: "asyncio.Future[Any]") -> None:
    if waiter.done():
        retrieve_exception(done)  # the caller was cancelled
    else:
        waiter.set_result(None)


def derive(future: "asyncio.Future[T]", convert: Callable[[T], V]) -> "asyncio.Future[V]":
    """Return a new future for `convert(result)`, where `result` is the result of `future`.

    Cancelling the new future does not cancel the original. If the original is cancelled, the new future fails with
    LookUpCancelled.
    """
    derived: asyncio.Future[V] = future.get_loop().create_future()

    def fail(error: Exception) -> None:
        derived.set_exception(error)
        retrieve_exception(derived)

    def copy(done: "asyncio.Future[T]") -> None:
        if derived.done():
            retrieve_exception(done)
            return
        try:
            derived.set_result(convert(done.result()))
        except asyncio.CancelledError:
            fail(LookUpCancelled())
        except Exception as error:
            fail(error)

    future.add_done_callback(copy)
    return derived


def retrieve_exception(done: "asyncio.Future[Any]") -> None:
    """Mark a future's exception as retrieved, so that asyncio does not log it."""
    if not done.cancelled():
        done.exception()


async def cancel_all(tasks: Collection["asyncio.Future[Any]"]) -> None:
    """Cancel tasks and wait until all of them have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
