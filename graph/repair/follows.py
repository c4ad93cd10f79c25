"""Comparison of follows: the followees of a user and the followers of a user, two versioned sets.

Both sets follow from the followers' own events. Missing tombstones do not matter: they are dropped after some time.
"""

from collections.abc import Mapping, Sequence

from graph import keys
from graph.fold import content
from graph.fold.content import VersionedSet
from graph.fold.loading import FOLLOW_KINDS
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Comparison, Element, Scope, set_element
from graph.store.commands import Command

NOTHING = VersionedSet()


class Following(Comparison):
    """Compares each user's list of followees, and the user in the lists of followers.

    One query and two round trips for 500 users and 1,000 followees; one more for differences. Users with more than
    10,000 events are split.
    """

    part = Part.FOLLOWS
    key = staticmethod(keys.following)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the follows that differ in one of the lists, those in lists of followers first."""
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.FOLLOWING, FOLLOW_KINDS):
            expected: dict[Element, int] = {}
            for user, held in events.following.items():
                expected |= {(user, followee): number for followee, number in held.members.items()}
                expected |= {(user, followee): -number for followee, number in held.tombstones.items()}
            rows = await self.scope.send([("ZRANGE", keys.following(user), 0, -1, "WITHSCORES") for user in users])
            following = {
                (user, int(followee)): int(number)
                for user, row in zip(users, rows, strict=True)
                for followee, number in row
                if followee.isdecimal()
            }
            reverse = {(followee, user): number for (user, followee), number in expected.items()}
            followers = await self.scope.scores(keys.followers, reverse)
            lacking = {pair: state for pair, state in reverse.items() if is_wrong(state, *followers[pair])}
            pairs = {*expected, *following}
            wrong = {pair: expected.get(pair) for pair in pairs if is_wrong(expected.get(pair), following.get(pair))}
            found += await differences(self.scope, lacking, in_followers=True, subject=1)
            found += await differences(self.scope, wrong, in_followers=False)
        return found


class Followers(Comparison):
    """Finds followers without any event. `Following` compares the others.

    Two round trips for 500 users and 10,000 followers, and one for every 1,000 followers. Differences take a query.
    """

    part = Part.FOLLOWS
    key = staticmethod(keys.followers)
    of_users = False

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the followers whom no event made followers."""
        found: list[Difference] = []
        async for members in self.scope.members(keys.followers, subjects):
            following = await self.scope.scores(keys.following, [pair[::-1] for pair in members])
            unsure = [pair for pair, number in members.items() if following[pair[::-1]] != [number]]
            actors = sorted({follower for _, follower in unsure})
            unknown: dict[Element, int | None] = {}
            async for some, events in self.scope.folded(actors, content.Part.FOLLOWING, FOLLOW_KINDS):
                known = events.following
                among = [pair for pair in unsure if pair[1] in some]
                unknown |= {(a, v): None for a, v in among if not known.get(v, NOTHING).version(a)}
            found += await differences(self.scope, unknown, in_followers=True)
        return found


def is_wrong(expected: int | None, member: int | None) -> bool:
    """Return True if a set holds a member that must not be there, or lacks one, or holds it with another number."""
    return member != (expected if expected and expected > 0 else None)


async def differences(
    scope: Scope, wrong: Mapping[Element, int | None], *, in_followers: bool, subject: int = 0
) -> list[Difference]:
    """Return those of the elements that are not newer than the archive. Two round trips per 1,000 sets.

    `subject` is the place, in an element, of the user to compare again.
    """
    found = []
    key, name = (keys.followers, "follower") if in_followers else (keys.following, "followee")
    for element, state in (await scope.states(key, wrong)).items():
        owner, member = element
        expected = wrong[element]
        if abs(state or 0) <= scope.upto and is_wrong(expected, state if state and state > 0 else None):
            commands: list[Command] = [set_element(key, element, state, expected, home=None if in_followers else owner)]
            commands += [("UNLINK", keys.home(member))] if in_followers else []
            text = f"{name} {member} of user {owner}: {describe(state)} instead of {describe(expected)}"
            found.append(Difference(Kind.FOLLOW_WRONG, element[subject], f"{name} {element}", text, commands))
    return found


def describe(state: int | None) -> str:
    """Return a description of the state of a follow."""
    return "nothing" if state is None else f"follow {state}" if state > 0 else f"unfollow {-state}"
