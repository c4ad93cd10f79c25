"""Comparison of lists of users: their existence, their names, and their members."""

from collections.abc import Iterator, Mapping, Sequence

from graph import keys
from graph.fold import content
from graph.fold.content import UserLists, VersionedSet
from graph.fold.reading import names_of
from graph.relations.lists import list_names
from graph.relations.register import LISTS
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Comparison, Element, Key, number, set_element, set_fields
from graph.repair.versioned_sets import expected_of, id_of, still_wrong, wrong_elements

NOTHING = UserLists()
EMPTY = VersionedSet[int]()


class ListComparison(Comparison):
    """Compares the lists of each user. One query and three round trips for 500 users; two more for differences.

    Groups of users with more than 10,000 events are split.
    """

    part = defects.LISTS
    key = staticmethod(keys.lists)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in lists, names and members."""
        found: list[Difference] = []
        kinds = names_of(LISTS.kinds)
        async for users, events in self.scope.folded(subjects, content.Part.LISTS, kinds, LISTS.fold):
            held = {user: events.lists.get(user, NOTHING) for user in users}
            found += await self._lists(held)
            found += await self._names(held)
            found += await self._members(held)
        return found

    async def _lists(self, held: Mapping[int, UserLists]) -> list[Difference]:
        """Return the differences for lists that are missing, and for lists that no event created."""
        expected = expected_of((user, lists.lists) for user, lists in held.items())
        wrong = await wrong_elements(self.scope, keys.lists, [*held], expected, id_of)
        return [
            difference(user, keys.lists, (user, list_id), state, wrong[user, list_id], f"list {list_id} of user {user}")
            for (user, list_id), state in (await still_wrong(self.scope, keys.lists, wrong)).items()
        ]

    async def _names(self, held: Mapping[int, UserLists]) -> list[Difference]:
        """Return the differences in the names of lists."""
        rows = await self.scope.send([("HGETALL", keys.list_names(user)) for user in held])
        wrong = [
            (user, list_id, actual, wanted)
            for (user, lists), fields in zip(held.items(), rows, strict=True)
            for list_id, actual, wanted in wrong_names(lists, fields)
            if number(actual.get(f"{list_id}:at")) <= self.scope.up_to
        ]
        current = await self._not_newer([(user, list_id) for user, list_id, _, _ in wrong])
        return [
            Difference(
                defects.LIST_WRONG,
                user,
                f"name of {list_id}",
                f"name of list {list_id} of user {user}",
                [set_fields(keys.list_names(user), actual, wanted)],
            )
            for user, list_id, actual, wanted in wrong
            if (user, list_id) in current
        ]

    async def _members(self, held: Mapping[int, UserLists]) -> list[Difference]:
        """Return the differences in the members of lists. A deleted list must have no members."""
        owners = {
            list_id: user for user, lists in held.items() for list_id in (*lists.members, *lists.lists.tombstones)
        }

        def key(list_id: int) -> str:
            return keys.list_members(owners[list_id], list_id)

        expected = expected_of((each, held[user].members.get(each, EMPTY)) for each, user in owners.items())
        wrong = await wrong_elements(self.scope, key, [*owners], expected, id_of)
        states = await still_wrong(self.scope, key, wrong)
        current = await self._not_newer(list(dict.fromkeys((owners[list_id], list_id) for list_id, _ in states)))
        return [
            difference(
                owners[list_id],
                key,
                (list_id, user),
                state,
                wrong[list_id, user],
                f"user {user} in list {list_id} of user {owners[list_id]}",
            )
            for (list_id, user), state in states.items()
            if (owners[list_id], list_id) in current
        ]

    async def _not_newer(self, lists: Sequence[Element]) -> set[Element]:
        """Return the (owner, list) pairs, except lists created or deleted by events that are newer than the archive."""
        states = await self.scope.states(keys.lists, lists) if lists else {}
        return {element for element, state in states.items() if abs(state or 0) <= self.scope.up_to}


def difference(
    owner: int, key: Key, element: Element, found: int | None, expected: int | None, text: str
) -> Difference:
    """Return the difference that reports an element of a versioned set of a user."""
    command = set_element(key, element, found, expected)
    return Difference(defects.LIST_WRONG, owner, f"{key(element[0])} {element[1]}", text, [command])


def wrong_names(lists: UserLists, fields: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str], dict[str, str]]]:
    """Yield the lists whose names differ, each with the fields that the store holds and the fields it must hold."""
    expected = list_names(lists)
    for list_id in sorted({*lists.names, *(int(name) for name in fields if name.isdecimal())}):
        names = (str(list_id), f"{list_id}:at")
        actual, wanted = ({name: all_[name] for name in names if name in all_} for all_ in (fields, expected))
        if actual != wanted:
            yield list_id, actual, wanted
