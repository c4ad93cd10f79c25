"""The cost of fragments: if fragments exclude each other, the most expensive object type counts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from graphql import (
    FieldNode,
    FieldsOnCorrectTypeRule,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    InlineFragmentNode,
    ScalarLeafsRule,
    SelectionSetNode,
    build_schema,
    is_abstract_type,
    is_object_type,
    parse,
    validate,
)
from hypothesis import HealthCheck, given, settings

from schema import schema
from server.operations.cost import COUNTED_TO, CostAnalysis, OperationCost, Selected
from server.operations.weights import HOME_PAGE, RAISED, Merged, Weights
from tests.server.operations.overlapping import Choices, Writer, choices

SCHEMA = schema._schema
WEIGHTS = Weights(SCHEMA)
DOCUMENTS, LONG_DOCUMENTS = 150, 5_000
BRACES = 2

PETS = build_schema("""
    type Query { pet: Pet  pets: [Pet]  any: Any  dog: Dog }
    interface Named { age: Int }
    interface Pet implements Named { age: Int  friend: Pet }
    type Dog implements Pet & Named { age: Int  friend: Pet  barks: Int  owner: Human }
    type Cat implements Pet & Named { age: Int  friend: Pet  lives: Int }
    type Human implements Named { age: Int  height: Int  pet: Pet }
    union Any = Dog | Human
""")
OF_PETS = Weights(PETS)


def cost(document: str, weights: Weights = OF_PETS, **variables: Any) -> OperationCost:
    return CostAnalysis(weights, parse(document), variables).of(None)


EQUAL = {
    "two object types": (
        "{ pet { ... on Dog { barks age } ... on Cat { lives } } }",
        "{ pet { ... on Dog { barks age } } }",
    ),
    "the field of the interface counts for each": (
        "{ pet { age ... on Dog { a: barks } ... on Cat { a: lives b: lives } } }",
        "{ pet { ... on Cat { age a: lives b: lives } } }",
    ),
    "a fragment on an interface counts for the types that implement it": (
        "{ any { ... on Pet { a: age } ... on Dog { barks } ... on Human { height } } }",
        "{ any { ... on Dog { a: age barks } } }",
    ),
    "a fragment on a union counts for its members": (
        "{ pet { ... on Any { ... on Dog { barks } } ... on Cat { lives } } }",
        "{ pet { ... on Dog { barks } } }",
    ),
    "nested fragments narrow the types": (
        "{ any { ... on Named { a: age ... on Pet { b: age ... on Dog { barks } } ... on Human { height } } } }",
        "{ any { ... on Dog { a: age b: age barks } } }",
    ),
    "nested fragments that no type satisfies": (
        "{ pet { age ... on Dog { ... on Named { ... on Cat { a: lives b: lives c: lives } } } } }",
        "{ pet { age } }",
    ),
    "fragments on an object": (
        "{ dog { barks ... on Named { ... on Human { a: height b: height } } ... on Pet { age } } }",
        "{ dog { barks age } }",
    ),
    "named fragments": (
        "{ pet { ...D ...C } } fragment D on Dog { barks age } fragment C on Cat { ...L } fragment L on Cat { lives }",
        "{ pet { ... on Dog { barks age } } }",
    ),
    "a fragment without a condition": (
        "{ pet { ... { age ... on Dog { barks } } ... on Cat { lives } } }",
        "{ pet { ... on Dog { age barks } } }",
    ),
    "directives do not matter": (
        "query ($x: Boolean!) { pet { ... on Dog @skip(if: $x) { barks age } ... on Cat { lives @include(if: $x) } } }",
        "{ pet { ... on Dog { barks age } } }",
    ),
    "fields below fields": (
        "{ pet { friend { ... on Dog { barks } ... on Cat { lives } } ... on Dog { owner { pet { age } } } } }",
        "{ pet { ... on Dog { friend { ... on Dog { barks } } owner { pet { age } } } } }",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "most_expensive"), EQUAL.values(), ids=EQUAL)
def test_the_most_expensive_object_type_counts(document: str, most_expensive: str) -> None:
    """The document costs as much as one with the selections of one type only."""
    assert cost(document) == cost(most_expensive)


def test_points_and_bytes_are_each_the_highest() -> None:
    """The values of a list have different types. One type can have more points, another one more bytes."""
    fields, text = "a: age b: age c: age", f"{'x' * 100}: lives"
    both = cost(f"{{ pets {{ ... on Dog {{ {fields} }} ... on Cat {{ {text} }} }} }}")
    assert both.points == cost(f"{{ pets {{ ... on Dog {{ {fields} }} }} }}").points
    assert both.size == cost(f"{{ pets {{ ... on Cat {{ {text} }} }} }}").size


def test_home_pages_of_types_that_exclude_each_other_count_once() -> None:
    """A home timeline is read for a viewer or for a timeline, not for both."""
    viewer = "... on Viewer { homeTimeline { entries(first: 1) { nodes { id } } } }"
    timeline = "... on Timeline { entries(first: 1) { nodes { id } } }"
    document = '{ node(id: "x") { %s } }'
    assert cost(document % f"{viewer} {timeline}", WEIGHTS) == cost(document % viewer, WEIGHTS)
    assert cost(document % f"{timeline} {timeline}", WEIGHTS).points > 2 * HOME_PAGE


def test_what_one_type_has_prepaid_does_not_pay_for_another() -> None:
    """Prepaid points are a discount on later reads, so the object type with the lowest ones counts."""
    analysis = CostAnalysis(OF_PETS, parse("{ pet { age } }"), {})
    dog, cat = frozenset(["Dog"]), frozenset(["Cat"])
    sums = {dog: Selected(9, prepaid=5), cat: Selected(7, prepaid=3), dog | cat: Selected(1, prepaid=1)}
    assert analysis.of(None).prepaid == 0
    assert Selected.most_expensive(dog | cat, sums) == Selected(10, prepaid=4)


@pytest.mark.parametrize("field", ["node", "event", "entity", "entry"])
def test_interfaces_of_the_schema_count_their_most_expensive_type(field: str) -> None:
    """The interfaces are those of nodes, stream events, text entities and timeline entries."""
    frame, parts = {
        "node": ('{ node(id: "x") { id %s } }', ["User { bio name }", "Post { text author { bio } }"]),
        "event": (
            "subscription { homeTimeline { cursor %s } }",
            [
                "PostAdded { post { text } }",
                "RepostAdded { repost { id } }",
                "AuthorAdded { user { bio } }",
                "Gap { reason }",
            ],
        ),
        "entity": (
            '{ post(id: "x") { entities { start %s } } }',
            ["MentionEntity { user { bio } }", "HashtagEntity { tag }", "LinkEntity { url }"],
        ),
        "entry": (
            "{ viewer { homeTimeline { entries(first: 30) { nodes { id %s } } } } }",
            ["Post { text quotedPost { text author { bio } } }", "Repost { post { text author { bio } } }"],
        ),
    }[field]  # fmt: skip
    alone = [cost(frame % f"... on {part}", WEIGHTS) for part in parts]
    together = cost(frame % " ".join(f"... on {part}" for part in parts), WEIGHTS)
    assert together.points == max(each.points for each in alone)
    assert together.size == max(each.size for each in alone)


def test_the_field_of_an_interface_weighs_as_much_as_the_heaviest_of_its_types() -> None:
    """Otherwise, a fragment on the interface would be cheaper than one on the type."""
    for interface in SCHEMA.type_map.values():
        if isinstance(interface, GraphQLInterfaceType):
            for name in interface.fields:
                own = WEIGHTS.of(interface.name, name)
                for each in SCHEMA.get_possible_types(interface):
                    other = WEIGHTS.of(each.name, name)
                    assert all(getattr(own, number) >= getattr(other, number) for number in RAISED)
                    assert (own.of_page, own.merged) == (other.of_page, other.merged)
    assert WEIGHTS.of("Node", "id").size == WEIGHTS.of("Notification", "id").size


class Counted(Weights):
    """Counts the fields that an analysis visits."""

    visits = 0

    def of(self, type_: str, field: str) -> Any:
        self.visits += 1
        return super().of(type_, field)


COUNTED = Counted(PETS)
HOSTILE: dict[str, Callable[[int], str]] = {
    "nested fragments on interfaces": lambda n: (
        "{ pet { " + "... on Named { age ... on Pet { age " * n + "}" * 2 * n + " } }"
    ),
    "fragments beside each other": lambda n: (
        "{ pet { " + "... on Dog { barks } ... on Named { age } ... on Cat { lives } " * n + "} }"
    ),
    "a field of an interface at each level": lambda n: (
        "{ pet { " + "friend { ... on Named { age } ... on Dog { barks } " * n + "}" * n + " } }"
    ),
    "named fragments that spread the next one": lambda n: (
        "{ pet { ...F0 } } "
        + " ".join(
            f"fragment F{i} on {'Pet' if i % 2 else 'Named'} {{ age ... on Dog {{ barks }} ...F{i + 1} }}"
            for i in range(n)
        )
        + f" fragment F{n} on Pet {{ age }}"
    ),
}


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_each_selected_field_is_visited_once(write: Callable[[int], str]) -> None:
    """The number of object types that have it, and the depth of nested fragments, do not matter."""
    for number in (10, 40):
        document = write(number)
        COUNTED.visits = 0
        cost(document, COUNTED)
        written = sum(document.count(name) for name in ("pet ", "age", "barks", "lives", "friend"))
        assert COUNTED.visits == written


class ByObjectType(CostAnalysis):
    """Computes a cost from its definition: writes out the fields of each object type, and takes the highest cost."""

    def _selections(self, selection_set: SelectionSetNode, type_: str, page: int, merged: Merged) -> Selected:
        selected = SCHEMA.type_map[type_]
        possible = SCHEMA.get_possible_types(selected) if is_abstract_type(selected) else [selected]
        totals = []
        for each in possible:
            assert is_object_type(each)
            costs = [self._field(field, parent, page, merged) for parent, field in self._of(each, selection_set, type_)]
            totals.append([sum(numbers) for numbers in zip(Selected(size=BRACES), *costs, strict=True)])
        points, sizes, home_pages, prepaid = zip(*totals, strict=True)
        size = min(int(max(sizes)), COUNTED_TO)
        return Selected(min(max(points), COUNTED_TO), size, int(max(home_pages)), min(prepaid))

    def _of(
        self, object_type: GraphQLObjectType, selection_set: SelectionSetNode, parent: str
    ) -> Iterator[tuple[str, FieldNode]]:
        """Yield the fields that an object of this type has, with the types on which they are selected."""
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                yield parent, node
                continue
            assert isinstance(node, FragmentSpreadNode | InlineFragmentNode)
            fragment = self._fragments[node.name.value] if isinstance(node, FragmentSpreadNode) else node
            condition = fragment.type_condition.name.value if fragment.type_condition else parent
            type_ = SCHEMA.type_map[condition]
            if type_ is object_type or (is_abstract_type(type_) and SCHEMA.is_sub_type(type_, object_type)):
                yield from self._of(object_type, fragment.selection_set, condition)


def test_the_cost_is_that_of_its_definition(long_profile: bool) -> None:
    """Most of the generated documents have fragments that exclude each other."""
    summed = 0
    checked = 0

    @settings(
        max_examples=LONG_DOCUMENTS if long_profile else DOCUMENTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(choices)
    def compare(drawn: bytes) -> None:
        nonlocal summed, checked
        writer = Writer(SCHEMA, Choices(drawn), roots=("node", "nodes", "post", "viewer"))
        text = writer.document()
        document = parse(text)
        if "__schema" in text or validate(SCHEMA, document, [FieldsOnCorrectTypeRule, ScalarLeafsRule]):
            return
        checked += 1
        found = CostAnalysis(WEIGHTS, document, {}).of(None)
        assert found == ByObjectType(WEIGHTS, document, {}).of(None)
        summed += found.size < Summed(WEIGHTS, document, {}).of(None).size

    compare()

    assert checked > DOCUMENTS / 2
    assert summed > checked / 10


class Summed(CostAnalysis):
    """Adds up the costs of all fragments, including those that exclude each other."""

    def _selections(self, selection_set: SelectionSetNode, type_: str, page: int, merged: Merged) -> Selected:
        total = Selected(size=BRACES)
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                total = total.plus(self._field(node, type_, page, merged))
            else:
                assert isinstance(node, FragmentSpreadNode | InlineFragmentNode)
                fragment = self._fragments[node.name.value] if isinstance(node, FragmentSpreadNode) else node
                condition = fragment.type_condition.name.value if fragment.type_condition else type_
                inner = self._selections(fragment.selection_set, condition, page, merged)
                total = total.plus(inner._replace(size=inner.size - BRACES))
        return total
