"""What an operation may take at most: counted from its document and the sizes of its pages, before anything runs.

Small documents can ask for a lot, since nested pages multiply, and a long text under a hundred aliases is sent a
hundred times. The limits on documents bound the fields that are visited here, with fragments counted wherever they are
spread.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    SelectionSetNode,
    VariableNode,
)
from graphql.language import ValueNode

from graph.paging import MAX_PAGE
from server.errors import COST_LIMIT
from server.operations.weights import HASHES, HOME_PAGE, IDS, Weights

COUNTED_TO = 10**9
SIZES = ("first", "last", "ids")
MANY_IDS = "userIds"
TIMELINE = "Timeline"
MAX_WRITES = IDS  # of one operation: rates charge at most a burst, which has room for so many


@dataclass(frozen=True, slots=True)
class Demand:
    """What an operation may take at most.

    `points` are of processing, `size` the bytes of the data. Of a mutation: how many entries it may write, and how many
    of its fields hash a password, create a user, or log in.
    """

    points: int
    size: int
    writes: int = 0
    hashes: int = 0
    sign_ups: int = 0
    log_ins: int = 0


class Cost:
    """Counts what the operations of one valid document may take, with the values of its variables.

    `sized_by` has the variables that were looked at: with the same sizes, the demand is the same.
    """

    def __init__(self, weights: Weights, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._weights = weights
        self._document = document
        self._variables = variables
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._defaults: Mapping[str, ValueNode | None] = {}
        self._home_pages = 0
        self.sized_by: set[str] = set()

    def of(self, operation_name: str | None) -> Demand:
        """Return what an operation may take; of several without a name, which is refused, the dearest. O(fields)."""
        demands = [
            self._operation(node)
            for node in self._document.definitions
            if isinstance(node, OperationDefinitionNode)
            and operation_name in (None, node.name.value if node.name else None)
        ]
        return max(demands, key=lambda demand: demand.points, default=Demand(0, 0))

    def _operation(self, node: OperationDefinitionNode) -> Demand:
        self._defaults = {each.variable.name.value: each.default_value for each in node.variable_definitions or ()}
        root = self._weights.roots[node.operation.value]
        self._home_pages = 0
        points, size = self._selections(node.selection_set, root, 1, home=False)
        points += HOME_PAGE * self._home_pages
        fields = list(self._fields_of(node.selection_set)) if node.operation.value == "mutation" else []
        names = [field.name.value for field in fields]
        return Demand(
            points=min(math.ceil(points), COUNTED_TO),
            size=min(size, COUNTED_TO),
            writes=sum(map(self._written, fields)),
            hashes=sum(f"{root}.{name}" in HASHES for name in names),
            sign_ups=names.count("signUp"),
            log_ins=names.count("logIn"),
        )

    def _selections(self, selection_set: SelectionSetNode, type_: str, page: int, *, home: bool) -> tuple[float, int]:
        """Return the points and bytes of one object's selections; lists of a connection are as long as its page.

        `home`: the object may be the viewer's home timeline.
        """
        points, size = 0.0, 2
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                more, bytes_ = self._field(node, type_, page, home=home)
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition.name.value if node.type_condition else type_
                more, bytes_ = self._selections(node.selection_set, condition, page, home=home)
            elif isinstance(node, FragmentSpreadNode):
                fragment = self._fragments[node.name.value]
                condition = fragment.type_condition.name.value
                more, bytes_ = self._selections(fragment.selection_set, condition, page, home=home)
            points, size = min(points + more, COUNTED_TO), min(size + bytes_, COUNTED_TO)
        return points, size

    def _field(self, node: FieldNode, type_: str, page: int, *, home: bool) -> tuple[float, int]:
        weight = self._weights.of(type_, node.name.value)
        asked = [self._size(each.value, self._defaults) for each in node.arguments or () if each.name.value in SIZES]
        times: float = page if weight.of_page else weight.many
        own_page = min(max([0, *asked]), MAX_PAGE)
        if asked and weight.type is not None and weight.many > 1:
            times, own_page = max(1, own_page), 1  # a list as long as its argument, in which a lone value counts as one
        points, size = weight.points + own_page * weight.per_item, weight.size
        self._home_pages += home and type_ == TIMELINE and own_page > 0  # there is only one, however many parents
        if node.selection_set is not None and weight.type is not None:
            inner, bytes_ = self._selections(node.selection_set, weight.type, own_page, home=weight.home)
            points, size = points + inner, size + bytes_
        key = len((node.alias or node.name).value) + 4
        return points * times, math.ceil(size * times) + key

    def _fields_of(self, selection_set: SelectionSetNode) -> Iterator[FieldNode]:
        """Yield the root fields of an operation, those of fragments too, some of them perhaps more than once."""
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                yield from self._fields_of(node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                yield from self._fields_of(self._fragments[node.name.value].selection_set)

    def _written(self, field: FieldNode) -> int:
        """Return how many entries a mutation writes: one, or one for each of its ids."""
        sizes = [self._size(each.value, self._defaults) for each in field.arguments or () if each.name.value == "input"]
        return min(max([1, *sizes]), IDS)

    def _size(self, value: ValueNode | None, defaults: Mapping[str, ValueNode | None]) -> int:
        """Return a page size, or the length of a list; 0 for anything else, which execution refuses."""
        if isinstance(value, VariableNode):
            name = value.name.value
            self.sized_by.add(name)
            if name not in self._variables:
                return self._size(defaults.get(name), {})
            return size_of(self._variables[name])
        if isinstance(value, IntValueNode):
            return int(value.value) if len(value.value) <= 9 else MAX_PAGE
        if isinstance(value, ObjectValueNode):
            return max([0, *(self._size(each.value, defaults) for each in value.fields if each.name.value == MANY_IDS)])
        return len(value.values) if isinstance(value, ListValueNode) else 0


def size_of(given: object) -> int:
    """Return the size that a variable's value stands for: a number, the length of a list, that of an input's ids."""
    if isinstance(given, dict):
        given = given.get(MANY_IDS)
    if isinstance(given, list):
        return len(given)
    if isinstance(given, float):
        return int(given) if math.isfinite(given) else 0
    return given if isinstance(given, int) else 0


def refusal(demand: Demand, max_points: int, max_size: int) -> GraphQLError | None:
    """Return the error of an operation that demands too much; None if it does not."""
    if demand.points > max_points:
        message = (
            f"The operation costs up to {demand.points:,} points; the limit is {max_points:,}. "
            "Request smaller pages or fewer fields."
        )
    elif demand.size > max_size:
        message = (
            f"The response could have up to {demand.size:,} bytes; the limit is {max_size:,}. "
            "Request smaller pages or fewer texts."
        )
    elif demand.writes > MAX_WRITES:
        message = (
            f"The operation writes up to {demand.writes:,} entries; the limit is {MAX_WRITES}. Send fewer at once."
        )
    elif demand.hashes > 1:
        message = f"The operation has {demand.hashes} fields that check or set a password; 1 is allowed."
    else:
        return None
    return GraphQLError(message, extensions={"code": COST_LIMIT})
