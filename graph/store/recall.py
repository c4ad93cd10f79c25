"""Look-ups of values that the near cache may hold."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from graph.store.near_cache import Moment
from graph.store.reads import filled
from graph.store.store import Store

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class LookUp(Generic[V]):
    """A look-up of values by id: the command `name key word…`, and `convert`, which turns its replies into values.

    The values are shared between requests, so they must not be changed. The keys must have no time to live, because the
    server reports that a key has expired only when it removes the key. Different look-ups must have different keys.
    """

    name: str
    key: Callable[[int], str]
    words: tuple[str, ...]
    convert: Callable[[Sequence[int], list[Any]], list[V]]


def recall(store: Store, look_up: LookUp[V], ids: Sequence[int], moment: Moment | None) -> "asyncio.Future[list[V]]":
    """Return a future of the values of ids for a request that began at `moment`; if None, read all from the store.

    No value is older than the moment, or than the newest reply from the value's server. No round trip if the near cache
    has all values, and their servers have answered a read that was sent after the moment; otherwise one, which is
    shared with the other reads of the same event-loop ticks.
    """
    keys = list(map(look_up.key, ids))
    near = store.near
    if near is None or moment is None or not near.tracking:
        if near is not None:
            near.rest(len(keys))
        return store.ask_each(look_up.name, keys, look_up.words, partial(look_up.convert, ids))
    known, places = near.find(keys, moment)
    if not places:
        future: asyncio.Future[list[V]] = store.running_loop().create_future()
        future.set_result(known)
        return future
    missing = [keys[place] for place in places]
    convert = partial(look_up.convert, [ids[place] for place in places])
    if near.holds(missing):
        return store.ask_each(look_up.name, missing, look_up.words, lambda rows: filled(known, convert(rows)))
    return store.track(look_up.name, missing, look_up.words, convert, known)


def near_values(store: Store, keys: Sequence[str], moment: Moment | None) -> list[Any] | None:
    """Return the values of keys if the near cache has all of them for a request that began at a moment, else None."""
    near = store.near
    if near is None or moment is None:
        return None
    values, missing = near.find(keys, moment)
    return None if missing else values


def prefetch(store: Store, look_up: LookUp[V], ids: Sequence[int], moment: Moment | None) -> None:
    """Read the values that the near cache lacks into the cache, in a round trip shared with other reads.

    Does nothing if the cache does not remember absent keys: they would be read again each time.
    """
    near = store.near
    if near is None or moment is None or not near.absences:
        return
    if near.tracking and not near.holds(map(look_up.key, ids)):
        recall(store, look_up, ids, moment)


def both_near(
    store: Store, look_ups: tuple[LookUp[V], LookUp[V]], ids: Sequence[int], moment: Moment | None
) -> tuple[dict[int, tuple[V, V]], list[int]]:
    """Return both values of each id if the near cache has both, and the remaining ids.

    Two cached values existed at the same time; a cached value and a newly read value may never have coexisted.
    """
    near = store.near
    if near is None or moment is None:
        return {}, list(ids)
    first, second = look_ups
    known: dict[int, tuple[V, V]] = {}
    for id_ in ids:
        values, missing = near.find((first.key(id_), second.key(id_)), moment)
        if not missing:
            known[id_] = values[0], values[1]
    return known, [id_ for id_ in ids if id_ not in known]
