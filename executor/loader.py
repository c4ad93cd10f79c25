"""An extension of aiodataloader's DataLoader with cheap list look-ups.

aiodataloader creates one future for each key, even when a caller asks for a list. `DataLoader.load_many` creates one
future for the whole list and starts the look-up immediately.

In aiodataloader, all callers of a key share one future: a cancelled caller cancels the others, a failed future stays in
the cache, and a cancelled batch leaves its callers waiting forever. Here, every caller has its own future, and only
values are cached.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import aiodataloader

from .futures import LookUpCancelled, Shared, derive, retrieve_exception

K = TypeVar("K")
V = TypeVar("V")

Queued: TypeAlias = tuple[Any, aiodataloader.Loader]
Asked: TypeAlias = tuple["asyncio.Future[Any]", Callable[[Any], Any]]
"""A future, and the function that converts its result to the caller's value."""


class LookUp:
    """One call of the batch function: `keys` maps cache keys to keys, `values` is a future of values in this order."""

    __slots__ = ("_found", "keys", "values")

    def __init__(self, keys: dict[Any, Any], values: "asyncio.Future[Any]") -> None:
        self.keys = keys
        self.values = values
        self._found: dict[Any, Any] | None = None

    def found(self) -> dict[Any, Any]:
        """Return the values of a finished look-up by cache key.

        Raises the error of a failed look-up, or TypeError if the batch function returned too few or too many values.
        """
        if self._found is None:
            values = self.values.result()
            if len(values) != len(self.keys):
                raise TypeError(f"The batch function returned {len(values)} values for {len(self.keys)} keys.")
            self._found = dict(zip(self.keys, values, strict=True))
        return self._found

    def outcome(self) -> Mapping[Any, Any]:
        """Return the values by cache key. If the look-up failed, return its error for each cache key."""
        try:
            return self.found()
        except asyncio.CancelledError:
            return dict.fromkeys(self.keys, LookUpCancelled())
        except Exception as error:
            return dict.fromkeys(self.keys, error)

    def pick(self, cache_key: Any, values: Sequence[Any]) -> Any:
        """Return the value for one cache key. Raises the value if it is an exception."""
        value = self.found()[cache_key]
        if isinstance(value, Exception):
            raise value
        return value

    def select(self, wanted: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Return the values for the wanted cache keys, in their order.

        `wanted` must be the cache keys of this look-up in the same order, but may repeat keys.
        """
        if len(wanted) == len(self.keys) == len(values):
            return list(values)
        found = self.found()
        return [found[key] for key in wanted]

    def without(self, cache_key: Any) -> "LookUp":
        """Return a copy of this look-up in which one cache key is replaced by a placeholder that matches no key."""
        return LookUp({object() if each == cache_key else each: key for each, key in self.keys.items()}, self.values)


class DataLoader(aiodataloader.DataLoader[K, V], Generic[K, V]):
    """Batches, deduplicates and caches look-ups.

    `batch_load_fn(keys)` takes distinct keys and returns an awaitable of their values in the same order; if a value is
    an exception, only the look-up of its key fails. `load_many` and `load_now` call the function immediately. `load`
    calls it in the next event-loop iteration, with all keys requested by then. Keys that are cached or being looked up
    are not requested again. Failures are not cached. Cancelling one caller affects neither the look-up nor other
    callers. `fetch_many` and `fetch` start the same look-ups as `load_many` and `load_now`, but return a `Shared`,
    which is cheaper than a future. Use them where the caller only awaits the values, as for the result of a batch
    resolver.

    Pass `loop` if the running loop is known: `asyncio.get_running_loop` can cost a system call.
    """

    def __init__(
        self,
        batch_load_fn: Callable[[list[K]], Awaitable[Sequence[V | Exception]]],
        *,
        get_cache_key: Callable[[K], Hashable] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._request = batch_load_fn
        self._has_cache_keys = get_cache_key is not None
        self._values: dict[Any, V] = {}
        self._pending: list[LookUp] = []
        # Not aiodataloader's `__init__`: its check that `batch_load_fn` is a coroutine function takes most of its time.
        self.loop = loop or asyncio.get_running_loop()
        self.get_cache_key = get_cache_key or _same  # type: ignore[assignment]  # any key
        self._cache: dict[Any, asyncio.Future[V]] = {}
        self._queue: list[aiodataloader.Loader] = []

    def load(self, key: K) -> "asyncio.Future[V]":
        """Return a future for the value of one key. The future fails if the value is an exception."""
        self._cache_finished()
        cache_key = self.get_cache_key(key)
        if cache_key in self._values:
            return self._done(self._values[cache_key])
        for look_up in self._pending:
            if cache_key in look_up.keys:
                return derive(look_up.values, partial(look_up.pick, cache_key))
        return derive(super().load(key), _same)

    def load_now(self, key: K) -> "asyncio.Future[V]":
        """Return a future for the value of one key. Start the look-up immediately, without waiting for other keys.

        Cheaper than `load` if no other keys follow, as in the resolver of a root field.
        """
        return _own(*self.ask(key))

    def fetch(self, key: K) -> "Shared[V]":
        """Start the same look-up as `load_now`, and return an awaitable of the value."""
        return Shared(*self.ask(key))

    def load_many(self, keys: Iterable[K]) -> "asyncio.Future[list[V]]":
        """Return one future for the values of all keys, in the order of the keys.

        A key that fails has its exception in place of its value. The future fails only if a whole look-up fails.
        """
        return _own(*self.ask_many(list(keys)))

    def fetch_many(self, keys: Iterable[K]) -> "Shared[list[V]]":
        """Start the same look-ups as `load_many`, and return an awaitable of the values."""
        return Shared(*self.ask_many(list(keys)))

    def ask(self, key: K) -> Asked:
        """Return a future and the function that converts its result to the key's value.

        Start a look-up unless the key is cached or pending.
        """
        self._cache_finished()
        cache_key = self.get_cache_key(key)
        if cache_key in self._values:
            return self._done(self._values[cache_key]), _same
        look_up = next((each for each in self._pending if cache_key in each.keys), None)
        look_up = look_up or self._start({cache_key: key})
        return look_up.values, partial(look_up.pick, cache_key)

    def ask_many(self, keys: list[K]) -> Asked:
        """Return a future and the function that converts its result to the list of the keys' values.

        Start a look-up of the keys that are neither cached nor pending.
        """
        wanted = self._cache_keys(keys)
        self._cache_finished()
        if not self._values and not self._pending:
            look_up = self._start(dict(zip(wanted, keys, strict=True)))
            return look_up.values, partial(look_up.select, wanted)
        look_ups = self._look_up(wanted, keys)
        cached = {key: self._values[key] for key in wanted if key in self._values}
        if not look_ups:
            return self._done([cached[key] for key in wanted]), _same
        return asyncio.gather(*(each.values for each in look_ups)), partial(_merge, wanted, cached, look_ups)

    def prime(self, key: K, value: V) -> "DataLoader[K, V]":
        """Cache a value, unless the key already has a cached value or the new value is an exception."""
        if not isinstance(value, Exception):
            self._values.setdefault(self.get_cache_key(key), value)
        return self

    def cached_many(self, keys: Iterable[K]) -> list[V] | None:
        """Return the values of all keys if all are cached, else None. Never start a look-up."""
        self._cache_finished()
        wanted = self._cache_keys(list(keys))
        return [self._values[key] for key in wanted] if all(key in self._values for key in wanted) else None

    def prime_many(self, values: Mapping[K, V]) -> None:
        """Cache the values of several keys, except for keys that already have a cached value."""
        if self._has_cache_keys:
            self._values = {self.get_cache_key(key): value for key, value in values.items()} | self._values
        else:
            self._values = {**values, **self._values}

    def clear(self, key: K) -> "DataLoader[K, V]":
        """Remove the cached or pending value of a key, so that the next call looks the key up again."""
        self._cache_finished()
        cache_key = self.get_cache_key(key)
        self._values.pop(cache_key, None)
        self._pending = [look_up.without(cache_key) for look_up in self._pending]
        return super().clear(key)

    def clear_all(self) -> "DataLoader[K, V]":
        """Remove all cached and pending values."""
        self._values.clear()
        self._pending.clear()
        return super().clear_all()

    async def batch_load_fn(self, keys: list[K]) -> list[V]:
        """Return the values of the keys. aiodataloader requires this method to be a coroutine function."""
        return await self.load_many(keys)

    def do_resolve_reject(self, key: K, future: "asyncio.Future[V]") -> None:
        """Queue a key for the next event-loop iteration; aiodataloader would take three iterations and two tasks."""
        self._queue.append(aiodataloader.Loader(key, future))
        if len(self._queue) == 1:
            self.loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        queue, self._queue = self._queue, []
        keys = [each.key for each in queue]
        wanted = self._cache_keys(keys)
        self._cache_finished()
        look_ups = self._look_up(wanted, keys)
        queued = list(zip(wanted, queue, strict=True))
        self._deliver([each for each in queued if each[0] in self._values], self._values)
        for look_up in look_ups:
            waiting = [each for each in queued if each[0] in look_up.keys]
            look_up.values.add_done_callback(partial(self._deliver_outcome, waiting, look_up))

    def _deliver_outcome(self, queued: list[Queued], look_up: LookUp, done: "asyncio.Future[Any]") -> None:
        self._deliver(queued, look_up.outcome())

    def _deliver(self, queued: list[Queued], values: Mapping[Any, Any]) -> None:
        """Resolve the futures that `load` created, and remove them from aiodataloader's cache of pending futures."""
        for cache_key, (_, future) in queued:
            if self._cache.get(cache_key) is future:
                del self._cache[cache_key]
            value = values[cache_key]
            if isinstance(value, Exception):
                future.set_exception(value)
            else:
                future.set_result(value)

    def _look_up(self, wanted: list[Any], keys: list[K]) -> list[LookUp]:
        """Start a look-up of the keys that are neither cached nor pending. Return all look-ups to wait for."""
        needed = {key: raw for key, raw in zip(wanted, keys, strict=True) if key not in self._values}
        pending = {key for look_up in self._pending for key in look_up.keys}
        missing = {key: raw for key, raw in needed.items() if key not in pending}
        if missing:
            self._start(missing)
        return [look_up for look_up in self._pending if not needed.keys().isdisjoint(look_up.keys)]

    def _start(self, missing: dict[Any, K]) -> LookUp:
        values: asyncio.Future[Any]
        try:
            asked = self._request(list(missing.values()))
            if isinstance(asked, asyncio.Future):
                values = asked
            else:
                values = asyncio.ensure_future(asked, loop=self.loop)
                values.add_done_callback(retrieve_exception)  # mark its exception as retrieved: all callers may be gone
        except Exception as error:
            values = self.loop.create_future()
            values.set_exception(error)
            retrieve_exception(values)
        look_up = LookUp(missing, values)
        self._pending.append(look_up)
        return look_up

    def _cache_keys(self, keys: list[K]) -> list[Any]:
        return [self.get_cache_key(key) for key in keys] if self._has_cache_keys else keys

    def _cache_finished(self) -> None:
        if self._pending:
            for look_up in self._pending:
                if look_up.values.done():
                    found = look_up.outcome().items()
                    self._values.update({key: value for key, value in found if not isinstance(value, Exception)})
            self._pending = [each for each in self._pending if not each.values.done()]

    def _done(self, value: Any) -> "asyncio.Future[Any]":
        future = self.loop.create_future()
        future.set_result(value)
        return future


def _own(future: "asyncio.Future[Any]", convert: Callable[[Any], Any]) -> "asyncio.Future[Any]":
    """Return a future that no other caller holds: `future` itself if it needs no conversion, else a derived future.

    A future that needs no conversion was created for this caller.
    """
    return future if convert is _same else derive(future, convert)


def _same(value: Any) -> Any:
    return value


def _merge(wanted: list[Any], cached: dict[Any, Any], look_ups: list[LookUp], results: list[Any]) -> list[Any]:
    found = dict(cached)
    for look_up in look_ups:
        found.update(look_up.found())
    return [found[key] for key in wanted]
