"""Comparison of versioned sets other than lists of posts: pairs, blocks, lists of users, and reposted posts.

Missing tombstones do not matter, because tombstones are dropped after some time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from graph.fold.content import Member, VersionedSet
from graph.repair.scope import Key, Scope


def expected_of(sets: Iterable[tuple[int, VersionedSet[Member]]]) -> dict[tuple[int, Member], int]:
    """Return the number of each member of the owners' sets, and the negated number of each tombstone."""
    expected: dict[tuple[int, Member], int] = {}
    for owner, held in sets:
        expected |= {(owner, member): number for member, number in held.members.items()}
        expected |= {(owner, member): -number for member, number in held.tombstones.items()}
    return expected


async def wrong_elements(
    scope: Scope,
    key: Key,
    owners: Sequence[int],
    expected: Mapping[tuple[int, Member], int],
    member_of: Callable[[str], Member | None],
) -> dict[tuple[int, Member], int | None]:
    """Return the expected state of each element of the owners' sets that is wrong. One round trip per 1,000 owners.

    `expected` has the number of each member, negative for a tombstone. `member_of` decodes a member from the text in
    the store, and returns None for a floor.
    """
    rows = await scope.send([("ZRANGE", key(owner), 0, -1, "WITHSCORES") for owner in owners])
    found = {
        (owner, member): int(number)
        for owner, row in zip(owners, rows, strict=True)
        for text, number in row
        if (member := member_of(text)) is not None
    }
    pairs = {*expected, *found}
    return {pair: expected.get(pair) for pair in pairs if is_wrong(expected.get(pair), found.get(pair))}


async def still_wrong(
    scope: Scope, key: Key, wrong: Mapping[tuple[int, Member], int | None]
) -> dict[tuple[int, Member], int | None]:
    """Return the current states of the elements that still differ and are not newer than the archive.

    One round trip per 500 sets.
    """
    return {
        element: state
        for element, state in (await scope.states(key, wrong)).items()
        if abs(state or 0) <= scope.up_to and is_wrong(wrong[element], state)
    }


def is_wrong(expected: int | None, found: int | None) -> bool:
    """Return True if a set has a member that it should not have, lacks one, or has one with a wrong number."""
    return max(found or 0, 0) != max(expected or 0, 0)


def id_of(member: str) -> int | None:
    """Return a member as an id, or None for a floor."""
    return int(member) if member.isdecimal() else None
