"""Single look-ups of the dataloader: batching, caching, failures and independent callers."""

import asyncio
from collections.abc import Sequence

import pytest

from executor.futures import LookUpCancelled
from executor.loader import DataLoader


class Doubler:
    """A batch function that doubles numbers, records its requests, and can be blocked or made to fail."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: BaseException | None = None

    async def __call__(self, keys: list[int]) -> Sequence[int | Exception]:
        self.requests.append(keys)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [key * 2 if key >= 0 else ValueError(f"{key} is negative") for key in keys]


async def test_keys_of_one_iteration_share_a_call() -> None:
    """Keys requested in one event-loop iteration are sent in one call, each key once."""
    double = Doubler()
    loader = DataLoader(double)
    assert list(await asyncio.gather(loader.load(1), loader.load(2), loader.load(1))) == [2, 4, 2]
    assert double.requests == [[1, 2]]


async def test_values_are_cached() -> None:
    double = Doubler()
    loader = DataLoader(double)
    await loader.load(1)
    assert await loader.load(1) == 2
    assert await loader.load_many([1, 2]) == [2, 4]
    assert double.requests == [[1], [2]]


async def test_load_now_starts_at_once_and_shares_the_cache() -> None:
    """A key that is cached or being looked up is not requested again, by whichever method."""
    double = Doubler()
    loader = DataLoader(double)
    first, again = loader.load_now(1), loader.load_now(1)
    assert (await first, await again, await loader.load(1)) == (2, 2, 2)
    assert await loader.load_many([1, 2]) == [2, 4]
    assert await loader.load_now(2) == 4
    assert double.requests == [[1], [2]]


async def test_load_now_fails_with_the_exception_of_its_key_and_is_repeated() -> None:
    double = Doubler()
    loader = DataLoader(double)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            await loader.load_now(-1)
    assert double.requests == [[-1], [-1]]


async def test_an_exception_fails_its_key_only() -> None:
    loader = DataLoader(Doubler())
    good, bad = await asyncio.gather(loader.load(1), loader.load(-1), return_exceptions=True)
    assert good == 2
    assert isinstance(bad, ValueError)


async def test_failures_are_not_cached() -> None:
    """A later load requests the key again, whether the key or the whole call failed."""
    double = Doubler()
    loader = DataLoader(double)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            await loader.load(-1)
    double.failure = OSError("down")
    with pytest.raises(OSError, match="down"):
        await loader.load(1)
    double.failure = None
    assert await loader.load(1) == 2
    assert double.requests == [[-1], [-1], [1], [1]]


async def test_a_cancelled_caller_does_not_affect_others() -> None:
    """Cancelling one caller cancels neither other callers nor the call."""
    double = Doubler()
    double.gate.clear()
    loader = DataLoader(double)

    async def wait() -> int:
        return await loader.load(1)

    first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0)
    double.gate.set()
    assert await second == 2
    assert first.cancelled()
    assert double.requests == [[1]]


async def test_a_cancelled_caller_does_not_affect_later_loads() -> None:
    """If the only caller of a key is cancelled, the next caller gets the value of the same look-up."""
    double = Doubler()
    double.gate.clear()
    loader = DataLoader(double)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loader.load(1), 0.01)
    double.gate.set()
    assert await loader.load(1) == 2
    assert double.requests == [[1]]


async def test_cancelling_a_list_does_not_affect_others() -> None:
    """Cancelling a list look-up does not cancel another caller of one of its keys."""
    double = Doubler()
    double.gate.clear()
    loader = DataLoader(double)
    several, other = loader.load_many([1, 2]), loader.load(2)
    await asyncio.sleep(0.01)
    several.cancel()
    double.gate.set()
    assert await other == 4


async def test_a_cancelled_call_fails_its_callers_and_is_not_cached() -> None:
    """If the call itself is cancelled, its callers do not hang, and a later load requests the key again."""
    double = Doubler()
    double.failure = asyncio.CancelledError()
    loader = DataLoader(double)
    with pytest.raises(LookUpCancelled):
        await asyncio.wait_for(loader.load(1), 30)
    double.failure = None
    assert await loader.load(1) == 2


async def test_a_failure_without_callers_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """If all callers have gone, asyncio does not log an exception that was never retrieved."""
    double = Doubler()
    double.gate.clear()
    double.failure = OSError("down")
    loader = DataLoader(double)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loader.load(1), 0.01)
    double.gate.set()
    await asyncio.sleep(0.01)
    del loader
    assert not caplog.records


async def test_primed_keys_are_not_requested() -> None:
    """The first primed value counts."""
    double = Doubler()
    loader = DataLoader(double)
    loader.prime(1, 10).prime(1, 11)
    assert await loader.load_many([1, 2]) == [10, 4]
    assert double.requests == [[2]]


async def test_a_key_primed_while_it_is_queued_gets_the_primed_value() -> None:
    double = Doubler()
    loader = DataLoader(double)
    value = loader.load(1)
    loader.prime(1, 10)
    assert await value == 10
    assert double.requests == []


async def test_a_key_queued_twice_around_a_clear_is_answered_twice() -> None:
    loader = DataLoader(Doubler())
    before = loader.load(1)
    loader.clear(1)
    after = loader.load(1)
    assert list(await asyncio.gather(before, after)) == [2, 2]


async def test_a_wrong_number_of_values_fails_all_callers() -> None:
    """Values are never assigned to the wrong keys."""

    async def forgetful(keys: list[int]) -> list[int]:
        return keys[1:]

    loader = DataLoader(forgetful)
    answers = await asyncio.gather(loader.load(1), loader.load(2), loader.load_many([3, 4]), return_exceptions=True)
    assert [type(answer) for answer in answers] == [TypeError, TypeError, TypeError]
