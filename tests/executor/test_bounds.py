"""What the executor keeps and does is bounded, whatever it is given."""

from collections.abc import Sequence
from typing import Any

import pytest
from graphql import (
    GraphQLField,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
    parse,
)

import executor.plan_cache
from executor import Executor


def batch(type_: Any, resolver: Any) -> GraphQLField:
    """Declare a field that is resolved for all parents at once."""
    return GraphQLField(type_, extensions={"batch": resolver})


async def test_nobody_is_asked_for_nothing() -> None:
    """Beneath an empty list no batch resolver is called."""
    calls: list[int] = []

    def names(parents: Sequence[Any], context: Any) -> list[str]:
        calls.append(len(parents))
        return [str(parent) for parent in parents]

    item = GraphQLObjectType("Item", {"name": batch(GraphQLString, names)})
    root = GraphQLObjectType(
        "Query",
        {
            "none": batch(GraphQLList(item), lambda parents, context: [[]]),
            "some": batch(GraphQLList(item), lambda parents, context: [[1, None, 2]]),
        },
    )
    result = await Executor(GraphQLSchema(root)).execute(parse("{ none { name } some { name } }"))
    assert result.data == {"none": [], "some": [{"name": "1"}, None, {"name": "2"}]}
    assert calls == [2]


@pytest.mark.parametrize("stand_ins", [[[]], [], ["one", "too many"], 7, None, [None]], ids=repr)
async def test_references_that_make_no_sense_are_done_without(stand_ins: Any) -> None:
    """Unhashable ones, too few or too many, or none at all: the fields wait for the values themselves."""

    async def friends(parents: Sequence[Any], context: Any) -> list[str]:
        return ["bob"] * len(parents)

    name = GraphQLField(
        GraphQLString,
        extensions={"batch": lambda parents, context: [str(each) for each in parents], "needs_only_reference": True},
    )
    friend = GraphQLField(
        GraphQLObjectType("Friend", {"name": name}),
        extensions={"batch": friends, "references": lambda parents, context: stand_ins},
    )
    result = await Executor(GraphQLSchema(GraphQLObjectType("Query", {"friend": friend}))).execute(
        parse("{ friend { name } }")
    )
    assert result.errors is None
    assert result.data == {"friend": {"name": "bob"}}


async def test_plans_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """One document with many choices of what to include cannot keep a plan for each."""
    monkeypatch.setattr(executor.plan_cache, "MAX_FIELDS", 50)
    root = GraphQLObjectType("Query", {"n": GraphQLField(GraphQLInt, resolve=lambda *_: 1)})
    conditions = "".join(f" $c{place}: Boolean!" for place in range(6))
    fields = "".join(f" f{place}: n @include(if: $c{place})" for place in range(6))
    document, runs = parse(f"query ({conditions}) {{ n {fields} }}"), Executor(GraphQLSchema(root))
    for number in range(64):
        variables = {f"c{place}": bool(number >> place & 1) for place in range(6)}
        result = await runs.execute(document, variable_values=variables)
        assert result.data is not None
        assert len(result.data) == 1 + number.bit_count()
        planned = [
            plan for document in runs._plan_cache._documents.values() for plan in document.plans.values() if plan
        ]
        assert sum(len(plan.root.fields) for plan in planned) <= 50 + 7


async def test_a_forgotten_document_is_planned_again() -> None:
    """Its plans are gone, and come back when it does."""
    root = GraphQLObjectType("Query", {"n": GraphQLField(GraphQLInt, resolve=lambda *_: 1)})
    document, runs = parse("{ n }"), Executor(GraphQLSchema(root))
    await runs.execute(document)
    runs.forget(document)
    assert not len(runs._plan_cache)
    assert (await runs.execute(document)).data == {"n": 1}


async def test_an_error_at_many_places_stays_small() -> None:
    """One exception that fails a hundred parents is not raised a hundred times: it would remember each."""
    wrong = ValueError("wrong")
    item = GraphQLObjectType("Item", {"name": batch(GraphQLString, lambda parents, context: [wrong] * len(parents))})
    root = GraphQLObjectType("Query", {"items": batch(GraphQLList(item), lambda *_: [list(range(100))])})
    result = await Executor(GraphQLSchema(root)).execute(parse("{ items { name } }"))
    assert len(result.errors or []) == 100
    raised, depth = wrong.__traceback__, 0
    while raised:
        raised, depth = raised.tb_next, depth + 1
    assert depth < 5


async def test_a_schema_that_recognises_types_asynchronously_is_left_alone() -> None:
    """Even where such a type would only be met beneath an interface: all of the operation is graphql-core's."""

    async def is_type_of(value: Any, info: Any) -> bool:
        return True

    named = GraphQLInterfaceType("Named", {"name": GraphQLField(GraphQLString)})
    inner = GraphQLObjectType("Inner", {"x": GraphQLField(GraphQLInt, resolve=lambda *_: 1)}, is_type_of=is_type_of)
    outer = GraphQLObjectType(
        "Outer",
        {
            "name": GraphQLField(GraphQLString, resolve=lambda *_: "outer"),
            "inner": GraphQLField(inner, resolve=lambda *_: "inner"),
        },
        interfaces=[named],
        is_type_of=lambda value, info: True,
    )
    root = GraphQLObjectType("Query", {"named": GraphQLField(named, resolve=lambda *_: "value")})
    runs = Executor(GraphQLSchema(root, types=[outer]))
    result = await runs.execute(parse("{ named { name ... on Outer { inner { x } } } }"))
    assert result.data == {"named": {"name": "outer", "inner": {"x": 1}}}
    assert runs.fallen_back == 1
