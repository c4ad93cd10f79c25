"""Validation and parsing give the results of graphql-core, with less work."""

from collections import Counter
from typing import Any

import pytest
from graphql import (
    ASTValidationRule,
    FieldNode,
    GraphQLError,
    GraphQLSyntaxError,
    Lexer,
    NameNode,
    SelectionSetNode,
    Source,
    TokenKind,
    ValidationRule,
    parse,
)
from graphql import validate as core_validate
from hypothesis import HealthCheck, given, settings

from schema import schema as strawberry_schema
from server.operations.documents import MAX_ERRORS
from server.operations.parsing import DocumentLimits, FastLexer, parse_document
from server.operations.validation import MAX_QUOTED, RULES, NoIntrospection, validate
from tests.attacks.fuzz.documents import Writer
from tests.attacks.world import World
from tests.executor.differential.tapes import Tape, tapes

SCHEMA = strawberry_schema._schema
ALL_RULES = (*RULES, NoIntrospection)
WORLD = World(("VXNlcjox", "VXNlcjoy"), "VXNlcjox", "VGltZWxpbmU6MQ", ("UG9zdDox",), {"alice": "x"}, ("alice", "bob"))
DOCUMENTS, LONG_DOCUMENTS = 120, 50_000
TOKENS = DocumentLimits().tokens


def explore(long_profile: bool, check: Any) -> None:
    """Run a check with generated documents, some of which are valid."""

    @settings(
        max_examples=LONG_DOCUMENTS if long_profile else DOCUMENTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(tapes(300))
    def run(tape: Tape) -> None:
        check(Writer(WORLD).document(tape).text)

    run()


def test_the_errors_are_those_of_graphql_core(long_profile: bool) -> None:
    """Messages and their order are the same for valid, mutated and hard documents, with suggestions or not."""
    valid: Counter[bool] = Counter()

    def check(text: str) -> None:
        try:
            document = parse(text, max_tokens=TOKENS)
        except (GraphQLSyntaxError, RecursionError):
            return
        hide = valid.total() % 2 == 0
        expected = core_validate(SCHEMA, document, ALL_RULES, MAX_ERRORS, hide_suggestions=hide)
        found = validate(SCHEMA, document, ALL_RULES, MAX_ERRORS, hide_suggestions=hide)
        assert [error.message for error in found] == [error.message for error in expected], text
        assert [error.locations for error in found] == [error.locations for error in expected], text
        valid[not expected] += 1

    explore(long_profile, check)
    assert min(valid[True], valid[False]) > valid.total() / 20


ODD_TEXTS = [
    "{ a\r\n b\n\rc }",
    "\ufeff{a,,,b}",
    '{ a(b: "") }',
    '{ a(b: """""") }',
    '{ a(b: """x "" y\r\n z""") }',
    '{ a(b: "\\u0041\\n") }',
    '{ a(b: "x\ny") }',
    '{ a(b: "x',
    "#c\r{ a #d\n}#",
    "{ a.b }",
    "{ ..a }",
    "{ a(b: -1.5e3, c: 01) }",
    "{ \u00e9 }",
    "{ a(b: '') }",
    "{ a\x00 }",
    "\r\r{\r\n\n a",
]


def parsed(text: str, *, fast: bool) -> object:
    """Return the document with its locations, or the error."""
    try:
        if fast:
            return parse_document(text, TOKENS).to_dict(locations=True)
        return parse(text, max_tokens=TOKENS).to_dict(locations=True)
    except GraphQLSyntaxError as error:
        if "nested too deeply" in error.message:
            return "too deep"
        return error.message, error.locations
    except RecursionError:
        return "too deep"


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_parsed_as_by_graphql_core(text: str) -> None:
    """Locations and messages are the same."""
    assert parsed(text, fast=True) == parsed(text, fast=False)


def test_generated_texts_are_parsed_as_by_graphql_core(long_profile: bool) -> None:
    def check(text: str) -> None:
        assert parsed(text, fast=True) == parsed(text, fast=False)

    explore(long_profile, check)


def test_tokens_have_the_lines_and_columns_of_graphql_core() -> None:
    """This holds for all line breaks, including those in strings and comments."""
    source = Source('{\n a #c\r\n\r b(c: "d", e: """f\n g\r\n""")\n\n ...h @i } \r\r\n')
    places = []
    for lexer in (Lexer(source), FastLexer(source)):
        found = []
        while (token := lexer.advance()).kind is not TokenKind.EOF:
            found.append((token.kind, token.start, token.end, token.line, token.column, token.value))
        places.append([*found, (lexer.token.line, lexer.token.column)])
    assert places[0] == places[1]


class Recorded(ValidationRule):
    """Records which nodes are visited, with the number of their ancestors."""

    seen: list[tuple[str, int]]

    def enter(self, node: Any, _key: Any, _parent: Any, _path: Any, ancestors: list[Any]) -> None:
        self.seen.append((node.kind, len(ancestors)))


class Skipping(ValidationRule):
    """Skips what is below fields."""

    def enter_field(self, *_: Any) -> Any:
        return self.SKIP

    def enter_selection_set(self, node: SelectionSetNode, *_: Any) -> None:
        self.report_error(GraphQLError("selection set", node))


class Breaking(ValidationRule):
    """Stops at the second field."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._fields = 0

    def enter_field(self, node: FieldNode, *_: Any) -> Any:
        self._fields += 1
        self.report_error(GraphQLError(node.name.value, node))
        return self.BREAK if self._fields == 2 else None

    def leave_field(self, node: FieldNode, *_: Any) -> None:
        self.report_error(GraphQLError(f"left {node.name.value}", node))


@pytest.mark.parametrize("rules", [(Skipping,), (Breaking,), (Skipping, Breaking)])
def test_rules_may_skip_and_stop(rules: tuple[type[ASTValidationRule], ...]) -> None:
    """Each rule does so independently of others, as in graphql-core."""
    document = parse("{ viewer { user { id timeline { id } } } a: viewer { id } }")
    expected = [error.message for error in core_validate(SCHEMA, document, rules)]
    assert [error.message for error in validate(SCHEMA, document, rules, 100)] == expected


def test_a_rule_gets_the_ancestors_of_a_node() -> None:
    """All nodes except names are visited."""
    seen: list[list[tuple[str, int]]] = [[], []]
    document = parse("query Q($a: [ID!] = []) { x: nodes(ids: $a) @skip(if: false) { ... on User { id } } }")
    rules = [type("Rule", (Recorded,), {"seen": each}) for each in seen]
    core_validate(SCHEMA, document, rules[:1])
    validate(SCHEMA, document, rules[1:], MAX_ERRORS)
    assert [each for each in seen[0] if each[0] != NameNode.kind] == seen[1]


def test_validation_stops_after_a_long_invalid_value() -> None:
    """It is quoted once: quoting it takes a millisecond for a hundred fields."""
    fields = " ".join(f"x{number}: 1" for number in range(600))
    found = validate(SCHEMA, parse(f"{{ user(by: {{{fields}}}) {{ id }} }}"), ALL_RULES, MAX_ERRORS)
    assert len(found) == 2
    assert len(found[0].message) > MAX_QUOTED
    assert found[1].message == "Validation stopped after an invalid value of 1,000 characters."
