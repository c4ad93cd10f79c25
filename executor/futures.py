"""Helpers for asyncio futures: derive independent futures, mark exceptions as retrieved, cancel tasks."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, TypeVar

T = TypeVar("T")
V = TypeVar("V")


class LookUpCancelled(Exception):
    """A look-up was cancelled before it returned values. A later call looks the keys up again."""

    def __init__(self) -> None:
        super().__init__("The look-up was cancelled. Repeat it.")


def derive(future: "asyncio.Future[T]", convert: Callable[[T], V]) -> "asyncio.Future[V]":
    """Return a new future for `convert(result)`.

    Cancelling the new future does not cancel the original. If the original is cancelled, the new future fails with
    LookUpCancelled.
    """
    derived: asyncio.Future[V] = future.get_loop().create_future()

    def copy(done: "asyncio.Future[T]") -> None:
        if derived.done():
            retrieve_exception(done)
            return
        try:
            derived.set_result(convert(done.result()))
        except asyncio.CancelledError:
            derived.set_exception(LookUpCancelled())
        except Exception as error:
            derived.set_exception(error)

    future.add_done_callback(copy)
    derived.add_done_callback(retrieve_exception)
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
