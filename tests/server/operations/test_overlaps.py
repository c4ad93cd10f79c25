"""Overlapping fields: the linear rule accepts what graphql-core's rule accepts, with bounded work."""

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from graphql import DocumentNode, GraphQLError, GraphQLSchema, build_schema, parse, specified_rules, validate
from hypothesis import HealthCheck, given, settings

from schema import schema as strawberry_schema
from server.operations.documents import DocumentCache, DocumentRefused
from server.operations.overlaps import LinearOverlappingFields, rule
from server.operations.overlaps.rule import MAX_CONFLICTS, MAX_STEPS
from server.operations.overlaps.selections import Field, Reader, Selections
from server.operations.parsing import DocumentLimits
from server.operations.validation import RULES
from tests.server.operations.overlapping import PETS, Choices, Writer, choices, core_errors, linear_errors

ReadRoots: TypeAlias = Callable[[Reader, DocumentNode], list[Selections]]

DOCUMENTS = 150  # for each schema
LONG_DOCUMENTS = 50_000
SCHEMA = strawberry_schema._schema
SCHEMAS = pytest.mark.parametrize("schema", [PETS, SCHEMA], ids=["pets", "fanline"])

KENNEL = build_schema("""
    type Query { dog: Dog  cat: Cat  pet: Pet  pets: [Pet]  human: Human }
    interface Pet { name: String }
    enum DogCommand { SIT DOWN HEEL }
    type Dog implements Pet {
      name: String  nickname: String  barkVolume: Int  owner: Human  extra: DogExtra
      doesKnowCommand(dogCommand: DogCommand): Boolean  isHouseTrained(atOtherHomes: Boolean): Boolean
    }
    type Cat implements Pet { name: String  nickname: String!  meowVolume: Int  owner: [Human]  extra: CatExtra }
    type DogExtra { bark: String  toys: [String] }
    type CatExtra { meow: Int  toys: [String!] }
    type Human { name: String!  pets: [Pet!] }
""")

MERGEABLE = {
    "the same field twice": "{dog {name name}}",
    "the same alias of the same field": "{dog {other: name other: name}}",
    "the same argument": "{dog {doesKnowCommand(dogCommand: SIT) doesKnowCommand(dogCommand: SIT)}}",
    "the same variable": """
        query($c: DogCommand) {dog {doesKnowCommand(dogCommand: $c) doesKnowCommand(dogCommand: $c)}}""",
    "different aliases of one field": "{dog {a: name b: nickname}}",
    "different fields of types that exclude each other": """
        {pet {...on Dog {volume: barkVolume} ...on Cat {volume: meowVolume}}}""",
    "different arguments on types that exclude each other": """
        {pet {...on Dog {x: doesKnowCommand(dogCommand: SIT)} ...on Dog {y: isHouseTrained}}}""",
    "sub-selections of different objects with the same shape": """
        {pet {...on Dog {extra {x: bark}} ...on Cat {extra {y: meow}}}}""",
    "a fragment spread twice": "{dog {...F ...F}} fragment F on Dog {name}",
    "a fragment and its own field": "{dog {name ...F}} fragment F on Dog {name}",
    "fields that differ below objects that exclude each other": """
        {pet {...on Dog {extra {x: bark}} ...on Cat {owner {x: name}}}}""",
}
CONFLICTING = {
    "an alias that hides another field": "{dog {name: nickname name}}",
    "one alias for two fields": "{dog {a: name a: nickname}}",
    "different enum arguments": "{dog {doesKnowCommand(dogCommand: SIT) doesKnowCommand(dogCommand: HEEL)}}",
    "a literal and a variable": """
        query($c: DogCommand) {dog {doesKnowCommand(dogCommand: SIT) doesKnowCommand(dogCommand: $c)}}""",
    "two variables": """
        query($c: DogCommand, $d: DogCommand)
        {dog {doesKnowCommand(dogCommand: $c) doesKnowCommand(dogCommand: $d)}}""",
    "an argument and none": "{dog {doesKnowCommand(dogCommand: SIT) doesKnowCommand}}",
    "an interface's field and an object's": "{pet {a: name ...on Dog {a: nickname}}}",
    "scalars of different types, even on types that exclude each other": """
        {pet {...on Dog {x: barkVolume} ...on Cat {x: nickname}}}""",
    "nullable and non-null": "{pet {...on Dog {nickname} ...on Cat {nickname}}}",
    "an object and a list": "{pet {...on Dog {owner {name}} ...on Cat {owner {name}}}}",
    "lists of nullable and non-null items": "{pet {...on Dog {extra {toys}} ...on Cat {extra {toys}}}}",
    "shapes below different objects": "{pet {...on Dog {extra {x: bark}} ...on Cat {extra {x: meow}}}}",
    "a scalar and an object": "{pet {...on Dog {x: name} ...on Cat {x: extra {meow}}}}",
    "fields of two merged sub-selections": "{dog {a: name} dog {a: nickname}}",
    "fields three levels down": "{human {pets {...on Dog {a: name}}} human {pets {...on Dog {a: nickname}}}}",
    "a field and a fragment": "{dog {a: name ...F}} fragment F on Dog {a: nickname}",
    "two fragments": "{dog {...F ...G}} fragment F on Dog {a: name} fragment G on Dog {a: nickname}",
    "a fragment within a fragment": """
        {dog {a: name ...F}} fragment F on Dog {...G} fragment G on Dog {a: nickname}""",
    "a fragment that nothing spreads": "{dog {name}} fragment F on Dog {a: name a: nickname}",
    "an unnamed inline fragment": "{dog {a: name ... {a: nickname}}}",
    "a stream": "{pets @stream {name} pets {name}}",
}


@pytest.mark.parametrize("text", MERGEABLE.values(), ids=MERGEABLE)
def test_fields_that_can_be_merged_are_accepted(text: str) -> None:
    """These are the examples of the specification, and similar documents."""
    assert linear_errors(KENNEL, text) == core_errors(KENNEL, text) == []


@pytest.mark.parametrize("text", CONFLICTING.values(), ids=CONFLICTING)
def test_fields_that_cannot_be_merged_are_refused_with_the_usual_message(text: str) -> None:
    """The message is that of graphql-core, which clients know."""
    (error,) = linear_errors(KENNEL, text)

    assert error.message == core_errors(KENNEL, text)[0].message


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{name: "a", age: 1}', '{age: 1, name: "a"}', True),
        ('{other: {name: "a", age: 1}}', '{other: {age: 1, name: "a"}}', True),
        ('{name: "a"}', '{name: "b"}', False),
        ('{name: "a"}', '{name: """a"""}', False),
        ('{name: "1"}', "{name: 1}", False),
        ("{name: null}", "{}", False),
        ("{age: 1}", "{age: 1.0}", False),
        ("{age: $a}", '{age: "$a"}', False),
        ("[1, 2]", "[2, 1]", False),
        ("[1, 2]", "[1 2]", True),
    ],
)
def test_arguments_are_compared_by_value(one: str, other: str, same: bool) -> None:
    """The order of arguments and of an object's fields does not matter; the order of a list does."""
    text = f"{{pet(like: {one}, id: 1) {{name}} pet(id: 1, like: {other}) {{name}}}}"

    assert (linear_errors(PETS, text) == []) is (core_errors(PETS, text) == []) is same


@SCHEMAS
def test_the_result_is_that_of_graphql_core(schema: GraphQLSchema, long_profile: bool) -> None:
    """Enough of the generated documents are valid, and enough are not."""
    accepted = []

    @settings(
        max_examples=LONG_DOCUMENTS if long_profile else DOCUMENTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(choices)
    def compare(drawn: bytes) -> None:
        text = Writer(schema, Choices(drawn)).document()
        accepted.append(core_errors(schema, text) == [])
        assert (linear_errors(schema, text) == []) is accepted[-1], text

    compare()

    assert len(accepted) / 10 < sum(accepted) < len(accepted) * 9 / 10


def broken(target: type | object, name: str, replacement: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(target, name, replacement)


def without_components(level: int, group: list[rule.Place]) -> list[rule.Place]:
    return group


def wrappers(field: Field) -> str | None:
    return "".join(letter for letter in str(field.definition.type) if letter in "[]!") if field.definition else None


def only_themselves(selections: Selections) -> tuple[Selections, ...]:
    return (selections,)


def operations_alone(
    reader: Reader, document: DocumentNode, read: Callable[[Reader, DocumentNode], list[Selections]] = Reader.roots
) -> list[Selections]:
    return read(reader, document)[:1]


def nothing_below(
    _rule: Any, level: int, group: list[rule.Place], merge: Any = rule.LinearOverlappingFields._merge
) -> Any:
    merge(_rule, level, group)
    return {}


def below_forgets_contexts(_rule: Any, level: int, group: Any, merge: Any = rule.LinearOverlappingFields._merge) -> Any:
    return {(part, ()): place for (part, _), place in merge(_rule, level, group).items()}


BROKEN = {
    "arguments are ignored": broken(Field, "call", property(lambda field: field.node.name.value)),
    "names are ignored": broken(Field, "call", property(lambda field: repr(field.node.arguments))),
    "types are ignored": broken(Field, "shape", None),
    "only wrappers are compared": broken(Field, "shape", property(wrappers)),
    "streams are ignored": broken(Field, "streamed", False),
    "object types do not tell fields apart": broken(rule, "_in_contexts", without_components),
    "contexts are all compatible": broken(rule, "_compatible", lambda one, other: True),
    "contexts are never compatible": broken(rule, "_compatible", lambda one, other: False),
    "contexts are forgotten below": broken(LinearOverlappingFields, "_merge", below_forgets_contexts),
    "sub-selections are not compared": broken(LinearOverlappingFields, "_merge", nothing_below),
    "fragments are not expanded": broken(Selections, "expanded", property(only_themselves)),
    "only the first operation is read": broken(Reader, "roots", operations_alone),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_comparison_detects_a_broken_rule(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each defect changes the result for a document among those that every run compares."""
    broken(monkeypatch)
    rng = random.Random(10)  # noqa: S311 - not for secrets
    texts = (Writer(PETS, Choices(rng.randbytes(rng.randint(30, 120)))).document() for _ in range(8 * DOCUMENTS))

    assert any((linear_errors(PETS, text) == []) is not (core_errors(PETS, text) == []) for text in texts)


@SCHEMAS
def test_cyclic_fragments_are_left_to_the_rule_for_them(schema: GraphQLSchema) -> None:
    """All rules together refuse a document with cyclic fragments, and neither rule hangs."""
    rng = random.Random(11)  # noqa: S311 - not for secrets
    for _ in range(30):
        text = Writer(schema, Choices(rng.randbytes(200)), cyclic=True).document()
        with_core = validate(schema, parse(text), specified_rules)
        with_linear = validate(schema, parse(text), RULES)

        assert bool(with_core) is bool(with_linear), text


def steps(schema: GraphQLSchema, text: str) -> int:
    """Return the steps of the linear rule for a document."""
    taken = []

    class Counted(LinearOverlappingFields):
        def leave_document(self, *args: Any) -> None:
            super().leave_document(*args)
            taken.append(self._steps)

    assert validate(schema, parse(text), [Counted]) == []
    return taken[0]


GROWING: dict[str, Callable[[int], str]] = {
    "a leaf repeated": lambda n: "{dog {" + "name " * n + "}}",
    "an object repeated": lambda n: "{" + "dog {name owner {name pets {name}}} " * n + "}",
    "fragments beside each other": lambda n: (
        "{dog {" + "".join(f"...F{i} " for i in range(n)) + "}}"
        + "".join(f"fragment F{i} on Dog {{name owner {{pets {{name}}}}}} " for i in range(n))
    ),
    "inline fragments of an interface": lambda n: (
        "{pet {" + "... on Dog {name x: barkVolume} ... on Cat {name x: meowVolume} " * n + "}}"
    ),
    "fragments that double": lambda n: (
        "{human {...F0}}"
        + "".join(f"fragment F{i} on Human{{pets{{...on Dog {{owner {{{2 * f'...F{i + 1} '}}}}}}}}}" for i in range(n))
        + f"fragment F{n} on Human {{name}}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("write", GROWING.values(), ids=GROWING)
def test_work_is_linear_in_the_document(write: Callable[[int], str]) -> None:
    """Twice the fields take about twice the steps, however they are repeated."""
    assert 0 < steps(KENNEL, write(40)) <= 2.2 * steps(KENNEL, write(20))


def test_one_conflict_is_reported_for_a_response_path() -> None:
    """A field repeated a hundred times in conflicting ways gives one error, with the nodes of one pair."""
    text = "{viewer {user {" + " ".join(f"followers(first: {at + 1}) {{totalCount}}" for at in range(100)) + "}}}"

    (error,) = linear_errors(SCHEMA, text)

    assert "they have differing arguments" in error.message
    assert error.nodes is not None
    assert len(error.nodes) == 2


def test_the_number_of_conflicts_is_bounded() -> None:
    """Validation stops after twenty conflicts."""
    text = "{dog {" + " ".join(f"a{number}: name a{number}: nickname" for number in range(50)) + "}}"

    errors = linear_errors(KENNEL, text)

    assert len(errors) == MAX_CONFLICTS + 1
    assert errors[-1].message == "Validation stopped after 20 conflicting fields."


def test_a_conflict_names_the_fields_above_it_and_few_nodes() -> None:
    """The error starts at the selection set that both fields share."""
    error: GraphQLError
    (error,) = linear_errors(KENNEL, "{dog {owner {a: name}} dog {owner {a: __typename}}}")

    assert error.message == (
        "Fields 'dog' conflict because subfields 'owner' conflict because subfields 'a' conflict because"
        " 'name' and '__typename' are different fields."
        " Use different aliases on the fields to fetch both if this was intentional."
    )
    assert [node.name.value for node in error.nodes or () if hasattr(node, "name")] == [
        "dog",
        "dog",
        "name",
        "__typename",
    ]


def test_long_names_are_truncated_in_errors() -> None:
    """An error has at most a few kilobytes."""
    name = "a" * 50_000

    (error,) = linear_errors(KENNEL, f"{{dog {{{name}: name {name}: nickname}}}}")

    assert len(error.message) < 5_000


def test_work_is_bounded_where_contexts_multiply() -> None:
    """Fragments that double below two object types at every level are refused, not followed."""
    levels = 24
    both = "...on Dog {friend {...on Cat {a%(n)s: name} ...F%(n)s}} ...on Cat {friend {...F%(n)s}}"
    text = (
        "{pet {...F0}}"
        + "".join(f"fragment F{n} on Pet {{{both % {'n': n + 1}}}} " for n in range(levels))
        + f"fragment F{levels} on Pet {{name}}"
    )

    (error,) = linear_errors(PETS, text)

    assert error.message == f"Checking overlapping fields takes more than {MAX_STEPS:,} steps. Spread fewer fragments."


def test_fragment_variables_are_refused() -> None:
    """They are an experiment that the server's parser does not enable; another caller gets a clear error."""
    text = "{dog {...F(x: 1)}} fragment F($x: Int) on Dog {name}"
    document = parse(text, experimental_fragment_arguments=True)

    (error,) = validate(KENNEL, document, [LinearOverlappingFields])

    assert "variables or arguments are not supported" in error.message


def test_the_server_uses_the_linear_rule() -> None:
    """A document with a thousand conflicting pairs has one error, not one for each pair up to the limit of 20."""
    documents = DocumentCache(SCHEMA, DocumentLimits(), introspection=False)
    fields = " ".join(f"followers(first: {number + 1}) {{totalCount}}" for number in range(50))

    with pytest.raises(DocumentRefused) as refused:
        documents.prepare(f"{{viewer {{user {{{fields}}}}}}}")

    (error,) = refused.value.errors
    assert error.message.startswith("Fields 'followers' conflict")
