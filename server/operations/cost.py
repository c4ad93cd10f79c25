"""Cost analysis: computes the maximum cost of an operation from its document and page sizes, before execution.

Small documents can request a lot of data: nested pages multiply, and a long text under a hundred aliases is sent a
hundred times. The document limits bound the number of fields visited here, because they count a fragment each time it
is spread.

A value has one object type. If the type of a field is an interface or a union, fragments on different object types
exclude each other, and the most expensive object type counts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    VariableNode,
)
from graphql.language import ValueNode

from graph.paging import MAX_PAGE
from server.errors import COST_LIMIT
from server.operations.weights import (
    ARCHIVE,
    ARCHIVE_ROOTS,
    HASHES,
    HOME_PAGE,
    IDS,
    LIST_PAGE,
    LOG_INS,
    Merged,
    Weights,
)

COUNTED_TO = 10**9  # larger costs are reduced to this
SIZES = ("first", "last", "limit", "ids")
MANY_IDS = frozenset({"userIds", "addUserIds", "removeUserIds"})
TIMELINE = "Timeline"
MAX_ARCHIVE_ROOTS = 5  # root fields of an operation that read the archive
MAX_WRITES = IDS  # log entries of one operation; the rate limit for writes allows at least as many at once


@dataclass(frozen=True, slots=True)
class OperationCost:
    """The maximum cost of an operation: `points` for processing, and `size`, the bytes of the response data.

    `prepaid` is the part of the points that pays for reading the archive; further reads are charged afterwards.
    `archive_roots` is the number of root fields that read the archive. For a mutation, `writes` is the number of log
    entries that it may write; `hashes`, `sign_ups` and `log_ins` are the numbers of fields that hash a password, create
    a user, and log in.
    """

    points: int
    size: int
    prepaid: int = 0
    archive_roots: int = 0
    writes: int = 0
    hashes: int = 0
    sign_ups: int = 0
    log_ins: int = 0


@dataclass(frozen=True, slots=True)
class OperationLimits:
    """The limits of one operation: points, bytes of the response, and running time.

    `event_points` and `event_response` are the limits for each event of a subscription. `at_once` is the number of
    operations that one user, or one network of anonymous clients, may run concurrently if rates are limited.
    """

    points: int = 20_000
    event_points: int = 500
    response: int = 5_000_000
    deadline: timedelta = timedelta(seconds=10)
    at_once: int = 4
    event_response: int = 100_000

    def exceeded_by(self, cost: OperationCost, kind: OperationType) -> GraphQLError | None:
        """Return the error for an operation that exceeds a limit, or None if it is within all limits."""
        points, size = self.points, self.response
        if kind is OperationType.SUBSCRIPTION:  # one event may go to a thousand streams of one viewer
            points, size = self.event_points, min(self.event_response, self.response)
        if cost.archive_roots > MAX_ARCHIVE_ROOTS:
            message = (
                f"The operation has {cost.archive_roots} root fields that search posts or users or read the public "
                f"timeline; the limit is {MAX_ARCHIVE_ROOTS}. Split it into smaller operations."
            )
        elif cost.points > points:
            message = (
                f"The operation costs up to {cost.points:,} points; the limit is {points:,}. "
                "Request smaller pages or fewer fields."
            )
        elif cost.size > size:
            message = (
                f"The response could have up to {cost.size:,} bytes; the limit is {size:,}. "
                "Request smaller pages or fewer texts."
            )
        elif cost.writes > MAX_WRITES:
            message = (
                f"The operation writes up to {cost.writes:,} log entries; the limit is {MAX_WRITES}. "
                "Split it into smaller operations."
            )
        elif cost.hashes > 1:
            message = (
                f"The operation has {cost.hashes} fields that check or set a password; the limit is 1. "
                "Send them in separate operations."
            )
        else:
            return None
        return GraphQLError(message, extensions={"code": COST_LIMIT})


class Selected(NamedTuple):
    """The cost of some selections of one object: points and bytes, and amounts that do not multiply with page sizes.

    `home_pages` is the number of fields that read the home timeline. `prepaid` is the part of the points that pays for
    reading the archive.
    """

    points: float = 0.0
    size: int = 0
    home_pages: int = 0
    prepaid: float = 0.0

    def plus(self, other: "Selected") -> "Selected":
        """Return the sum of two costs."""
        points, size, home_pages, prepaid = other
        return Selected(self.points + points, self.size + size, self.home_pages + home_pages, self.prepaid + prepaid)

    @classmethod
    def most_expensive(cls, possible: frozenset[str], sums: "Mapping[frozenset[str], Selected]") -> "Selected":
        """Return the highest cost of an object of any possible type. `sums` are costs by the types that they apply to.

        One of the sums applies to all types. Points, bytes and home pages are each the highest of any type, because the
        items of a list may have different types. Prepaid points are the lowest of any type: they are a discount on
        later reads. O(types * sums).
        """
        if len(sums) == 1:
            return sums[possible]
        totals = [
            reduce(cls.plus, [cost for types, cost in sums.items() if each in types], NOTHING) for each in possible
        ]
        points, sizes, home_pages, prepaid = zip(*totals, strict=True)
        return cls(max(points), max(sizes), max(home_pages), min(prepaid))


NOTHING, BRACES = Selected(), Selected(size=2)


class CostAnalysis:
    """Computes the costs of the operations of one valid document, for given variables.

    `sized_by` contains the names of the variables that determined page sizes. The cost is the same for all requests in
    which these variables have the same sizes.
    """

    def __init__(self, weights: Weights, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._weights = weights
        self._document = document
        self._variables = variables
        self._fragments = fragments_of(document)
        self._defaults: Mapping[str, ValueNode | None] = {}
        self.sized_by: set[str] = set()

    def of(self, operation_name: str | None) -> OperationCost:
        """Return the cost of the named operation, or of the most expensive operation if the name is None. O(fields)."""
        costs = [
            self._operation(node)
            for node in self._document.definitions
            if isinstance(node, OperationDefinitionNode)
            and operation_name in (None, node.name.value if node.name else None)
        ]
        return max(costs, key=lambda cost: cost.points, default=OperationCost(0, 0))

    def _operation(self, node: OperationDefinitionNode) -> OperationCost:
        self._defaults = {each.variable.name.value: each.default_value for each in node.variable_definitions or ()}
        root = self._weights.roots[node.operation.value]
        selected = self._selections(node.selection_set, root, 1, Merged.NONE)
        points = selected.points + HOME_PAGE * selected.home_pages
        of_root = list(fields_of(node.selection_set, self._fragments))
        fields = of_root if node.operation.value == "mutation" else []
        names = [field.name.value for field in fields]
        return OperationCost(
            points=min(math.ceil(points), COUNTED_TO),
            size=selected.size,
            prepaid=math.floor(selected.prepaid),
            archive_roots=sum(f"{root}.{field.name.value}" in ARCHIVE_ROOTS for field in of_root),
            writes=sum(map(self._writes, fields)),
            hashes=sum(f"{root}.{name}" in HASHES for name in names),
            sign_ups=names.count("signUp"),
            log_ins=sum(names.count(name) for name in LOG_INS),
        )

    def _selections(self, selection_set: SelectionSetNode, type_: str, page: int, merged: Merged) -> Selected:
        """Return the cost of one object's selections, for the most expensive object type that the object may have.

        If the object is a connection, its lists have `page` items. `merged` is the kind of merged timeline that the
        object may be.
        """
        possible = self._weights.possible_types(type_)
        sums = {possible: BRACES}
        self._add(selection_set, type_, possible, page, merged, sums)
        found = Selected.most_expensive(possible, sums)
        if found.points > COUNTED_TO or found.size > COUNTED_TO:
            found = found._replace(points=min(found.points, COUNTED_TO), size=min(found.size, COUNTED_TO))
        return found

    def _add(
        self,
        selection_set: SelectionSetNode,
        type_: str,
        objects: frozenset[str],
        page: int,
        merged: Merged,
        sums: dict[frozenset[str], Selected],
    ) -> None:
        """Add the cost of each field to the sum for the object types that have it: `objects`, or a subset in fragments.

        Sums are kept by set of object types. A schema has few such sets, and each field is visited once, regardless of
        how many object types have it.
        """
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                sums[objects] = sums.get(objects, NOTHING).plus(self._field(node, type_, page, merged))
                continue
            fragment = self._fragments[node.name.value] if isinstance(node, FragmentSpreadNode) else node
            if isinstance(fragment, FragmentDefinitionNode | InlineFragmentNode):
                condition = fragment.type_condition.name.value if fragment.type_condition else type_
                if having := objects & self._weights.possible_types(condition):
                    self._add(fragment.selection_set, condition, having, page, merged, sums)

    def _field(self, node: FieldNode, type_: str, page: int, merged: Merged) -> Selected:
        weight = self._weights.of(type_, node.name.value)
        asked = [self._size(each.value, self._defaults) for each in node.arguments or () if each.name.value in SIZES]
        times: float = page if weight.of_page else weight.many
        own_page = min(max([0, *asked]), MAX_PAGE)
        if asked and weight.type is not None and weight.many > 1:
            times, own_page = (
                own_page or weight.least,
                1,
            )  # the argument is the length of the list; a single value counts as one
        points, size = weight.points + own_page * weight.per_item, weight.size
        home_pages, prepaid = 0, ARCHIVE.get(f"{type_}.{node.name.value}", 0.0)
        if type_ == TIMELINE and weight.type is not None and own_page > 0:
            home_pages += merged is Merged.HOME  # all parents share one home timeline
            points += LIST_PAGE if merged is Merged.LISTS else 0
        if node.selection_set is not None and weight.type is not None:
            inner = self._selections(node.selection_set, weight.type, own_page, weight.merged)
            points, size = points + inner.points, size + inner.size
            home_pages, prepaid = home_pages + inner.home_pages, prepaid + inner.prepaid
        key = len((node.alias or node.name).value) + 4
        return Selected(points * (weight.usual or times), math.ceil(size * times) + key, home_pages, prepaid)

    def _writes(self, field: FieldNode) -> int:
        """Return the number of log entries that a mutation writes: one, or one per id."""
        sizes = [self._size(each.value, self._defaults) for each in field.arguments or () if each.name.value == "input"]
        return min(max([1, *sizes]), IDS)

    def _size(self, value: ValueNode | None, defaults: Mapping[str, ValueNode | None]) -> int:
        """Return the page size or list length that a value requests, or 0 for other values, which execution refuses."""
        if isinstance(value, VariableNode):
            name = value.name.value
            self.sized_by.add(name)
            if name not in self._variables:
                return self._size(defaults.get(name), {})
            return size_of(self._variables[name])
        if isinstance(value, IntValueNode):
            return int(value.value) if len(value.value) <= 9 else MAX_PAGE
        if isinstance(value, ObjectValueNode):
            return max([0, *(self._size(each.value, defaults) for each in value.fields if each.name.value in MANY_IDS)])
        return len(value.values) if isinstance(value, ListValueNode) else 0


def fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    """Return the fragments of a document by name."""
    return {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}


def fields_of(selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]) -> Iterator[FieldNode]:
    """Yield the top-level fields of a selection set, including fields in fragments. A field may occur repeatedly."""
    for node in selection_set.selections:
        if isinstance(node, FieldNode):
            yield node
        elif isinstance(node, InlineFragmentNode):
            yield from fields_of(node.selection_set, fragments)
        elif isinstance(node, FragmentSpreadNode):
            yield from fields_of(fragments[node.name.value].selection_set, fragments)


def size_of(given: object) -> int:
    """Return the size that a variable requests: a number, the length of a list, or the number of ids in an input."""
    if isinstance(given, dict):
        return max([0, *(len(each) for name, each in given.items() if name in MANY_IDS and isinstance(each, list))])
    if isinstance(given, list):
        return len(given)
    if isinstance(given, float):
        return int(given) if math.isfinite(given) else 0
    return given if isinstance(given, int) else 0
