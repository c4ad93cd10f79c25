"""Comparison of blocks. Blocks determine which follows count, so they are compared before follows."""

from collections.abc import Mapping, Sequence

from graph import keys
from graph.fold import content
from graph.fold.content import VersionedSet
from graph.relations.follows_and_blocks import BLOCK_KINDS
from graph.relations.register import FOLLOWS_AND_BLOCKS
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Comparison, Element, Key, Scope, set_element
from graph.repair.versioned_sets import expected_of, id_of, still_wrong, wrong_elements

NOTHING = VersionedSet[int]()


class BlockComparison(Comparison):
    """Compares each user's list of blocked users, and the user's entries in the blocked users' lists of blockers.

    One query and two round trips for 500 users; one more for differences.
    """

    part = defects.BLOCKS
    key = staticmethod(keys.blocking)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the blocks that differ."""
        found: list[Difference] = []
        fold = FOLLOWS_AND_BLOCKS.fold
        async for users, events in self.scope.folded(subjects, content.Part.BLOCKS, BLOCK_KINDS, fold):
            blocking = expected_of((user, events.blocking.get(user, NOTHING)) for user in users)
            wrong = await wrong_elements(self.scope, keys.blocking, users, blocking, id_of)
            found += await differences(self.scope, keys.blocking, wrong)
            reverse = {(blocked, user): state for (user, blocked), state in blocking.items()}
            found += await differences(self.scope, keys.blockers, reverse, subject=1)
        return found


class BlockerComparison(Comparison):
    """Finds blockers for whom the archive has no event. `BlockComparison` compares the others."""

    part = defects.BLOCKS
    key = staticmethod(keys.blockers)
    of_users = False

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return a difference for each stored blocker without an event."""
        found: list[Difference] = []
        fold = FOLLOWS_AND_BLOCKS.fold
        async for members in self.scope.members(keys.blockers, subjects):
            unknown: dict[Element, int | None] = {}
            actors = sorted({blocker for _, blocker in members})
            async for some, events in self.scope.folded(actors, content.Part.BLOCKS, BLOCK_KINDS, fold):
                known = events.blocking
                among = [pair for pair in members if pair[1] in some]
                unknown |= {(a, v): None for a, v in among if not known.get(v, NOTHING).version(a)}
            found += await differences(self.scope, keys.blockers, unknown)
        return found


async def differences(
    scope: Scope, key: Key, wrong: Mapping[Element, int | None], *, subject: int = 0
) -> list[Difference]:
    """Return a difference for each element that is still wrong and not newer than the archive.

    `wrong` has the expected states. `subject` is the position, in an element, of the user to compare again. One round
    trip per 500 sets.
    """
    found = []
    for element, state in (await still_wrong(scope, key, wrong)).items():
        owner, other = element
        expected = wrong[element]
        command = set_element(key, element, state, expected, home=owner)
        name = key(owner)
        text = f"user {other} in {name}: {state or 'nothing'} instead of {expected or 'nothing'}"
        found.append(Difference(defects.BLOCK_WRONG, element[subject], f"{name} {other}", text, [command]))
    return found
