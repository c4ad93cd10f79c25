"""The validation rule for overlapping fields.

graphql-core's `OverlappingFieldsCanBeMergedRule` compares every pair of fields with the same response name. This rule
follows the algorithm by Simon Adameit that Sangria and graphql-java use: it merges the selection sets of a response
path, groups their fields by response name, and compares each group as a whole. Each fragment is expanded at most once
per merged selection set.

The specification describes the rule at https://spec.graphql.org/draft/#sec-Field-Selection-Merging.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from graphlib import CycleError
from itertools import combinations
from typing import Any, TypeAlias

from graphql import DocumentNode, GraphQLError, GraphQLNamedType, ValidationContext, ValidationRule, is_object_type
from graphql.validation.validate import ValidationAbortedError

from server.operations.overlaps.selections import Field, Reader, Selections

MAX_CONFLICTS = 20  # reported per document
MAX_STEPS = 20_000  # fields visited and pairs of fields compared, per document
MAX_DETAIL = 1_000  # characters of a name or a reason in an error

Context: TypeAlias = tuple[tuple[int, GraphQLNamedType], ...]
"""The object types that a field's ancestors must have for the field to be selected, as pairs of level and type."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A field at a response path, with its context and the field above it."""

    field: Field
    context: Context
    above: "Place | None"


Merged: TypeAlias = dict[tuple[Selections, Context], Place | None]
"""The selections that are merged at one response path, with their contexts; the values are the fields above them."""


class LinearOverlappingFields(ValidationRule):
    """Refuse fields that share a response name but cannot be merged.

    If all other specified rules accept a document, this rule accepts it exactly if graphql-core's
    `OverlappingFieldsCanBeMergedRule` does. It reports at most one conflict for each response path, and at most
    `MAX_CONFLICTS` in total. A document whose fragments form a cycle is left to `NoFragmentCyclesRule`. Fragment
    variables, an experimental feature that the parser disables by default, are refused.

    Time and memory are O(n), where n is the number of fields after all fragments are spread. The exception is fields
    that differ in name or arguments below different object types: for them, each pair of distinct contexts is compared.
    `MAX_STEPS` bounds both costs.
    """

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self._steps = 0
        self._reported: set[tuple[Field, Field]] = set()

    def leave_document(self, document: DocumentNode, *_args: Any) -> None:
        """Check the whole document, after the other rules have visited it."""
        reader = Reader(self.context.schema)
        try:
            roots = reader.roots(document)
        except CycleError:
            return
        if reader.variables:
            message = "Fragments with variables or arguments are not supported. Declare variables on the operation."
            self.report_error(GraphQLError(message, reader.variables[:1]))
            return
        for root in roots:
            self._check(root)

    def _check(self, root: Selections) -> None:
        """Visit each merged selection set below a root once, level by level."""
        pending: deque[tuple[int, Merged]] = deque([(0, {(part, ()): None for part in root.expanded})])
        seen = set()
        while pending:
            level, merged = pending.popleft()
            key = frozenset(merged)
            if key not in seen:
                seen.add(key)
                for group in self._groups(merged):
                    below = self._merge(level, group)
                    if below:
                        pending.append((level + 1, below))

    def _groups(self, merged: Merged) -> Iterable[list[Place]]:
        groups: dict[str, list[Place]] = {}
        for (selections, context), above in merged.items():
            self._spend(1 + len(selections.fields))
            for field in selections.fields:
                groups.setdefault(field.response_name, []).append(Place(field, context, above))
        return groups.values()

    def _merge(self, level: int, group: list[Place]) -> Merged:
        """Check the fields of one response path. Return the selections below them, or nothing if they conflict."""
        if len(group) > 1:
            group = _in_contexts(level, group)
            conflict = self._conflict(group)
            if conflict:
                self._report(*conflict)
                return {}
        alone = all(place.context == group[0].context for place in group)
        merged: Merged = {}
        for place in group:
            if place.field.selections:
                for part in place.field.selections.expanded:
                    merged.setdefault((part, () if alone else place.context), place)
        return merged

    def _conflict(self, group: list[Place]) -> tuple[Place, Place, str] | None:
        if pair := self._differing_calls(group):
            one, other = (place.field.node.name.value for place in pair)
            if one != other:
                return *pair, f"'{_short(one)}' and '{_short(other)}' are different fields"
            return *pair, "they have differing arguments"
        if any(place.field.streamed for place in group) and (pair := _differing(group, lambda field: field)):
            return *pair, "they have overlapping stream directives"
        typed = [place for place in group if place.field.shape is not None]
        if pair := _differing(typed, lambda field: field.shape):
            one, other = (str(place.field.definition.type) for place in pair if place.field.definition)
            return *pair, f"they return conflicting types '{one}' and '{other}'"
        return None

    def _differing_calls(self, group: list[Place]) -> tuple[Place, Place] | None:
        """Return two fields that can be selected on the same object but differ in name or arguments, if any."""
        if not _differing(group, lambda field: field.call):
            return None
        firsts: dict[Context, Place] = {}
        for place in group:
            first = firsts.setdefault(place.context, place)
            if first.field.call != place.field.call:
                return first, place
        for one, other in combinations(firsts.values(), 2):
            self._spend(1)
            if one.field.call != other.field.call and _compatible(one.context, other.context):
                return one, other
        return None

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise ValidationAbortedError(
                f"Checking overlapping fields takes more than {MAX_STEPS:,} steps. Spread fewer fragments."
            )

    def _report(self, one: Place, other: Place, reason: str) -> None:
        """Report a conflict, starting at the selection set that contains both fields or their ancestors."""
        if (one.field, other.field) in self._reported:
            return
        self._reported.add((one.field, other.field))
        nodes = [one.field.node, other.field.node]
        while one.above and other.above and one.above.field is not other.above.field:
            reason = f"subfields '{_short(one.field.response_name)}' conflict because {reason}"
            one, other = one.above, other.above
        if one.field.node is not nodes[0]:
            nodes = [one.field.node, other.field.node, *nodes]
        self.report_error(
            GraphQLError(
                f"Fields '{_short(one.field.response_name)}' conflict because {_short(reason)}."
                " Use different aliases on the fields to fetch both if this was intentional.",
                nodes,
            )
        )
        if len(self._reported) >= MAX_CONFLICTS:
            raise ValidationAbortedError(f"Validation stopped after {MAX_CONFLICTS} conflicting fields.")


def _in_contexts(level: int, group: list[Place]) -> list[Place]:
    """Add the parents' object types to the contexts, if the parents have at least two different object types."""
    if len({place.field.parent for place in group if is_object_type(place.field.parent)}) < 2:
        return group
    return [
        Place(place.field, (*place.context, (level, place.field.parent)), place.above)
        if is_object_type(place.field.parent)
        else place
        for place in group
    ]


def _compatible(one: Context, other: Context) -> bool:
    """Return True if one object at each level can satisfy both contexts."""
    types = dict(one)
    return all(types.get(level, type_) is type_ for level, type_ in other)


def _differing(group: list[Place], key: Callable[[Field], Hashable]) -> tuple[Place, Place] | None:
    """Return two fields with different keys, if any."""
    first = key(group[0].field) if group else None
    return next(((group[0], place) for place in group if key(place.field) != first), None)


def _short(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else text[:MAX_DETAIL] + "..."
