"""Posting lists: which values stand under a key."""

from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

LONG = 32


class Postings(Generic[K, V]):
    """Values by key, each at most once under a key; what was removed leaves nothing behind.

    Most keys have few values, and a short list takes a fraction of a set's memory; a long one is a set, so that
    adding and removing stay cheap.
    """

    __slots__ = ("_under",)

    def __init__(self) -> None:
        self._under: dict[K, list[V] | set[V]] = {}

    def __getitem__(self, key: K) -> Collection[V]:
        """Give the values under a key, perhaps none."""
        return self._under.get(key, ())

    def __contains__(self, key: K) -> bool:
        return key in self._under

    def __iter__(self) -> Iterator[K]:
        return iter(self._under)

    def add(self, key: K, value: V) -> None:
        """Put a value, which is not there yet, under a key."""
        values = self._under.setdefault(key, [])
        if isinstance(values, set):
            values.add(value)
        elif len(values) < LONG:
            values.append(value)
        else:
            self._under[key] = {*values, value}

    def remove(self, key: K, value: V) -> None:
        """Take a value, which is there, from a key."""
        values = self._under[key]
        values.remove(value)
        if not values:
            del self._under[key]
        elif isinstance(values, set) and len(values) == LONG // 2:
            self._under[key] = [*values]
