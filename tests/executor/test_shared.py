"""Awaitables of a shared future: callers do not affect each other, and only those that wait get failures."""

import asyncio
import gc
from collections.abc import Sequence

import pytest

from executor.futures import LookUpCancelled, Shared
from executor.loader import DataLoader


def pending() -> "asyncio.Future[int]":
    return asyncio.get_running_loop().create_future()


async def test_values_are_converted_for_each_caller() -> None:
    """They can be awaited before and after the result arrives, and more than once."""
    future = pending()
    text, double = Shared(future, str), Shared(future, lambda value: 2 * value).then(lambda value: value + 1)
    early = asyncio.ensure_future(text)
    await asyncio.sleep(0)
    future.set_result(7)

    assert (await early, await text, await double, await double) == ("7", "7", 15, 15)


async def test_a_cancelled_caller_leaves_the_future_to_others() -> None:
    future = pending()
    first, second = (asyncio.ensure_future(Shared(future, str)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    assert first.cancelled()
    assert not future.done()
    future.set_result(1)

    assert await second == "1"


async def test_a_cancelled_future_fails_its_callers() -> None:
    """The callers are not cancelled themselves."""
    future = pending()
    waiting = asyncio.ensure_future(Shared(future, str))
    await asyncio.sleep(0)
    future.cancel()

    with pytest.raises(LookUpCancelled):
        await waiting
    with pytest.raises(LookUpCancelled):
        await Shared(future, str)


async def test_failures_reach_callers_and_conversions_may_fail() -> None:
    failed, found = pending(), pending()
    failed.set_exception(KeyError("look-up"))
    found.set_result(0)

    with pytest.raises(KeyError, match="look-up"):
        await Shared(failed, str)
    with pytest.raises(ZeroDivisionError):
        await Shared(found, lambda value: 1 // value)


async def test_ignored_failures_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A result may be ignored before and after the caller waits for it."""
    unused, used = pending(), pending()
    Shared(unused, str).cancel()
    waiting = asyncio.ensure_future(Shared(used, str))
    await asyncio.sleep(0)
    waiting.cancel()
    for future in (unused, used):
        future.set_exception(KeyError("late"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del unused, used, future, waiting
    gc.collect()

    assert not caplog.records


async def test_fetching_shares_look_ups_with_loading() -> None:
    requests: list[list[int]] = []

    async def tens(keys: Sequence[int]) -> list[int]:
        requests.append(list(keys))
        return [10 * key for key in keys]

    loader = DataLoader(tens)
    several, loaded, one = loader.fetch_many([1, 2, 1]), loader.load_many([2, 3]), loader.fetch(3)

    assert (await several, await loaded, await one) == ([10, 20, 10], [20, 30], 30)
    assert await loader.fetch_many([3, 1]) == [30, 10]
    assert await loader.fetch(2) == 20
    assert requests == [[1, 2], [3]]
