"""Limits of the executor: calls, references, cached plans and errors."""

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
from executor.plan import Plan


def batch(type_: Any, resolver: Any) -> GraphQLField:
    """Return a field with a batch resolver."""
    return GraphQLField(type_, extensions={"batch": resolver})


async def test_batch_resolvers_are_not_called_without_parents() -> None:
    """Batch resolvers below an empty list are not called."""
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


@pytest.mark.parametrize("references", [[[]], [], ["one", "too many"], 7, None, [None]], ids=repr)
async def test_unusable_references_are_ignored(references: Any) -> None:
    """If references are unhashable, missing, too few or too many, fields wait for the values themselves."""

    async def friends(parents: Sequence[Any], context: Any) -> list[str]:
        return ["bob"] * len(parents)

    name = GraphQLField(
        GraphQLString,
        extensions={"batch": lambda parents, context: [str(each) for each in parents], "needs_only_reference": True},
    )
    friend = GraphQLField(
        GraphQLObjectType("Friend", {"name": name}),
        extensions={"batch": friends, "references": lambda parents, context: references},
    )
    result = await Executor(GraphQLSchema(GraphQLObjectType("Query", {"friend": friend}))).execute(
        parse("{ friend { name } }")
    )
    assert result.errors is None
    assert result.data == {"friend": {"name": "bob"}}


async def test_cached_plans_have_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document with many combinations of conditions cannot keep a plan for each of them."""
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
            plan
            for document in runs._plan_cache._documents.values()
            for plan in document.plans.values()
            if isinstance(plan, Plan)
        ]
        assert sum(len(plan.root.fields) for plan in planned) <= 50 + 7


async def test_a_forgotten_document_is_planned_again() -> None:
    """Forgetting a document drops its plans; executing it again creates them again."""
    root = GraphQLObjectType("Query", {"n": GraphQLField(GraphQLInt, resolve=lambda *_: 1)})
    document, runs = parse("{ n }"), Executor(GraphQLSchema(root))
    await runs.execute(document)
    runs.forget(document)
    assert not len(runs._plan_cache)
    assert (await runs.execute(document)).data == {"n": 1}


async def test_an_error_at_many_paths_keeps_a_small_traceback() -> None:
    """An exception that fails a hundred parents is not raised a hundred times, because its traceback would grow."""
    wrong = ValueError("wrong")
    item = GraphQLObjectType("Item", {"name": batch(GraphQLString, lambda parents, context: [wrong] * len(parents))})
    root = GraphQLObjectType("Query", {"items": batch(GraphQLList(item), lambda *_: [list(range(100))])})
    result = await Executor(GraphQLSchema(root)).execute(parse("{ items { name } }"))
    assert len(result.errors or []) == 100
    raised, depth = wrong.__traceback__, 0
    while raised:
        raised, depth = raised.tb_next, depth + 1
    assert depth < 5


async def test_a_schema_with_asynchronous_type_checks_falls_back() -> None:
    """graphql-core executes the whole operation, even if the type occurs only below an interface."""

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
