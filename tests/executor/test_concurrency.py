"""Resolvers as asyncio code: concurrency within a layer, task groups, deadlines and context variables."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import pytest
from graphql import GraphQLInt, GraphQLList, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString, parse

from executor import Executor
from tests.executor.endless import Endless
from tests.executor.tiny import ask, in_batches, messages, numbered, resolved, schema_of
from tests.support.graph_worlds import PATIENCE

pytestmark = pytest.mark.usefixtures("no_tasks_left_behind")

set_by: ContextVar[str] = ContextVar("set_by", default="nothing")


async def test_batch_resolvers_of_one_layer_run_at_the_same_time() -> None:
    """Three fields wait for each other, so they would never finish one after another."""
    meeting = asyncio.Barrier(3)

    async def meet(parents: Sequence[Any], context: Any) -> list[int]:
        await meeting.wait()
        return [1 for _ in parents]

    schema = schema_of({name: in_batches(GraphQLInt, meet) for name in ("a", "b", "c")})
    async with asyncio.timeout(PATIENCE):
        assert (await ask(schema, "{ a b c }")).data == {"a": 1, "b": 1, "c": 1}


async def test_resolvers_of_several_parents_run_at_the_same_time() -> None:
    """Ordinary resolvers of several parents wait for each other, in different lists as well."""
    meeting = asyncio.Barrier(6)

    async def meet(source: int, info: Any) -> int:
        await meeting.wait()
        return source

    schema = numbered({"met": resolved(GraphQLInt, meet)})
    async with asyncio.timeout(PATIENCE):
        result = await ask(schema, "{ items { met } others: items { met } }")
    assert result.data == {"items": [{"met": n} for n in range(3)], "others": [{"met": n} for n in range(3)]}


async def test_batch_and_ordinary_resolvers_of_one_layer_run_at_the_same_time() -> None:
    """Batch resolvers and ordinary resolvers of a layer run at the same time."""
    meeting = asyncio.Barrier(4)

    async def meet_all(parents: Sequence[int], context: Any) -> list[int]:
        await meeting.wait()
        return list(parents)

    async def meet(source: int, info: Any) -> int:
        await meeting.wait()
        return source

    schema = numbered({"one": in_batches(GraphQLInt, meet_all), "other": resolved(GraphQLInt, meet)})
    async with asyncio.timeout(PATIENCE):
        result = await ask(schema, "{ items { one other } }")
    assert result.data == {"items": [{"one": n, "other": n} for n in range(3)]}


async def test_a_resolver_uses_a_task_group() -> None:
    """A task group in a batch resolver runs and awaits its tasks."""

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    async def doubles(parents: Sequence[int], context: Any) -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(double(parent)) for parent in parents]
        return [task.result() for task in tasks]

    result = await ask(numbered({"double": in_batches(GraphQLInt, doubles)}), "{ items { double } }")
    assert result.data == {"items": [{"double": 0}, {"double": 2}, {"double": 4}]}


async def test_a_failed_task_group_fails_its_field_only() -> None:
    """The group cancels its own tasks. Other fields and their tasks are not affected."""
    endless = Endless()

    async def fail() -> None:
        await endless.started.wait()
        raise LookupError("lost")

    async def torn(source: int, info: Any) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(endless())
            group.create_task(fail())
        return source

    async def slow(source: int, info: Any) -> int:
        await endless.ended.wait()
        return source

    schema = numbered({"torn": resolved(GraphQLInt, torn), "slow": resolved(GraphQLInt, slow)})
    async with asyncio.timeout(PATIENCE):
        result = await ask(schema, "{ items(count: 1) { torn slow } }")
    assert result.data == {"items": [{"torn": None, "slow": 0}]}
    assert result.errors is not None
    assert isinstance(result.errors[0].original_error, ExceptionGroup)
    assert endless.endings == ["cancelled"]


async def test_a_deadline_in_a_resolver_fails_its_field_only() -> None:
    """`asyncio.timeout` in a resolver affects only that resolver."""

    async def late(source: int, info: Any) -> int:
        async with asyncio.timeout(0 if source == 1 else PATIENCE):
            if source == 1:
                await asyncio.Event().wait()
        return source

    result = await ask(numbered({"late": resolved(GraphQLInt, late)}), "{ items { late } }")
    assert result.data == {"items": [{"late": 0}, {"late": None}, {"late": 2}]}
    assert result.errors is not None
    assert [type(error.original_error) for error in result.errors] == [TimeoutError]


async def test_resolvers_see_the_context_variables_of_their_caller() -> None:
    """Context variables are visible in all resolvers. Changes by a coroutine are not visible to other fields."""

    def at_once(source: Any, info: Any) -> str:
        return set_by.get()

    async def later(source: Any, info: Any) -> str:
        seen = set_by.get()
        set_by.set("a resolver's")
        await asyncio.sleep(0)
        return seen

    async def in_batch(parents: Sequence[Any], context: Any) -> list[str]:
        seen = set_by.get()
        set_by.set("a batch resolver's")
        await asyncio.sleep(0)
        return [seen for _ in parents]

    fields = {
        "at_once": resolved(GraphQLString, at_once),
        "later": resolved(GraphQLString, later),
        "again": resolved(GraphQLString, later),
        "in_batch": in_batches(GraphQLString, in_batch),
    }
    set_by.set("the caller's")
    result = await ask(schema_of(fields), "{ later again in_batch at_once }")
    assert set((result.data or {}).values()) == {"the caller's"}
    assert set_by.get() == "the caller's"


async def test_concurrent_executions_are_independent() -> None:
    """Two executions of one plan have their own root values, contexts, variables and errors."""
    meeting = asyncio.Barrier(2)

    async def describe(parents: Sequence[Any], context: str, *, n: int) -> list[Any]:
        await meeting.wait()
        return [LookupError(context) if n == 0 else f"{parent} {context} {n}" for parent in parents]

    executor = Executor(schema_of({"described": in_batches(GraphQLString, describe, n=GraphQLInt)}))
    document = parse("query ($n: Int!) { described(n: $n) again: described(n: $n) @skip(if: false) }")
    meeting = asyncio.Barrier(4)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                executor.execute(document, root_value=f"root {n}", context_value=f"ctx {n}", variable_values={"n": n})
            )
            for n in range(2)
        ]
    failed, right = (task.result() for task in tasks)
    assert right.data == {"described": "root 1 ctx 1 1", "again": "root 1 ctx 1 1"}
    assert right.errors is None
    assert failed.data == {"described": None, "again": None}
    assert messages(failed) == [(("described",), "ctx 0"), (("again",), "ctx 0")]


def schema_with_shared_future(value: Any) -> GraphQLSchema:
    """Return a schema whose fields return the same future for every parent."""

    def futures(parents: Sequence[Any], context: "asyncio.Future[Any]") -> list[Any]:
        return [context for _ in parents]

    return numbered(
        {
            "own": resolved(GraphQLInt, lambda source, info: info.context),
            "given": in_batches(GraphQLInt, futures),
            "listed": resolved(GraphQLList(GraphQLInt), lambda source, info: [info.context, info.context]),
        }
    )


async def test_one_future_shared_by_several_parents() -> None:
    """A future can be the value of several parents: alone, in a batch and in a list."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, 5)
    result = await ask(schema_with_shared_future(future), "{ items { own given listed } }", context_value=future)
    assert result.data == {"items": [{"own": 5, "given": 5, "listed": [5, 5]}] * 3}


async def test_one_future_shared_by_several_parents_fails_all_of_them() -> None:
    """Each parent has its own error."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_exception(LookupError("lost"))
    result = await ask(schema_with_shared_future(future), "{ items(count: 2) { own listed } }", context_value=future)
    assert result.data == {"items": [{"own": None, "listed": [None, None]}] * 2}
    places = [(0, "own"), (0, "listed", 0), (0, "listed", 1), (1, "own"), (1, "listed", 0), (1, "listed", 1)]
    assert messages(result) == [(("items", *place), "lost") for place in places]


async def test_a_failure_does_not_cancel_running_resolvers() -> None:
    """Even if the error nulls the whole response, running resolvers finish."""
    ended = []

    async def fail(source: Any, info: Any) -> int:
        raise LookupError("at once")

    async def work(source: Any, info: Any) -> int:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.append(info.field_name)
        return 1

    fields = {"failing": resolved(GraphQLNonNull(GraphQLInt), fail), "working": resolved(GraphQLInt, work)}
    result = await ask(schema_of(fields), "{ failing working }")
    assert result.data is None
    assert messages(result) == [(("failing",), "at once")]
    assert ended == ["working"]


async def test_a_layer_starts_when_the_previous_layer_is_complete() -> None:
    """Objects that are resolved at different times are parents of one batch."""
    asked: list[list[int]] = []

    async def batch(parents: Sequence[int], context: Any) -> list[int]:
        asked.append(list(parents))
        return list(parents)

    leaf = GraphQLObjectType("Leaf", {"n": in_batches(GraphQLInt, batch)})

    async def child(source: int, info: Any) -> int:
        for _ in range(source):
            await asyncio.sleep(0)
        return source

    result = await ask(numbered({"child": resolved(leaf, child)}), "{ items { child { n } } }")
    assert result.data == {"items": [{"child": {"n": n}} for n in range(3)]}
    assert asked == [[0, 1, 2]]
