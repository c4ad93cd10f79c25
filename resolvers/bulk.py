"""A dataloader for whole lists of keys: one future for each list that is asked for, instead of one for each key.

It collects what is asked for in one go of the event loop into one look-up, keeps what was found for as long as it
lives, and forgets what failed, as dataloaders do. Callers are independent of each other: each has a future of its own,
so that one who is cancelled disturbs nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Waiting: TypeAlias = tuple[list[K], asyncio.Future[list[V]]]


class BulkLoader(Generic[K, V]):
    """Looks keys up with `get_many(keys)`, which answers in the order of the keys, exceptions for those that fail.

    Make it inside a running event loop.
    """

    def __init__(self, get_many: Callable[[list[K]], Awaitable[Sequence[V | Exception]]]) -> None:
        self._get_many = get_many
        self._loop = asyncio.get_running_loop()
        self._found: dict[K, V] = {}
        self._waiting: list[Waiting[K, V]] = []

    def load_many(self, keys: Iterable[K]) -> "asyncio.Future[list[V]]":
        """Give the values of keys, in their order; in place of a value that failed stands its exception."""
        wanted = list(keys)
        future: asyncio.Future[list[V]] = self._loop.create_future()
        found = self._found
        try:
            future.set_result([found[key] for key in wanted])
        except KeyError:
            if not self._waiting:
                self._loop.call_soon(self._dispatch)
            self._waiting.append((wanted, future))
        return future

    async def load(self, key: K) -> V:
        """Give the value of one key. Raises what its look-up failed with."""
        [value] = await self.load_many([key])
        if isinstance(value, Exception):
            raise value
        return value

    def prime(self, values: Mapping[K, V]) -> None:
        """Take note of values that came in another way."""
        self._found.update(values)

    def _dispatch(self) -> None:
        waiting, self._waiting = self._waiting, []
        found = self._found
        keys = dict.fromkeys(chain.from_iterable(wanted for wanted, _ in waiting))
        missing = [key for key in keys if key not in found]
        try:
            values = self._get_many(missing)
        except Exception as error:
            _fail(waiting, error)
            return
        looking_up = values if isinstance(values, asyncio.Future) else asyncio.ensure_future(values)
        looking_up.add_done_callback(lambda done: self._arrive(waiting, missing, done))

    def _arrive(
        self, waiting: list[Waiting[K, V]], missing: list[K], done: "asyncio.Future[Sequence[V | Exception]]"
    ) -> None:
        if done.cancelled():
            _fail(waiting, LookUpCancelled())
            return
        error = done.exception()
        if error is not None:
            _fail(waiting, error)
            return
        values: dict[K, V | Exception] = dict(zip(missing, done.result(), strict=True))
        found: dict[K, Any] = self._found
        found.update(values)
        for wanted, future in waiting:
            if not future.done():
                future.set_result([found[key] for key in wanted])
        if any(issubclass(kind, Exception) for kind in set(map(type, values.values()))):
            for key in [key for key, value in values.items() if isinstance(value, Exception)]:
                del found[key]


class LookUpCancelled(Exception):
    """A look-up was cancelled while it ran, so its keys have no values; a later one asks again."""


def _fail(waiting: Iterable[Waiting[K, V]], error: BaseException) -> None:
    for _, future in waiting:
        if not future.done():
            future.set_exception(error)
