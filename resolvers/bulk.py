"""A dataloader for whole lists of keys: one look-up and one future for a list, instead of one future for each key.

It keeps what was found for as long as it lives, asks for nothing that is already under way, and forgets what failed, as
dataloaders do. Callers are independent: each has a future of its own, so that one who is cancelled disturbs nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

LookUp: TypeAlias = asyncio.Future[Any]


class BulkLoader(Generic[K, V]):
    """Looks keys up with `get_many(keys)`, which answers in the order of the keys, exceptions for those that fail.

    `loop` is the running one, if that is known: to ask for it is a system call.
    """

    def __init__(
        self,
        get_many: Callable[[list[K]], Awaitable[Sequence[V | Exception]]],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._get_many = get_many
        self._loop = loop
        self._found: dict[K, V] = {}
        self._under_way: list[tuple[list[K], LookUp]] = []

    def load_many(self, keys: Iterable[K]) -> Awaitable[list[V]]:
        """Give the values of keys, in their order; in place of a value that failed stands its exception.

        The look-up begins at once.
        """
        wanted = list(keys)
        fresh = not self._found and not self._under_way
        look_up = self._begin(wanted)
        if look_up is None or not fresh:
            return self._gather(wanted)
        [(missing, _)] = self._under_way
        if len(missing) == len(wanted):
            return answer(look_up, list)
        return answer(look_up, lambda values: chosen(missing, values, wanted))

    def load(self, key: K) -> Awaitable[V]:
        """Give the value of one key, or fail with what its look-up failed with. The look-up begins at once."""
        look_up = self._begin([key])
        return alone(self._gather([key])) if look_up is None else answer(look_up, first)

    def prime(self, values: Mapping[K, V]) -> None:
        """Take note of values that came in another way."""
        self._found.update(values)

    def _begin(self, wanted: Sequence[K]) -> LookUp | None:
        """Look up what is neither known nor under way, if there is anything."""
        self._absorb()
        coming = {key for keys, _ in self._under_way for key in keys} if self._under_way else ()
        missing = [key for key in dict.fromkeys(wanted) if key not in self._found and key not in coming]
        if not missing:
            return None
        values = self._get_many(missing)
        look_up = values if isinstance(values, asyncio.Future) else asyncio.ensure_future(values, loop=self._loop)
        self._under_way.append((missing, look_up))
        return look_up

    def _absorb(self) -> None:
        """Keep what look-ups have brought since, but no failures."""
        if not self._under_way:
            return
        for keys, look_up in self._under_way:
            if look_up.done() and not look_up.cancelled() and look_up.exception() is None:
                found = zip(keys, look_up.result(), strict=True)
                self._found.update({key: value for key, value in found if not isinstance(value, Exception)})
        self._under_way = [each for each in self._under_way if not each[1].done()]

    def _gather(self, wanted: Sequence[K]) -> Awaitable[list[Any]]:
        """Give the values of keys that are known or under way."""
        distinct = set(wanted)
        found = {key: self._found[key] for key in distinct if key in self._found}
        coming = [(keys, answer(look_up, list)) for keys, look_up in self._under_way if not distinct.isdisjoint(keys)]
        return joined(wanted, found, coming)


async def joined(
    wanted: Sequence[Any], found: dict[Any, Any], coming: Sequence[tuple[Sequence[Any], Awaitable[list[Any]]]]
) -> list[Any]:
    """Wait for the look-ups that bring what is wanted and not found yet."""
    for keys, values in coming:
        found.update(zip(keys, await values, strict=True))
    return [found[key] for key in wanted]


async def alone(gathered: Awaitable[list[Any]]) -> Any:
    """Wait for the value of one key. Raises it, if it is an exception."""
    return first(await gathered)


class LookUpCancelled(Exception):
    """A look-up was cancelled while it ran, so its keys have no values; a later one asks again."""


def answer(look_up: LookUp, pick: Callable[[Any], Any]) -> "asyncio.Future[Any]":
    """Give a future of what is picked of the values that a look-up brings."""
    future: asyncio.Future[Any] = look_up.get_loop().create_future()

    def settle(done: LookUp) -> None:
        if future.done():
            look_at(done)
            return
        try:
            future.set_result(pick(done.result()))
        except asyncio.CancelledError:
            future.set_exception(LookUpCancelled())
        except Exception as error:
            future.set_exception(error)

    look_up.add_done_callback(settle)
    future.add_done_callback(look_at)
    return future


def look_at(done: LookUp) -> None:
    """Take note of how a look-up ended: nobody may be left who waits for it."""
    if not done.cancelled():
        done.exception()


def first(values: Sequence[Any]) -> Any:
    """Give the only value. Raises it, if it is an exception."""
    if isinstance(values[0], Exception):
        raise values[0]
    return values[0]


def chosen(keys: Sequence[Any], values: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """Give the values of wanted keys, among those of the keys."""
    found = dict(zip(keys, values, strict=True))
    return [found[key] for key in wanted]
