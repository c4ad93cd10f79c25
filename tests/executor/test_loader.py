"""The loader: one call for what is asked for together, and waiters that cannot hurt one another."""

import asyncio
from collections.abc import Sequence

import pytest

from executor.loader import BatchCancelledError, Loader


class Doubler:
    """A look-up that doubles numbers, remembers what it was asked, and can be held or made to fail."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: BaseException | None = None

    async def __call__(self, keys: list[int]) -> Sequence[int | Exception]:
        self.asked.append(keys)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [key * 2 if key >= 0 else ValueError(f"{key} is negative") for key in keys]


async def test_shares_one_call() -> None:
    """What is asked for in one go of the loop is one call, each key once."""
    double = Doubler()
    loader = Loader(double)
    assert await asyncio.gather(loader.load(1), loader.load(2), loader.load(1)) == [2, 4, 2]
    assert double.asked == [[1, 2]]


async def test_keeps_what_it_found() -> None:
    """A key that was found is not asked for again."""
    double = Doubler()
    loader = Loader(double)
    await loader.load(1)
    assert await loader.load_many([1, 2]) == [2, 4]
    assert double.asked == [[1], [2]]


async def test_raises_an_exception_for_its_key_alone() -> None:
    """A value that is an exception fails its key, not the others."""
    loader = Loader(Doubler())
    good, bad = await asyncio.gather(loader.load(1), loader.load(-1), return_exceptions=True)
    assert good == 2
    assert isinstance(bad, ValueError)


async def test_asks_again_for_what_failed() -> None:
    """A failed key is not kept: neither one that failed alone nor a whole failed call."""
    double = Doubler()
    loader = Loader(double)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            await loader.load(-1)
    double.failure = OSError("down")
    with pytest.raises(OSError, match="down"):
        await loader.load(1)
    double.failure = None
    assert await loader.load(1) == 2
    assert double.asked == [[-1], [-1], [1], [1]]


async def test_a_cancelled_waiter_leaves_the_others_alone() -> None:
    """Cancelling one waiter neither cancels the others nor the call."""
    double = Doubler()
    double.gate.clear()
    loader = Loader(double)

    async def wait() -> int:
        return await loader.load(1)

    first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0)
    double.gate.set()
    assert await second == 2
    assert first.cancelled()
    assert double.asked == [[1]]


async def test_a_cancelled_waiter_does_not_poison_later_loads() -> None:
    """A key whose only waiter was cancelled is there for the next one."""
    double = Doubler()
    double.gate.clear()
    loader = Loader(double)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loader.load(1), 0.01)
    double.gate.set()
    assert await loader.load(1) == 2
    assert double.asked == [[1]]


async def test_cancelling_many_loads_leaves_the_others_alone() -> None:
    """A group of loads cancelled together does not cancel another waiter of one of its keys."""
    double = Doubler()
    double.gate.clear()
    loader = Loader(double)
    group, other = loader.load_many([1, 2]), loader.load(2)
    await asyncio.sleep(0.01)
    group.cancel()
    double.gate.set()
    assert await other == 4


async def test_a_cancelled_call_fails_its_waiters_and_is_forgotten() -> None:
    """When the call itself is cancelled its waiters do not hang, and a later load asks again."""
    double = Doubler()
    double.failure = asyncio.CancelledError()
    loader = Loader(double)
    with pytest.raises(BatchCancelledError):
        await asyncio.wait_for(loader.load(1), 1)
    double.failure = None
    assert await loader.load(1) == 2


async def test_an_unwatched_failure_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A call that fails after its waiters have gone is not reported as an exception nobody retrieved."""
    double = Doubler()
    double.gate.clear()
    double.failure = OSError("down")
    loader = Loader(double)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loader.load(1), 0.01)
    double.gate.set()
    await asyncio.sleep(0.01)
    del loader
    assert not caplog.records


async def test_what_is_primed_is_not_asked_for() -> None:
    """A primed key answers without a call, as long as nothing else was there first."""
    double = Doubler()
    loader = Loader(double)
    loader.prime(1, 10).prime(1, 11)
    assert await loader.load_many([1, 2]) == [10, 4]
    assert double.asked == [[2]]


async def test_a_call_that_answers_too_little_fails() -> None:
    """An answer with fewer values than keys fails every waiter instead of shifting values."""

    async def forgetful(keys: list[int]) -> list[int]:
        return keys[1:]

    loader = Loader(forgetful)
    answers = await asyncio.gather(loader.load(1), loader.load(2), return_exceptions=True)
    assert [type(answer) for answer in answers] == [TypeError, TypeError]
