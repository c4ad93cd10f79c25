"""Variables: coercion, defaults, and errors for invalid values before any resolver runs."""

from typing import Any

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    GraphQLString,
    parse,
)

from executor import Executor
from tests.executor.tiny import ask_both, messages, schema_of

SHADE = GraphQLEnumType("Shade", {"DARK": 1, "PALE": (2, 3)})
FILTER: GraphQLInputObjectType = GraphQLInputObjectType(
    "Filter",
    lambda: {
        "text": GraphQLInputField(GraphQLNonNull(GraphQLString), out_name="words"),
        "count": GraphQLInputField(GraphQLInt, default_value=3),
        "shades": GraphQLInputField(GraphQLList(SHADE)),
        "also": GraphQLInputField(FILTER),
    },
)


def echo(source: Any, info: Any, **arguments: Any) -> str:
    """Return the arguments."""
    return repr(arguments)


def echoing() -> GraphQLSchema:
    """Return a schema whose fields return their arguments, with an ordinary and a batch resolver."""
    args = {
        "n": GraphQLArgument(GraphQLInt, default_value=5),
        "must": GraphQLArgument(GraphQLNonNull(GraphQLInt), default_value=6),
        "filter": GraphQLArgument(FILTER),
        "ids": GraphQLArgument(GraphQLList(GraphQLNonNull(GraphQLString)), out_name="keys"),
    }

    def echo_all(parents: Any, context: Any, **arguments: Any) -> list[str]:
        return [repr(arguments) for _ in parents]

    return schema_of(
        {
            "one": GraphQLField(GraphQLString, args, resolve=echo),
            "all": GraphQLField(GraphQLString, args, resolve=echo, extensions={"batch": echo_all}),
        }
    )


@pytest.mark.parametrize("field", ["one", "all"])
@pytest.mark.parametrize(
    ("declared", "used", "given", "received"),
    [
        ("$n: Int", "n: $n", {"n": 1}, {"n": 1}),
        ("$n: Int", "n: $n", {}, {}),
        ("$n: Int", "n: $n", {"n": None}, {"n": None}),
        ("$n: Int = 7", "n: $n", {}, {"n": 7}),
        ("$n: Int = 7", "n: $n", {"n": None}, {"n": None}),
        ("$n: Int", "must: $n", {}, {}),
        ("$n: Int = 8", "must: $n", {}, {"must": 8}),
        ("$n: Int!", "must: $n", {"n": 9}, {"must": 9}),
        (
            "$s: [Shade] = DARK, $t: String!",
            'filter: {text: $t, shades: $s, also: {text: "x", count: null}}',
            {"t": "t"},
            {"filter": {"words": "t", "count": 3, "shades": [1], "also": {"words": "x", "count": None}}},
        ),
        (
            "$s: Shade",
            'filter: {text: "", shades: [$s, PALE]}',
            {},
            {"filter": {"words": "", "count": 3, "shades": [None, (2, 3)]}},
        ),
        (
            "$f: Filter",
            "filter: $f",
            {"f": {"text": "t", "shades": ["PALE"]}},
            {"filter": {"words": "t", "count": 3, "shades": [(2, 3)]}},
        ),
        ("$i: [String!]", "ids: $i", {"i": "single"}, {"keys": ["single"]}),
        ("$i: String!", 'ids: [$i, "b"]', {"i": "a"}, {"keys": ["a", "b"]}),
    ],
)
async def test_arguments_get_the_values_of_variables(
    field: str, declared: str, used: str, given: dict[str, Any], received: dict[str, Any]
) -> None:
    """A missing variable leaves the argument's default; enum values and Python names are those of the resolver."""
    result = await ask_both(echoing(), f"query ({declared}) {{ {field}({used}) }}", variable_values=given)
    assert result.errors is None
    assert result.data == {field: repr({"n": 5, "must": 6} | received)}


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("$v: Int!", {}),
        ("$v: Int!", {"v": None}),
        ("$v: Int", {"v": "one"}),
        ("$v: Int", {"v": 2**40}),
        ("$v: [Int!]", {"v": [1, None]}),
        ("$v: Filter", {"v": {"count": 1}}),
        ("$v: Filter", {"v": {"text": "t", "unknown": 1}}),
        ("$v: Shade", {"v": "LIGHT"}),
    ],
)
async def test_invalid_variables_are_rejected_before_execution(declared: str, given: dict[str, Any]) -> None:
    """Invalid variables are request errors with a reason."""
    calls: list[Any] = []
    arguments = {
        "n": GraphQLArgument(GraphQLInt),
        "ns": GraphQLArgument(GraphQLList(GraphQLNonNull(GraphQLInt))),
        "f": GraphQLArgument(FILTER),
        "s": GraphQLArgument(SHADE),
    }
    name = {"Int": "n", "[Int": "ns", "Filt": "f", "Shad": "s"}[declared[4:8].rstrip("!")]
    schema = schema_of({"called": GraphQLField(GraphQLInt, arguments, resolve=lambda *_, **__: calls.append(1))})
    executor = Executor(schema)
    result = await executor.execute(parse(f"query ({declared}) {{ called({name}: $v) }}"), variable_values=given)
    assert result.data is None
    assert [error.message[:13] for error in result.errors or ()] == ["Variable '$v'"]
    assert calls == []


async def test_null_for_a_non_null_argument_is_an_error_of_the_field() -> None:
    """A variable with a default is valid in a non-null position, but can be null at run time."""
    result = await ask_both(
        echoing(), "query ($n: Int = 1) { one(must: $n) all(must: $n) fine: one }", variable_values={"n": None}
    )
    assert result.data == {"one": None, "all": None, "fine": "{'n': 5, 'must': 6}"}
    assert [path for path, _ in messages(result)] == [("one",), ("all",)]
    assert [error.locations[0].column for error in result.errors or () if error.locations] == [33, 47]


async def test_each_run_has_its_own_variables() -> None:
    """The plan is cached; the values are not."""
    executor = Executor(echoing())
    document = parse("query ($n: Int) { one(n: $n) all(n: $n) }")
    for n in (1, None, 2):
        result = await executor.execute(document, variable_values={"n": n})
        assert result.data == {"one": f"{{'n': {n}, 'must': 6}}", "all": f"{{'n': {n}, 'must': 6}}"}
    result = await executor.execute(document)
    assert result.data == {"one": "{'n': 5, 'must': 6}", "all": "{'n': 5, 'must': 6}"}
