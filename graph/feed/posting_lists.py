"""Posting lists: which values stand under a key, in little memory while they are few."""

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

FEW = 32
SPARE_ROOM = 8
"""How many times as many keys as there are a dictionary may have room for: it does not shrink by itself."""

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


class PostingLists(Generic[K, V]):
    """Values by key, each at most once under a key; what was removed leaves nothing behind.

    A value that is alone under its key stands there by itself, as most do. So values must not be tuples or sets.
    """

    __slots__ = ("_most", "_under")

    def __init__(self) -> None:
        self._under: dict[K, V | Values[V]] = {}
        self._most = 0

    def __getitem__(self, key: K) -> Values[V]:
        """Give the values under a key, perhaps none."""
        found = self._under.get(key, ())
        return found if isinstance(found, tuple | set) else (found,)

    def __len__(self) -> int:
        """Return how many keys have values."""
        return len(self._under)

    def __contains__(self, key: K) -> bool:
        return key in self._under

    def __iter__(self) -> Iterator[V]:
        """Yield the values under all keys."""
        return chain.from_iterable(map(self.__getitem__, self._under))

    def among(self, keys: Iterable[K]) -> Iterator[V]:
        """Yield the values under any of these keys."""
        present = set(filter(self._under.__contains__, keys))
        return chain.from_iterable(map(self.__getitem__, present))

    def add(self, key: K, value: V) -> None:
        """Put a value under a key."""
        self.add_all((key,), value)

    def add_all(self, keys: Iterable[K], value: V) -> None:
        """Put a value under many keys."""
        put = self._under.setdefault
        for key in keys:
            if put(key, value) is not value:
                self._under[key] = including(self[key], value)

    def remove(self, key: K, value: V) -> None:
        """Take a value from a key. Raises KeyError if it is not there."""
        self.remove_all((key,), value)

    def remove_all(self, keys: Iterable[K], value: V) -> None:
        """Take a value from many keys. Raises KeyError at the first under which it is not."""
        under = self._under
        for key in keys:
            if under[key] is not value:
                values = excluding(self[key], value)
                if values:
                    under[key] = next(iter(values)) if len(values) == 1 else values
                    continue
            self._most = max(self._most, len(under))
            del under[key]
        if not under or self._most > SPARE_ROOM * max(len(under), FEW):
            self._under, self._most = dict(under), len(under)
