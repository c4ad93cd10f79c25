"""Posting lists: which values stand under a key, in little memory while they are few."""

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

FEW = 32

Values: TypeAlias = tuple[V, ...] | set[V]
"""Distinct values: a tuple of few, which takes a fifth of a set's memory, or a set of many."""


def including(values: Values[V], value: V) -> Values[V]:
    """Give the values and this one; a set is changed in place."""
    if isinstance(values, set):
        values.add(value)
        return values
    if value in values:
        return values
    return (*values, value) if len(values) < FEW else {*values, value}


def excluding(values: Values[V], value: V) -> Values[V]:
    """Give the values without this one; a set is changed in place. Raises KeyError if it is not among them."""
    if isinstance(values, set):
        values.remove(value)
        return values if len(values) > FEW // 2 else tuple(values)
    if value not in values:
        raise KeyError(value)
    return tuple(other for other in values if other != value)


def common(some: Values[V], others: Values[V]) -> set[V]:
    """Give the values that are in both, at the cost of the fewer."""
    if isinstance(others, set):
        return others.intersection(some)
    return some.intersection(others) if isinstance(some, set) else set(some).intersection(others)


class Postings(Generic[K, V]):
    """Values by key, each at most once under a key; what was removed leaves nothing behind."""

    __slots__ = ("_under",)

    def __init__(self) -> None:
        self._under: dict[K, Values[V]] = {}

    def __getitem__(self, key: K) -> Values[V]:
        """Give the values under a key, perhaps none."""
        return self._under.get(key, ())

    def __contains__(self, key: K) -> bool:
        return key in self._under

    def __iter__(self) -> Iterator[V]:
        """Yield the values under all keys."""
        return chain.from_iterable(self._under.values())

    def among(self, keys: Iterable[K]) -> Iterator[V]:
        """Yield the values under any of these keys."""
        present = set(filter(self._under.__contains__, keys))
        return chain.from_iterable(map(self._under.__getitem__, present))

    def add(self, key: K, value: V) -> None:
        """Put a value under a key."""
        self._under[key] = including(self[key], value)

    def remove(self, key: K, value: V) -> None:
        """Take a value from a key. Raises KeyError if it is not there."""
        values = excluding(self[key], value)
        if values:
            self._under[key] = values
        else:
            del self._under[key]
