"""The types of stored values, and the keys of versioned sets (see `graph.keys`).

Tombstones up to a number can be left out. The tombstone floor, which replaces trimmed tombstones, is never among the
values, because only events that arrive late need it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from graph import keys
from graph.fold.content import Member, VersionedSet


class Hash(dict[str, str]):
    """The fields of a hash."""


class SortedSet(dict[str, int]):
    """The members of a sorted set, with their scores."""


Value: TypeAlias = Hash | SortedSet | str
"""The value of a key. Empty hashes and sorted sets do not occur: their keys do not exist."""

Stored: TypeAlias = Iterator[tuple[str, Value]]
"""Keys with their values."""


def versioned_set_keys(
    key: Callable[[int], str], owner: int, held: VersionedSet[Member], tombstones_after: int = 0
) -> Stored:
    """Yield the keys of the members and the tombstones of a versioned set, with their values."""
    name = key(owner)
    if held.members:
        yield name, SortedSet({str(member): number for member, number in held.members.items()})
    yield from tombstone_keys(name, held.tombstones, tombstones_after)


def tombstone_keys(versioned_set: str, tombstones: Mapping[Member, int], tombstones_after: int) -> Stored:
    """Yield the key and value of a versioned set's tombstones, unless there are no tombstones to keep."""
    kept = SortedSet({str(member): number for member, number in tombstones.items() if number > tombstones_after})
    if kept:
        yield keys.gone(versioned_set), kept
