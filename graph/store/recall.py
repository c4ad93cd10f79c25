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
    """A look-up of values by id: the command `name key word…`, and `convert`, which returns the values of its replies.

    The values are shared between requests, so they must not be changed. The keys must have no time to live, because the
    server tells of their expiry only when it removes them. Look-ups that differ have different keys.
    """

    name: str
    key: Callable[[int], str]
    words: tuple[str, ...]
    convert: Callable[[Sequence[int], list[Any]], list[V]]


def recall(store: Store, look_up: LookUp[V], ids: Sequence[int], moment: Moment | None) -> "asyncio.Future[list[V]]":
    """Ask for the values of ids, in a request that began at a moment; None reads all of them from the store.

    No value is older than the moment, or than a reply to a read that the process has received. One round trip, which
    the reads of the same event-loop ticks share; none if the near cache has all values, and the request has received
    the reply to a read.
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
    """Read values that the near cache does not hold yet, so that it keeps them, in the round trip of other reads.

    Only if it also keeps that they are absent: it would ask for them again and again.
    """
    near = store.near
    if near is None or moment is None or not near.absences:
        return
    if near.tracking and not near.holds(map(look_up.key, ids)):
        recall(store, look_up, ids, moment)


def both_near(
    store: Store, look_ups: tuple[LookUp[V], LookUp[V]], ids: Sequence[int], moment: Moment | None
) -> tuple[dict[int, tuple[V, V]], list[int]]:
    """Return two values by id, where the near cache has both, and the other ids.

    Near values are of one moment. A value that is read is newer than a near one: the two may never have been together.
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
