"""A dataloader for whole lists of keys: one look-up and one future for a list, instead of one future for each key.

It keeps what was found for as long as it lives, asks for nothing that is already under way, and forgets what failed, as
dataloaders do. Single keys are collected in one go of the event loop. Callers are independent: each has a future of its
own, so that one who is cancelled disturbs nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

LookUp: TypeAlias = asyncio.Future[Any]


class BulkLoader(Generic[K, V]):
    """Looks keys up with `get_many(keys)`, which answers in the order of the keys, exceptions for those that fail."""

    def __init__(self, get_many: Callable[[list[K]], Awaitable[Sequence[V | Exception]]]) -> None:
        self._get_many = get_many
        self._found: dict[K, V] = {}
        self._under_way: list[tuple[list[K], LookUp]] = []
        self._singles: list[K] = []
        self._beginning: asyncio.Future[None] | None = None

    def load_many(self, keys: Iterable[K]) -> Awaitable[list[V]]:
        """Give the values of keys, in their order; in place of a value that failed stands its exception.

        The look-up begins at once.
        """
        wanted = list(keys)
        fresh = not self._found and not self._under_way
        if self._begin(wanted) and fresh:
            [(missing, look_up)] = self._under_way
            return answer(look_up, missing, wanted)
        return self._gather(wanted)

    async def load(self, key: K) -> V:
        """Give the value of one key. Raises what its look-up failed with."""
        if key not in self._found:
            await self._collect(key)
        [value] = await self._gather([key])
        if isinstance(value, Exception):
            raise value
        return value

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
        look_up = values if isinstance(values, asyncio.Future) else asyncio.ensure_future(values)
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

    async def _collect(self, key: K) -> None:
        """Let the single keys of one go of the loop become one look-up."""
        self._singles.append(key)
        if self._beginning is None:
            loop = asyncio.get_running_loop()
            self._beginning = loop.create_future()
            loop.call_soon(self._begin_singles, self._beginning)
        await asyncio.shield(self._beginning)

    def _begin_singles(self, beginning: "asyncio.Future[None]") -> None:
        keys, self._singles, self._beginning = self._singles, [], None
        try:
            self._begin(keys)
        except Exception as error:
            beginning.set_exception(error)
        else:
            beginning.set_result(None)

    async def _gather(self, wanted: Sequence[K]) -> list[V]:
        """Wait for all look-ups that may bring these keys."""
        known: dict[K, Any] = dict(self._found)
        for keys, look_up in list(self._under_way):
            known.update(zip(keys, await answer(look_up, keys, keys), strict=True))
        return [known[key] for key in wanted]


class LookUpCancelled(Exception):
    """A look-up was cancelled while it ran, so its keys have no values; a later one asks again."""


def answer(look_up: LookUp, keys: Sequence[Any], wanted: Sequence[Any]) -> "asyncio.Future[list[Any]]":
    """Give a future of the values that some keys have among those that are being looked up."""
    future: asyncio.Future[list[Any]] = look_up.get_loop().create_future()

    def settle(done: LookUp) -> None:
        if future.done():
            return
        error = LookUpCancelled() if done.cancelled() else done.exception()
        if error is not None:
            future.set_exception(error)
        elif len(keys) == len(wanted):
            future.set_result(done.result())
        else:
            values = dict(zip(keys, done.result(), strict=True))
            future.set_result([values[key] for key in wanted])

    look_up.add_done_callback(settle)
    return future
