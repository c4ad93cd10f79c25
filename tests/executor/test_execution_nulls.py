"""Null where null must not be: it goes up to the nearest place that allows it, and every error on the way stays."""

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
    """Fail."""
    return LookupError("lost")


def list_field(type_: str) -> GraphQLSchema:
    """Make a schema with a list of this type in an object that may be null."""
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
    """For each of the four types of a list: nulls and errors in it, and in its place."""
    result = await ask_both(list_field(type_), "{ o { list } }", root_value={"o": {"list": values}})
    assert result.data == {"o": expected}
    assert len(result.errors or []) <= 1


async def test_lists_of_lists() -> None:
    """A null in an inner list goes up no further than that list."""
    inner = GraphQLList(GraphQLNonNull(GraphQLInt))
    schema = schema_of({"a": resolved(GraphQLList(inner)), "b": resolved(GraphQLList(GraphQLNonNull(inner)))})
    values = [[1], [2, None], None, []]
    result = await ask_both(schema, "{ a b }", root_value={"a": values, "b": values})
    assert result.data == {"a": [[1], None, None, []], "b": None}
    assert [path for path, _ in messages(result)] == [("a", 1, 1), ("b", 1, 1)]


@pytest.mark.parametrize("values", ["word", 7, {"a": 1}, b"bytes"])
async def test_what_is_no_list_is_an_error(values: Any) -> None:
    """Strings and mappings can be iterated over, but are no lists."""
    result = await ask_both(list_field("[Int]"), "{ o { list } }", root_value={"o": {"list": values}})
    assert messages(result) == [(("o", "list"), "Expected Iterable, but did not find one for field 'O.list'.")]


@pytest.mark.parametrize("values", [(1, 2), iter([1, 2]), {1: 0, 2: 0}.keys(), range(1, 3)])
async def test_lists_come_in_many_shapes(values: Any) -> None:
    """Whatever can be iterated over, once."""
    schema = schema_of({"list": resolved(GraphQLList(GraphQLInt), lambda *_: values)})
    assert (await ask(schema, "{ list }")).data == {"list": [1, 2]}


async def test_an_iterable_that_breaks_off_nulls_its_list() -> None:
    """What it had given until then has its errors, before the list's own."""

    def broken(*_: Any) -> Iterator[Any]:
        yield 1
        yield LookupError("lost")
        raise ValueError("broken off")

    result = await ask_both(schema_of({"list": resolved(GraphQLList(GraphQLInt), broken)}), "{ list }")
    assert result.data == {"list": None}
    assert messages(result) == [(("list", 1), "lost"), (("list",), "broken off")]


def chain(*kinds: str) -> GraphQLSchema:
    """Make nested objects `o`, each nullable or not, the innermost with a non-null field that fails."""
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


async def test_null_stops_at_the_nearest_place_that_allows_it() -> None:
    """The object above stays, with its other fields."""
    result = await ask_both(chain("", "", "!"), "{ fine o { fine o { fine o { bad } } } }")
    assert result.data == {"fine": 1, "o": {"fine": 1, "o": None}}
    assert messages(result) == [(("o", "o", "o", "bad"), "lost")]


async def test_null_goes_up_to_the_root() -> None:
    """If nothing on the way may be null, there is no data at all."""
    result = await ask_both(chain("!", "!"), "{ fine o { o { null } } }")
    assert result.data is None
    assert messages(result) == [(("o", "o", "null"), "Cannot return null for non-nullable field O0.null.")]


async def test_errors_met_before_a_null_stay_and_later_ones_are_not_met() -> None:
    """As depth-first execution would have them: what stands after the null was never executed."""
    document = "{ o { soft again: soft o: fine bad later: soft more: bad } fine }"
    result = await ask_both(chain(""), document)
    assert result.data == {"o": None, "fine": 1}
    assert [path for path, _ in messages(result)] == [("o", "soft"), ("o", "again"), ("o", "bad")]


async def test_errors_of_several_nulled_objects_come_in_the_order_of_the_document() -> None:
    """Each with its own path."""
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


async def test_an_object_that_stands_at_two_places_has_its_errors_at_both() -> None:
    """Even if it was resolved once."""
    item = GraphQLObjectType("Item", {"soft": resolved(GraphQLInt), "hard": resolved(GraphQLNonNull(GraphQLInt))})
    schema = schema_of({"items": resolved(GraphQLList(item)), "item": resolved(item)})
    one = {"soft": LookupError("lost"), "hard": 1}
    root = {"items": [one, one], "item": one}
    result = await ask_both(schema, "{ items { soft hard } item { soft } }", root_value=root)
    assert messages(result) == [((*place, "soft"), "lost") for place in [("items", 0), ("items", 1), ("item",)]]
    assert result.data == {"items": [{"soft": None, "hard": 1}] * 2, "item": {"soft": None}}
