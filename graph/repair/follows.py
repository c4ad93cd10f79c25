"""Comparison of follows: the followees of a user and the followers of a user.

Both lists are derived from the followers' own events and from the blocks between the two users, which decide whether a
follow counts, is held or has ended. Missing tombstones do not matter, because tombstones are dropped after some time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from graph import keys
from graph.fold import content
from graph.fold.content import Content, VersionedSet
from graph.fold.reading import EventReader, FoldedBatch
from graph.relations.follow_changes import follow_keys
from graph.relations.follows_and_blocks import FOLLOW_KINDS
from graph.relations.register import FOLLOWS_AND_BLOCKS
from graph.relations.versioned_sets import set_keys
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Comparison, Element, Key, Scope
from graph.store.commands import Command, script

State: TypeAlias = tuple[int, int]
"""The set that contains a follow (`MEMBER`, `TOMBSTONE` or `HELD`) and its number there. `NONE` if in no set."""

MEMBER, TOMBSTONE, HELD = 1, 2, 3
NONE: State = (0, 0)
NOTHING = VersionedSet[int]()
DESCRIPTIONS = {0: "nothing", MEMBER: "follow", TOMBSTONE: "unfollow", HELD: "follow across a block"}


class FollowingComparison(Comparison):
    """Compares each user's list of followees, and the user's entries in the followees' lists of followers.

    Three queries and two round trips for 500 users and 1,000 followees; one more for differences. Groups of users with
    more than 10,000 events are split.
    """

    part = defects.FOLLOWS
    key = staticmethod(keys.following)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the follows that differ in one of the lists, those in lists of followers first."""
        found: list[Difference] = []
        fold, reader = FOLLOWS_AND_BLOCKS.fold, EventReader(self.scope.archive)
        async for users, events in self.scope.folded(subjects, content.Part.FOLLOWING, FOLLOW_KINDS, fold):
            await FOLLOWS_AND_BLOCKS.add_blocks(reader, FoldedBatch(events, fold), users, up_to=self.scope.up_to)
            expected = expected_follows(events)
            following = await followees_of(self.scope, users)
            reverse = {(followee, user): state for (user, followee), state in expected.items()}
            followers = await states(self.scope, keys.followers, reverse)
            lacking = {pair: state for pair, state in reverse.items() if is_wrong(state, followers[pair])}
            pairs = {*expected, *following}
            wrong = {
                pair: expected.get(pair, NONE)
                for pair in pairs
                if is_wrong(expected.get(pair, NONE), following.get(pair, NONE))
            }
            found += await differences(self.scope, lacking, in_followers=True, subject=1)
            found += await differences(self.scope, wrong, in_followers=False)
        return found


class FollowerComparison(Comparison):
    """Finds followers for whom the archive has no event. `FollowingComparison` compares the others.

    Two round trips for 500 users and 10,000 followers, and one for every 1,000 followers. Differences take a query.
    """

    part = defects.FOLLOWS
    key = staticmethod(keys.followers)
    of_users = False

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return a difference for each stored follower without an event."""
        found: list[Difference] = []
        fold = FOLLOWS_AND_BLOCKS.fold
        async for members in self.scope.members(keys.followers, subjects):
            following = await self.scope.scores(keys.following, [pair[::-1] for pair in members])
            unsure = [pair for pair, number in members.items() if following[pair[::-1]] != [number]]
            actors = sorted({follower for _, follower in unsure})
            unknown: dict[Element, State] = {}
            async for some, events in self.scope.folded(actors, content.Part.FOLLOWING, FOLLOW_KINDS, fold):
                known = events.following
                among = [pair for pair in unsure if pair[1] in some]
                unknown |= {(a, v): NONE for a, v in among if not known.get(v, NOTHING).version(a)}
            found += await differences(self.scope, unknown, in_followers=True)
        return found


def expected_follows(events: Content) -> dict[Element, State]:
    """Return the state that each follow must have according to the events."""
    expected: dict[Element, State] = {}
    for user, follows in events.following.items():
        placed = events.placed(user, follows)
        for place, held in ((MEMBER, placed.members), (TOMBSTONE, placed.tombstones), (HELD, placed.held)):
            expected |= {(user, followee): (place, number) for followee, number in held.items()}
    return expected


async def followees_of(scope: Scope, users: Sequence[int]) -> dict[Element, State]:
    """Return the members and the held follows in the users' lists of followees. One round trip per 500 users."""
    names = [name for user in users for name in (keys.following(user), keys.held(keys.following(user)))]
    rows = await scope.send([("ZRANGE", name, 0, -1, "WITHSCORES") for name in names])
    return {
        (user, int(followee)): (place, int(number))
        for user, *both in zip(users, rows[::2], rows[1::2], strict=True)
        for place, row in zip((MEMBER, HELD), both, strict=True)
        for followee, number in row
        if followee.isdecimal()
    }


async def states(scope: Scope, key: Key, elements: Iterable[Element]) -> dict[Element, State]:
    """Return the states of follows. A member takes precedence over a held follow, and a held follow over a tombstone.

    One round trip per 333 lists.
    """
    parts: tuple[Key, ...] = (lambda owner: keys.held(key(owner)), lambda owner: keys.gone(key(owner)))
    found = await scope.scores(key, elements, *parts)
    places = (MEMBER, HELD, TOMBSTONE)
    return {
        element: next(((at, n) for at, n in zip(places, found[element], strict=True) if n is not None), NONE)
        for element in elements
    }


def is_wrong(expected: State, found: State) -> bool:
    """Return True if a follow is in another set than expected, or has another number. Tombstones are disregarded."""
    return visible(expected) != visible(found)


def visible(state: State) -> State:
    """Return the state of a follow, or `NONE` for a tombstone: a missing tombstone is not a difference."""
    return NONE if state[0] == TOMBSTONE else state


async def differences(
    scope: Scope, wrong: Mapping[Element, State], *, in_followers: bool, subject: int = 0
) -> list[Difference]:
    """Return a difference for each element that is still wrong and not newer than the archive.

    Four round trips per 333 lists. `wrong` has the expected states. `in_followers` is True if the elements belong to
    lists of followers. `subject` is the position, in an element, of the user to compare again. An element also counts
    as newer if a block between the two users is newer, because the block may have moved the follow.
    """
    found = []
    key, name = (keys.followers, "follower") if in_followers else (keys.following, "followee")
    blocks = await latest_blocks(scope, wrong)
    for element, state in (await states(scope, key, wrong)).items():
        owner, member = element
        expected = wrong[element]
        if max(state[1], blocks[element]) <= scope.up_to and is_wrong(expected, state):
            names = [*follow_keys(key, owner), *set_keys(keys.blocking, owner), *set_keys(keys.blockers, owner)]
            names += [] if in_followers else [keys.home(owner)]
            commands: list[Command] = [script("repair_follow").call(names, member, *state, *expected, scope.up_to)]
            commands += [("UNLINK", keys.home(member))] if in_followers else []
            text = f"{name} {member} of user {owner}: {describe(state)} instead of {describe(expected)}"
            found.append(Difference(defects.FOLLOW_WRONG, element[subject], f"{name} {element}", text, commands))
    return found


async def latest_blocks(scope: Scope, elements: Iterable[Element]) -> dict[Element, int]:
    """Return the number of the last block or unblock between each owner and user, or 0 if the store has none."""
    kinds: tuple[Key, ...] = (
        lambda owner: keys.gone(keys.blocking(owner)),
        keys.blockers,
        lambda owner: keys.gone(keys.blockers(owner)),
    )
    found = await scope.scores(keys.blocking, elements, *kinds)
    return {element: max(number or 0 for number in found[element]) for element in elements}


def describe(state: State) -> str:
    """Return a description of the state of a follow."""
    return f"{DESCRIPTIONS[state[0]]} {state[1]}" if state[0] else DESCRIPTIONS[0]
