"""Posting lists: the values under each key of an inverted index. Short lists take little memory."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

FEW = 32
SPARE_ROOM = 8
"""Dictionaries do not shrink: one is copied if its maximum size was more than this many times its current size."""

Values: TypeAlias = tuple[V, ...] | set[V]
"""Distinct values: a tuple if there are few, because it takes a fifth of the memory of a set; otherwise a set."""


def with_value(values: Values[V], value: V) -> Values[V]:
    """Return the values with this one added. A set is changed in place."""
    if isinstance(values, set):
        values.add(value)
        return values
    if value in values:
        return values
    return (*values, value) if len(values) < FEW else {*values, value}


def without_value(values: Values[V], value: V) -> Values[V]:
    """Return the values without this one. A set is changed in place. Raises KeyError if the value is missing."""
    if isinstance(values, set):
        values.remove(value)
        return values if len(values) > FEW // 2 else tuple(values)
    if value not in values:
        raise KeyError(value)
    return tuple(other for other in values if other != value)


def intersection(some: Values[V], others: Values[V]) -> set[V]:
    """Return the values that are in both collections. O(n) in the size of the smaller one if either is a set."""
    if isinstance(others, set):
        return others.intersection(some)
    return some.intersection(others) if isinstance(some, set) else set(some).intersection(others)


class CountedSet(Generic[V]):
    """The values that were added more often than removed, as a set, which is fast to copy."""

    __slots__ = ("_more", "values")

    def __init__(self) -> None:
        self.values: set[V] = set()
        self._more: Counter[V] = Counter()

    def add(self, value: V) -> None:
        """Add a value, or count it once more if it is present."""
        if value in self.values:
            self._more[value] += 1
        else:
            self.values.add(value)

    def remove(self, value: V) -> None:
        """Remove a value once. Raises KeyError if it is missing."""
        more = self._more.pop(value, 0)
        if not more:
            self.values.remove(value)
        elif more > 1:
            self._more[value] = more - 1


class PostingLists(Generic[K, V]):
    """Values by key, each at most once under a key. Keys without values take no memory.

    If a key has only one value, as most keys do, the value is stored without a tuple or set around it. Therefore values
    must not be tuples or sets.
    """

    __slots__ = ("_lists", "_peak")

    def __init__(self) -> None:
        self._lists: dict[K, V | Values[V]] = {}
        self._peak = 0

    def __getitem__(self, key: K) -> Values[V]:
        """Return the values under a key, empty if there are none."""
        found = self._lists.get(key, ())
        return found if isinstance(found, tuple | set) else (found,)

    def __len__(self) -> int:
        """Return the number of keys with values."""
        return len(self._lists)

    def __contains__(self, key: K) -> bool:
        return key in self._lists

    def __iter__(self) -> Iterator[V]:
        """Yield the values under all keys."""
        return chain.from_iterable(map(self.__getitem__, self._lists))

    def of_any(self, keys: Iterable[K]) -> Iterator[V]:
        """Yield the values under any of these keys: a value that is under several keys is repeated."""
        present = set(filter(self._lists.__contains__, keys))
        return chain.from_iterable(map(self.__getitem__, present))

    def add(self, key: K, value: V) -> None:
        """Add a value under a key."""
        self.add_all((key,), value)

    def add_all(self, keys: Iterable[K], value: V) -> None:
        """Add a value under several keys."""
        put = self._lists.setdefault
        for key in keys:
            if put(key, value) is not value:
                self._lists[key] = with_value(self[key], value)

    def remove(self, key: K, value: V) -> None:
        """Remove a value from a key. Raises KeyError if it is missing."""
        self.remove_all((key,), value)

    def remove_all(self, keys: Iterable[K], value: V) -> None:
        """Remove a value from several keys. Raises KeyError at the first key without it."""
        lists = self._lists
        for key in keys:
            if lists[key] is not value:
                values = without_value(self[key], value)
                if values:
                    lists[key] = next(iter(values)) if len(values) == 1 else values
                    continue
            self._peak = max(self._peak, len(lists))
            del lists[key]
        if not lists or self._peak > SPARE_ROOM * max(len(lists), FEW):
            self._lists, self._peak = dict(lists), len(lists)
