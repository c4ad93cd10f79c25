"""Comparison of versioned sets whose elements are not posts in a list: blocks, mutes, and what a user has reposted.

Missing tombstones do not matter: they are dropped after some time.
"""

from collections.abc import Iterable, Mapping, Sequence

from graph.fold.content import VersionedSet
from graph.repair.scope import Element, Key, Scope

Expected = Mapping[Element, int | None]
"""The number that an element must have, negative for a tombstone, None if no event is about it."""


def expected_of(sets: Iterable[tuple[int, VersionedSet]]) -> dict[Element, int]:
    """Return the number of each member of owners' sets, and the negative number of each tombstone."""
    expected: dict[Element, int] = {}
    for owner, held in sets:
        expected |= {(owner, member): number for member, number in held.members.items()}
        expected |= {(owner, member): -number for member, number in held.tombstones.items()}
    return expected


async def wrong_elements(
    scope: Scope, key: Key, owners: Sequence[int], expected: Mapping[Element, int]
) -> dict[Element, int | None]:
    """Return what the elements must be that differ in the owners' sets. One round trip per 1,000 owners."""
    rows = await scope.send([("ZRANGE", key(owner), 0, -1, "WITHSCORES") for owner in owners])
    found = {
        (owner, int(member)): int(number)
        for owner, row in zip(owners, rows, strict=True)
        for member, number in row
        if member.isdecimal()
    }
    pairs = {*expected, *found}
    return {pair: expected.get(pair) for pair in pairs if is_wrong(expected.get(pair), found.get(pair))}


async def still_wrong(scope: Scope, key: Key, wrong: Expected) -> dict[Element, int | None]:
    """Return the states of those of the elements that are not newer than the archive, and still differ.

    One round trip per 500 sets.
    """
    return {
        element: state
        for element, state in (await scope.states(key, wrong)).items()
        if abs(state or 0) <= scope.upto and is_wrong(wrong[element], state)
    }


def is_wrong(expected: int | None, found: int | None) -> bool:
    """Return True if a set holds a member that must not be there, or lacks one, or holds it with another number."""
    return max(found or 0, 0) != max(expected or 0, 0)
