"""Comparison of the sets of pairs, such as mutes. Some pairs affect home caches, which are compared later."""

from collections.abc import AsyncIterator, Mapping, Sequence

from graph.fold import content
from graph.fold.content import VersionedSet
from graph.fold.reading import names_of
from graph.relations.pair_sets import PairSet
from graph.relations.register import PAIRS
from graph.repair.defects import Defect
from graph.repair.report import Difference
from graph.repair.scope import Comparison, set_element
from graph.repair.versioned_sets import expected_of, still_wrong, wrong_elements

NOTHING = VersionedSet[str]()


class PairComparison(Comparison):
    """Compares all sets of pairs of each user.

    One query and one round trip per set for 500 users; one more for differences. Groups of users with more than 10,000
    events are split.
    """

    part = " and ".join(", ".join(f"{each.noun}s" for each in PAIRS.pair_sets).rsplit(", ", 1))
    key = staticmethod(PAIRS.pair_sets[0].key)

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield all users, and the owners of stored sets that are not users."""
        async for users in super().subjects():
            yield users
        for each in PAIRS.pair_sets[1:]:
            async for owners in self.scope.strangers(each.key):
                yield owners

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in the pairs of these users."""
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.PAIRS, names_of(PAIRS.kinds), PAIRS.fold):
            for each in PAIRS.pair_sets:
                held = PAIRS.of(events, each)
                expected = expected_of((user, held.get(user, NOTHING)) for user in users)
                wrong = await wrong_elements(self.scope, each.key, users, expected, member_of)
                found += await self._differences(each, wrong)
        return found

    async def _differences(self, pair_set: PairSet, wrong: Mapping[tuple[int, str], int | None]) -> list[Difference]:
        """Return a difference for each pair that is still wrong and not newer than the archive."""
        found = []
        for element, state in (await still_wrong(self.scope, pair_set.key, wrong)).items():
            (owner, member), expected = element, wrong[element]
            home = owner if pair_set.drops_home else None
            command = set_element(pair_set.key, element, state, expected, home=home)
            name = pair_set.key(owner)
            text = f"{member} in {name}: {state or 'nothing'} instead of {expected or 'nothing'}"
            found.append(Difference(defect_of(pair_set), owner, f"{name} {member}", text, [command]))
        return found


def defect_of(pair_set: PairSet) -> Defect:
    """Return the defect that a wrong pair of this set has."""
    correction = "set it to what the last event says" + (", and delete the home cache" if pair_set.drops_home else "")
    return Defect(PairComparison.part, f"a {pair_set.noun} is missing or wrong", correction)


def member_of(text: str) -> str | None:
    """Return a member as the store holds it, or None for a floor."""
    return None if text == "f" else text
