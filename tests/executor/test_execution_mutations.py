"""Mutations: root fields run one after another, each with its whole payload."""

import asyncio
from collections.abc import Sequence
from typing import Any

from graphql import GraphQLField, GraphQLInt, GraphQLNonNull, GraphQLObjectType, GraphQLSchema

from tests.executor.tiny import ask, in_batches, messages, resolved, schema_of


class Counter:
    """A number that mutations change, with a log of the changes."""

    def __init__(self) -> None:
        self.number = 0
        self.log: list[str] = []


async def read(parents: Sequence[Counter], context: Any) -> list[int]:
    """Return the number after some event-loop iterations."""
    for _ in range(3):
        await asyncio.sleep(0)
    parents[0].log.append("read")
    return [parent.number for parent in parents]


def counting(*, required: bool = False) -> GraphQLSchema:
    """Return a schema whose mutations count synchronously or asynchronously, or fail."""
    holder = GraphQLObjectType("Holder", {"number": in_batches(GraphQLInt, read)})
    type_ = GraphQLNonNull(holder) if required else holder

    def count(source: Any, info: Any, to: int) -> Counter:
        counter: Counter = info.context
        counter.number = to
        counter.log.append(f"count {to}")
        return counter

    async def count_later(source: Any, info: Any, to: int) -> Counter:
        await asyncio.sleep(0)
        return count(source, info, to)

    def fail(source: Any, info: Any) -> Counter:
        info.context.log.append("fail")
        raise LookupError("failed")

    async def fail_later(source: Any, info: Any) -> Counter:
        await asyncio.sleep(0)
        return fail(source, info)

    async def count_all(parents: Sequence[Any], context: Counter, *, to: int) -> list[Counter]:
        context.number = to
        context.log.append(f"count {to}")
        return [context for _ in parents]

    mutations: dict[str, GraphQLField] = {
        "count": resolved(type_, count, to=GraphQLInt),
        "countLater": resolved(type_, count_later, to=GraphQLInt),
        "countAll": in_batches(type_, count_all, to=GraphQLInt),
        "fail": resolved(type_, fail),
        "failLater": resolved(type_, fail_later),
    }
    return schema_of({"number": resolved(GraphQLInt)}, mutations)


async def test_each_root_field_finishes_before_the_next_starts() -> None:
    """The payload of a field is complete before the next field starts; keys have the document's order."""
    document = """mutation {
      a: count(to: 1) { number } b: countLater(to: 2) { number } c: countAll(to: 3) { number }
      ...Rest
    }
    fragment Rest on Mutation { d: count(to: 4) { number } }"""
    counter = Counter()
    result = await ask(counting(), document, context_value=counter)
    assert result.data == {key: {"number": n} for n, key in enumerate("abcd", 1)}
    assert counter.log == ["count 1", "read", "count 2", "read", "count 3", "read", "count 4", "read"]
    assert list(result.data or {}) == list("abcd")


async def test_a_failed_mutation_does_not_stop_the_next_one() -> None:
    """The failed field is null and has an error."""
    document = (
        "mutation { a: count(to: 1) { number } fail { number } failLater { number } b: countLater(to: 2) { number } }"
    )
    counter = Counter()
    result = await ask(counting(), document, context_value=counter)
    assert result.data == {"a": {"number": 1}, "fail": None, "failLater": None, "b": {"number": 2}}
    assert messages(result) == [(("fail",), "failed"), (("failLater",), "failed")]
    assert counter.log == ["count 1", "read", "fail", "fail", "count 2", "read"]


async def test_a_failed_non_null_field_stops_the_mutation() -> None:
    """If a non-null field fails, there is no data, and later fields do not run."""
    document = "mutation { a: count(to: 1) { number } failLater { number } b: count(to: 2) { number } }"
    counter = Counter()
    result = await ask(counting(required=True), document, context_value=counter)
    assert result.data is None
    assert messages(result) == [(("failLater",), "failed")]
    assert counter.log == ["count 1", "read", "fail"]


async def test_merged_root_fields_run_once() -> None:
    """Fields with the same key run once."""
    counter = Counter()
    document = "mutation { count(to: 1) { number } ... { count(to: 1) { again: number } } }"
    result = await ask(counting(), document, context_value=counter)
    assert result.data == {"count": {"number": 1, "again": 1}}
    assert counter.log.count("count 1") == 1
