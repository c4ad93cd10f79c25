"""The loader for whole lists: what it asks for, what it keeps, and that callers do not hurt one another."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from resolvers.bulk import BulkLoader, LookUpCancelled


class Shelf:
    """Look-ups that end when a test wants them to. `asked` has the keys of each."""

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []
        self.look_ups: list[asyncio.Future[list[Any]]] = []

    def get_many(self, keys: Sequence[Any]) -> Awaitable[list[Any]]:
        self.asked.append(list(keys))
        self.look_ups.append(asyncio.get_running_loop().create_future())
        return self.look_ups[-1]

    def bring(self, place: int = -1) -> None:
        """End a look-up: each key's value is its tenfold."""
        self.look_ups[place].set_result([10 * key for key in self.asked[place]])


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


async def test_a_list_is_one_look_up(shelf: Shelf) -> None:
    """It begins at once, asks for each key once, and answers in the order of the list."""
    values = BulkLoader(shelf.get_many).load_many([2, 1, 2])
    assert shelf.asked == [[2, 1]]
    shelf.bring()
    assert await values == [20, 10, 20]


async def test_what_is_known_is_not_asked_for_again(shelf: Shelf) -> None:
    """Neither what was found, nor what came in another way."""
    loader = BulkLoader(shelf.get_many)
    loader.prime({3: 30})
    first = loader.load_many([1, 3])
    shelf.bring()
    assert await first == [10, 30]
    assert await loader.load_many([3, 1]) == [30, 10]
    assert await loader.load(1) == 10
    assert shelf.asked == [[1]]


async def test_what_is_under_way_is_not_asked_for_again(shelf: Shelf) -> None:
    """A second list waits for the first one's look-up, and asks for the rest only."""
    loader = BulkLoader(shelf.get_many)
    first, second = asyncio.ensure_future(loader.load_many([1, 2])), asyncio.ensure_future(loader.load_many([2, 3]))
    assert shelf.asked == [[1, 2], [3]]
    shelf.bring(0)
    shelf.bring(1)
    assert await asyncio.gather(first, second) == [[10, 20], [20, 30]]


async def test_nobody_waits_for_keys_of_others(shelf: Shelf) -> None:
    """A look-up that takes its time, or fails, concerns only those who asked for its keys."""
    loader = BulkLoader(shelf.get_many)
    slow, quick = asyncio.ensure_future(loader.load_many([1])), asyncio.ensure_future(loader.load_many([2]))
    shelf.bring(1)
    assert await quick == [20]
    shelf.look_ups[0].set_exception(ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        await slow


async def test_a_failure_is_forgotten(shelf: Shelf) -> None:
    """The next caller asks again; whoever waits already hears of the failure itself."""
    loader = BulkLoader(shelf.get_many)
    first, both = asyncio.ensure_future(loader.load_many([1])), loader.load_many([1, 2])
    shelf.look_ups[0].set_exception(ConnectionError("gone"))
    again = loader.load_many([1])
    for look_up in shelf.look_ups[1:]:
        look_up.set_result([10] if shelf.asked[shelf.look_ups.index(look_up)] == [1] else [20])
    assert await again == [10]
    for waiting in (first, both):
        with pytest.raises(ConnectionError, match="gone"):
            await waiting
    assert shelf.asked == [[1], [2], [1]]


async def test_an_exception_stands_for_its_key_alone(shelf: Shelf) -> None:
    """In a list it is in its key's place; for a single key it is raised; it is not kept."""
    loader = BulkLoader(shelf.get_many)
    values, single = loader.load_many([1, 2]), loader.load(1)
    wrong = ValueError("wrong")
    shelf.look_ups[0].set_result([wrong, 20])
    assert await values == [wrong, 20]
    with pytest.raises(ValueError, match="wrong"):
        await single
    again = loader.load_many([1, 2])
    shelf.bring()
    assert await again == [10, 20]
    assert shelf.asked == [[1, 2], [1]]


async def test_a_cancelled_caller_disturbs_nobody(shelf: Shelf) -> None:
    """The look-up goes on for the others."""
    loader = BulkLoader(shelf.get_many)
    one, other = asyncio.ensure_future(loader.load_many([1])), asyncio.ensure_future(loader.load_many([1]))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    shelf.bring()
    assert await other == [10]


async def test_a_cancelled_look_up_fails_its_callers(shelf: Shelf) -> None:
    """They are not cancelled themselves."""
    waiting = BulkLoader(shelf.get_many).load_many([1])
    shelf.look_ups[0].cancel()
    with pytest.raises(LookUpCancelled):
        await waiting
