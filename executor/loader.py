"""A dataloader whose waiters cannot hurt one another: aiodataloader, with its traps closed.

In aiodataloader all waiters of a key share one future. So a cancelled waiter cancels the others, a
cancelled or failed future stays in the cache and poisons later loads, and a cancelled batch leaves its
waiters hanging.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from aiodataloader import DataLoader, dispatch_queue_batch
from aiodataloader import Loader as Queued

K = TypeVar("K")
V = TypeVar("V")


class BatchCancelledError(Exception):
    """A batch was cancelled while it ran, so its keys have no values; a later load asks again."""


class Loader(DataLoader[K, V], Generic[K, V]):
    """Collect the keys asked for in one go of the event loop, and ask for them in one call.

    `batch(keys)` answers in the order of the keys, which are distinct; a value that is an exception is
    raised for that key alone. What is found is kept for the life of the loader; what failed is forgotten.
    Waiters are independent: cancelling one neither cancels the look-up nor the others. Build it inside a
    running loop.
    """

    def __init__(
        self,
        batch: Callable[[list[K]], Awaitable[Sequence[V | Exception]]],
        *,
        get_cache_key: Callable[[K], Hashable] | None = None,
    ) -> None:
        self._batch = batch
        self._running: set[asyncio.Task[None]] = set()
        super().__init__(self._load, get_cache_key=get_cache_key, loop=asyncio.get_running_loop())

    def load(self, key: K) -> "asyncio.Future[V]":
        """Give a future of the key's value that belongs to this caller alone."""
        held = self._cache.get(self.get_cache_key(key))
        if held is not None and held.done() and (held.cancelled() or held.exception() is not None):
            self.clear(key)
        waiter = asyncio.shield(super().load(key))
        waiter.add_done_callback(_retrieve)
        return waiter

    def do_resolve_reject(self, key: K, future: "asyncio.Future[V]") -> None:
        """Queue a key; the queue leaves in the loop's next go, with all that was asked for in this one."""
        future.add_done_callback(partial(self._forget_failure, key))
        self._queue.append(Queued(key, future))
        if len(self._queue) == 1:
            self.loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        queue, self._queue = self._queue, []
        task = self.loop.create_task(dispatch_queue_batch(self, queue))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _load(self, keys: list[K]) -> list[Any]:
        try:
            return list(await self._batch(keys))
        except asyncio.CancelledError as error:
            raise BatchCancelledError("The look-up was cancelled.") from error

    def _forget_failure(self, key: K, future: "asyncio.Future[V]") -> None:
        if not future.cancelled() and future.exception() is None:
            return
        cache_key = self.get_cache_key(key)
        if self._cache.get(cache_key) is future:
            del self._cache[cache_key]


def _retrieve(future: "asyncio.Future[V]") -> None:
    """Mark the exception as retrieved: whoever asked for the key may have been cancelled before it failed."""
    if not future.cancelled():
        future.exception()
