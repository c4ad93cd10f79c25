"""Null propagation: a null in a non-null position propagates to the nearest nullable one; its errors remain."""

from collections.abc import Iterator
from typing import Any

import pytest
from graphql import GraphQLField, GraphQLInt, GraphQLList, GraphQLNonNull, GraphQLObjectType, GraphQLSchema

from tests.executor.tiny import ask, ask_both, messages, resolved, schema_of

Int, IntNN = GraphQLInt, GraphQLNonNull(GraphQLInt)
WRAPPED: dict[str, Any] = {
    "[Int]": GraphQLList(Int),
    "[Int]!": GraphQLNonNull(GraphQLList(Int)),
    "[Int!]": GraphQLList(IntNN),
    "[Int!]!": GraphQLNonNull(GraphQLList(IntNN)),
}


def failure(*_: Any) -> Exception:
    """Return an error."""
    return LookupError("lost")


def list_field(type_: str) -> GraphQLSchema:
    """Return a schema with a list of this type in a nullable object."""
    return schema_of({"o": resolved(GraphQLObjectType("O", {"list": resolved(WRAPPED[type_])}))})


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        ("[Int]", [1, None, 2], {"list": [1, None, 2]}),
        ("[Int]", None, {"list": None}),
        ("[Int]", [1, LookupError("lost")], {"list": [1, None]}),
        ("[Int]", LookupError("lost"), {"list": None}),
        ("[Int]!", [1, None], {"list": [1, None]}),
        ("[Int]!", None, None),
        ("[Int]!", [LookupError("lost")], {"list": [None]}),
        ("[Int]!", LookupError("lost"), None),
        ("[Int!]", [1, 2], {"list": [1, 2]}),
        ("[Int!]", [1, None], {"list": None}),
        ("[Int!]", None, {"list": None}),
        ("[Int!]", [LookupError("lost"), LookupError("not met")], {"list": None}),
        ("[Int!]!", [1, None], None),
        ("[Int!]!", [], {"list": []}),
        ("[Int!]!", None, None),
        ("[Int!]!", [1, LookupError("lost")], None),
    ],
)
async def test_lists_and_nulls(type_: str, values: Any, expected: Any) -> None:
    """Nulls and errors may occur in a list or instead of the list, for all four nullabilities."""
    result = await ask_both(list_field(type_), "{ o { list } }", root_value={"o": {"list": values}})
    assert result.data == {"o": expected}
    assert len(result.errors or []) <= 1


async def test_lists_of_lists() -> None:
    """A null in an inner list propagates to that list only."""
    inner = GraphQLList(GraphQLNonNull(GraphQLInt))
    schema = schema_of({"a": resolved(GraphQLList(inner)), "b": resolved(GraphQLList(GraphQLNonNull(inner)))})
    values = [[1], [2, None], None, []]
    result = await ask_both(schema, "{ a b }", root_value={"a": values, "b": values})
    assert result.data == {"a": [[1], None, None, []], "b": None}
    assert [path for path, _ in messages(result)] == [("a", 1, 1), ("b", 1, 1)]


@pytest.mark.parametrize("values", ["word", 7, {"a": 1}, b"bytes"])
async def test_a_value_that_is_not_a_list_is_an_error(values: Any) -> None:
    """Strings and mappings are iterable, but are not lists."""
    result = await ask_both(list_field("[Int]"), "{ o { list } }", root_value={"o": {"list": values}})
    assert messages(result) == [(("o", "list"), "Expected Iterable, but did not find one for field 'O.list'.")]


@pytest.mark.parametrize("values", [(1, 2), iter([1, 2]), {1: 0, 2: 0}.keys(), range(1, 3)])
async def test_iterables_are_lists(values: Any) -> None:
    """Any iterable can be a list, including one-time iterators."""
    schema = schema_of({"list": resolved(GraphQLList(GraphQLInt), lambda *_: values)})
    assert (await ask(schema, "{ list }")).data == {"list": [1, 2]}


async def test_an_iterator_that_raises_nulls_its_list() -> None:
    """Errors of the items before come first, then the error of the list."""

    def broken(*_: Any) -> Iterator[Any]:
        yield 1
        yield LookupError("lost")
        raise ValueError("broken off")

    result = await ask_both(schema_of({"list": resolved(GraphQLList(GraphQLInt), broken)}), "{ list }")
    assert result.data == {"list": None}
    assert messages(result) == [(("list", 1), "lost"), (("list",), "broken off")]


def chain(*kinds: str) -> GraphQLSchema:
    """Return a schema of nested objects `o`, nullable or not, the innermost with a non-null field that fails."""
    fields: dict[str, GraphQLField] = {
        "bad": resolved(GraphQLNonNull(GraphQLInt), failure),
        "null": resolved(GraphQLNonNull(GraphQLInt)),
        "soft": resolved(GraphQLInt, failure),
        "fine": resolved(GraphQLInt, lambda *_: 1),
    }
    for depth, kind in enumerate(reversed(kinds)):
        object_ = GraphQLObjectType(f"O{depth}", fields)
        type_ = GraphQLNonNull(object_) if kind == "!" else object_
        fields = {"o": resolved(type_, lambda *_: {}), "fine": resolved(GraphQLInt, lambda *_: 1)}
    return schema_of(fields)


async def test_null_propagates_to_the_nearest_nullable_field() -> None:
    """The object above keeps its other fields."""
    result = await ask_both(chain("", "", "!"), "{ fine o { fine o { fine o { bad } } } }")
    assert result.data == {"fine": 1, "o": {"fine": 1, "o": None}}
    assert messages(result) == [(("o", "o", "o", "bad"), "lost")]


async def test_null_propagates_to_the_root() -> None:
    """If no field above is nullable, there is no data."""
    result = await ask_both(chain("!", "!"), "{ fine o { o { null } } }")
    assert result.data is None
    assert messages(result) == [(("o", "o", "null"), "Cannot return null for non-nullable field O0.null.")]


async def test_errors_before_a_propagated_null_are_kept_and_later_ones_dropped() -> None:
    """As in depth-first execution, fields after the null have no errors."""
    document = "{ o { soft again: soft o: fine bad later: soft more: bad } fine }"
    result = await ask_both(chain(""), document)
    assert result.data == {"o": None, "fine": 1}
    assert [path for path, _ in messages(result)] == [("o", "soft"), ("o", "again"), ("o", "bad")]


async def test_errors_of_several_nulled_objects_have_document_order() -> None:
    """Each error has its own path."""
    item = GraphQLObjectType("Item", {"n": resolved(GraphQLNonNull(GraphQLInt)), "soft": resolved(GraphQLInt, failure)})
    schema = schema_of({"items": resolved(GraphQLList(item))})
    items = [{"n": 1}, {"n": None}, None, {"n": LookupError("own")}]
    result = await ask_both(schema, "{ items { soft n } more: items { n soft } }", root_value={"items": items})
    assert [path for path, _ in messages(result)] == [
        ("items", 0, "soft"),
        ("items", 1, "soft"),
        ("items", 1, "n"),
        ("items", 3, "soft"),
        ("items", 3, "n"),
        ("more", 0, "soft"),
        ("more", 1, "n"),
        ("more", 3, "n"),
    ]
    assert result.data == {
        "items": [{"soft": None, "n": 1}, None, None, None],
        "more": [{"n": 1, "soft": None}, None, None, None],
    }


async def test_an_object_at_two_paths_has_its_errors_at_both() -> None:
    """The object is resolved once, and its errors appear at both paths."""
    item = GraphQLObjectType("Item", {"soft": resolved(GraphQLInt), "hard": resolved(GraphQLNonNull(GraphQLInt))})
    schema = schema_of({"items": resolved(GraphQLList(item)), "item": resolved(item)})
    one = {"soft": LookupError("lost"), "hard": 1}
    root = {"items": [one, one], "item": one}
    result = await ask_both(schema, "{ items { soft hard } item { soft } }", root_value=root)
    assert messages(result) == [((*place, "soft"), "lost") for place in [("items", 0), ("items", 1), ("item",)]]
    assert result.data == {"items": [{"soft": None, "hard": 1}] * 2, "item": {"soft": None}}
