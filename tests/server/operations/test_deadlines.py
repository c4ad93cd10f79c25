"""Deadlines of operations behave as `asyncio.timeout` does, with one timer for all."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from server.operations.deadlines import Deadlines

SECONDS = 0.01


async def in_time(work: Awaitable[object]) -> object:
    """Await work with a deadline."""
    with Deadlines(SECONDS).start(asyncio.get_running_loop()):
        return await work


async def endless() -> None:
    await asyncio.Event().wait()


async def stubborn() -> str:
    """Ignore the first cancellation."""
    with suppress(asyncio.CancelledError):
        await endless()
    return "done"


async def failing() -> None:
    """Fail because of the cancellation."""
    try:
        await endless()
    finally:
        raise KeyError("failed")


async def cancelled_too() -> None:
    """Cancel the task from elsewhere at the same time as the deadline does."""
    try:
        await endless()
    finally:
        current().cancel()


async def at_once() -> str:
    return "done"


def current() -> "asyncio.Task[object]":
    """Return the running task."""
    task = asyncio.current_task()
    assert task
    return task


async def outcome(work: Callable[[], Awaitable[object]], *, cancelled: bool) -> tuple[object, int]:
    """Return how work with a deadline ends, and how many cancellations are still pending for its task."""
    found: list[tuple[object, int]] = []
    await asyncio.wait([asyncio.ensure_future(run(work, found, cancelled=cancelled))])
    return found[0]


async def run(work: Callable[[], Awaitable[object]], found: list[tuple[object, int]], *, cancelled: bool) -> None:
    """Add to `found` how work with a deadline ends, and how many cancellations of the task are still pending."""
    if cancelled:
        current().cancel()
        with suppress(asyncio.CancelledError):
            await endless()
    try:
        found.append((await in_time(work()), current().cancelling()))
    except BaseException as error:
        found.append(((type(error), type(error.__cause__)), current().cancelling()))


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize(
    ("work", "end", "pending"),
    [
        (at_once, "done", 0),
        (endless, (TimeoutError, asyncio.CancelledError), 0),
        (stubborn, "done", 0),
        (failing, (KeyError, type(None)), 0),
        (cancelled_too, (asyncio.CancelledError, type(None)), 1),
    ],
)
async def test_a_deadline_is_a_timeout(
    work: Callable[[], Awaitable[object]], end: object, pending: int, cancelled: bool
) -> None:
    """This includes tasks that are cancelled from elsewhere, before or meanwhile.

    `asyncio.timeout` has the same outcomes in Python 3.11.7, but not in all versions.
    """
    assert await outcome(work, cancelled=cancelled) == (end, pending + cancelled)


async def test_cancelling_the_task_is_no_timeout() -> None:
    task = asyncio.ensure_future(in_time(endless()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_each_operation_has_its_own_deadline() -> None:
    """Operations that end in time are forgotten. The timer ends with the last one; a later one starts it again."""
    deadlines, loop = Deadlines(SECONDS), asyncio.get_running_loop()
    ended: list[int] = []

    async def operation(number: int, work: Awaitable[object]) -> bool:
        deadline = deadlines.start(loop)
        try:
            with deadline:
                await work
        except TimeoutError:
            ended.append(number)
        return deadline.expired

    for _ in range(2):
        works = [endless(), at_once(), endless(), asyncio.sleep(0), endless()]
        tasks = [asyncio.ensure_future(operation(number, work)) for number, work in enumerate(works)]
        await asyncio.sleep(SECONDS / 2)
        tasks.append(asyncio.ensure_future(operation(5, endless())))
        assert await asyncio.gather(*tasks) == [True, False, True, False, True, True]
        assert not deadlines.open
    assert ended == [0, 2, 4, 5] * 2
    assert deadlines._watched_in is None


def test_each_event_loop_has_its_timer() -> None:
    """An application may be served again in another loop."""
    deadlines = Deadlines(SECONDS)

    async def operation() -> None:
        with deadlines.start(asyncio.get_running_loop()):
            await endless()

    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(operation())
