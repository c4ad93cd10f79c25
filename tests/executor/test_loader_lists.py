"""List look-ups of the dataloader: requests, caching, failures and independent callers."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import aiodataloader
import pytest

from executor.futures import LookUpCancelled
from executor.loader import DataLoader


class ManualStore:
    """A store whose look-ups a test finishes by hand. `requests` has the keys of each look-up."""

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []
        self.look_ups: list[asyncio.Future[list[Any]]] = []

    def get_many(self, keys: Sequence[Any]) -> Awaitable[list[Any]]:
        self.requests.append(list(keys))
        self.look_ups.append(asyncio.get_running_loop().create_future())
        return self.look_ups[-1]

    def finish(self, index: int = -1) -> None:
        """Finish a look-up: the value of each key is ten times the key."""
        self.look_ups[index].set_result([10 * key for key in self.requests[index]])


@pytest.fixture
def store() -> ManualStore:
    return ManualStore()


@pytest.fixture
async def loader(store: ManualStore) -> DataLoader[int, int]:
    return DataLoader(store.get_many)


async def test_the_loader_is_an_aiodataloader(loader: DataLoader[int, int]) -> None:
    assert isinstance(loader, aiodataloader.DataLoader)


async def test_a_list_is_one_look_up(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """The look-up starts immediately, requests each key once, and returns values in the order of the list."""
    values = loader.load_many([2, 1, 2])
    assert store.requests == [[2, 1]]
    store.finish()
    assert await values == [20, 10, 20]


async def test_a_list_costs_the_same_number_of_futures_whatever_its_length(
    store: ManualStore, loader: DataLoader[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller has one future; the store's future is the only other one."""
    created = 0
    loop = asyncio.get_running_loop()
    create = loop.create_future

    def counted() -> "asyncio.Future[Any]":
        nonlocal created
        created += 1
        return create()

    with monkeypatch.context() as patch:
        patch.setattr(loop, "create_future", counted)
        values = loader.load_many(range(50))
    store.finish()
    assert len(await values) == 50
    assert created == 2


async def test_cached_and_primed_keys_are_not_requested(store: ManualStore, loader: DataLoader[int, int]) -> None:
    loader.prime(3, 30)
    loader.prime_many({4: 40})
    first = loader.load_many([1, 3, 4])
    store.finish()
    assert await first == [10, 30, 40]
    assert await loader.load_many([3, 1]) == [30, 10]
    assert await loader.load(1) == 10
    assert store.requests == [[1]]


async def test_pending_keys_are_not_requested_again(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """A second list requests only the keys that the first list does not, and waits for both look-ups."""
    first, second = loader.load_many([1, 2]), loader.load_many([2, 3])
    assert store.requests == [[1, 2], [3]]
    store.finish(0)
    store.finish(1)
    assert list(await asyncio.gather(first, second)) == [[10, 20], [20, 30]]


async def test_single_keys_and_lists_share_look_ups(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """A single key uses a pending list look-up, and a list uses a queued single key."""
    listed, single = loader.load_many([1]), loader.load(1)
    queued, later = loader.load(2), loader.load_many([2, 3])
    await asyncio.sleep(0)
    assert store.requests == [[1], [2, 3]]
    store.finish(0)
    store.finish(1)
    assert list(await asyncio.gather(listed, single, queued, later)) == [[10], 10, 20, [20, 30]]


async def test_callers_wait_for_their_own_keys_only(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """A slow or failed look-up affects only callers of its keys."""
    slow, fast = loader.load_many([1]), loader.load_many([2])
    store.finish(1)
    assert await fast == [20]
    store.look_ups[0].set_exception(ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        await slow


async def test_a_single_key_does_not_wait_for_others_of_its_batch(
    store: ManualStore, loader: DataLoader[int, int]
) -> None:
    """Two keys are queued together, and a list requests one of them before the queue is sent."""
    slow, fast = loader.load(1), loader.load(2)
    loader.load_many([1])
    await asyncio.sleep(0)
    assert store.requests == [[1], [2]]
    store.finish(1)
    assert await fast == 20
    store.look_ups[0].set_exception(ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        await slow


async def test_a_failed_look_up_is_not_cached(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """The next caller requests the keys again; callers that were waiting get the error."""
    first, both = loader.load_many([1]), loader.load_many([1, 2])
    store.look_ups[0].set_exception(ConnectionError("gone"))
    again = loader.load_many([1])
    assert store.requests == [[1], [2], [1]]
    store.finish(1)
    store.finish(2)
    assert await again == [10]
    for waiting in (first, both):
        with pytest.raises(ConnectionError, match="gone"):
            await waiting


async def test_an_exception_fails_its_key_only(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """In a list the exception takes the place of the value; a single key raises it. It is not cached."""
    values, single = loader.load_many([1, 2]), loader.load(1)
    wrong = ValueError("wrong")
    store.look_ups[0].set_result([wrong, 20])
    assert await values == [wrong, 20]
    with pytest.raises(ValueError, match="wrong"):
        await single
    again = loader.load_many([1, 2])
    store.finish()
    assert await again == [10, 20]
    assert store.requests == [[1, 2], [1]]


async def test_a_cancelled_caller_leaves_the_look_up_running(store: ManualStore, loader: DataLoader[int, int]) -> None:
    cancelled, other, both = loader.load_many([1]), loader.load_many([1]), loader.load_many([1, 2])
    cancelled.cancel()
    both.cancel()
    await asyncio.sleep(0)
    store.finish(0)
    assert await other == [10]
    assert not store.look_ups[1].cancelled()


async def test_a_cancelled_look_up_fails_its_callers(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """The callers are not cancelled themselves."""
    listed, single = loader.load_many([1]), loader.load(1)
    joined = loader.load_many([1, 2])
    store.look_ups[0].cancel()
    for waiting in (listed, single, joined):
        with pytest.raises(LookUpCancelled):
            await waiting


async def test_a_batch_function_that_raises_fails_its_callers() -> None:
    """Calling a loader never raises: the error arrives with the future."""

    def broken(keys: Sequence[int]) -> Awaitable[list[int]]:
        raise ConnectionError("gone")

    loader = DataLoader(broken)
    listed, single = loader.load_many([1]), loader.load(2)
    for waiting in (listed, single):
        with pytest.raises(ConnectionError, match="gone"):
            await waiting


async def test_cleared_keys_are_requested_again(store: ManualStore, loader: DataLoader[int, int]) -> None:
    """Cached keys and pending keys are both requested again."""
    cached = loader.load_many([1, 2])
    store.finish()
    await cached
    loader.clear(1)
    pending = loader.load_many([1, 2])
    loader.clear(1)
    again = loader.load_many([1, 2])
    assert store.requests == [[1, 2], [1], [1]]
    store.finish(1)
    store.finish(2)
    assert await pending == await again == [10, 20]
    loader.clear_all()
    loader.load_many([1, 2])
    assert store.requests[3:] == [[1, 2]]


async def test_keys_are_compared_by_their_cache_keys(store: ManualStore) -> None:
    """The batch function receives keys, not cache keys."""
    loader: DataLoader[int, int] = DataLoader(store.get_many, get_cache_key=lambda key: key % 10)
    loader.prime_many({3: 30})
    values, single = loader.load_many([1, 2, 13]), loader.load(11)
    store.finish()
    assert await values == [10, 20, 30]
    assert await single == 10
    assert store.requests == [[1, 2]]
