"""Cancellation of tasks."""

import asyncio
import gc

import pytest

from graph.tasks import end, to_the_end


async def test_work_ends_although_its_caller_is_cancelled_repeatedly() -> None:
    """The caller is cancelled after the work."""
    done = []

    async def work() -> None:
        await asyncio.sleep(0.3)  # longer than `end` waits between two cancellations
        done.append(True)

    async def clean_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await to_the_end(work())

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    await end([task])

    assert done == [True]
    assert task.cancelled()


async def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await to_the_end(work())


async def test_the_cancellation_takes_effect_although_the_work_fails() -> None:
    """The error is not logged when the task is collected."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def work() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("broken")

    task = asyncio.create_task(to_the_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    del task
    gc.collect()
    await asyncio.sleep(0)
    assert not reported
