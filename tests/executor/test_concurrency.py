"""Resolvers are ordinary asyncio code: concurrent within a layer, with groups, deadlines and context variables."""

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

pytestmark = pytest.mark.usefixtures("nothing_is_left_behind")

voice: ContextVar[str] = ContextVar("voice", default="nobody's")


async def test_batch_resolvers_of_one_layer_run_at_the_same_time() -> None:
    """Each of three fields waits for the two others, so one after another they would never end."""
    meeting = asyncio.Barrier(3)

    async def meet(parents: Sequence[Any], context: Any) -> list[int]:
        await meeting.wait()
        return [1 for _ in parents]

    schema = schema_of({name: in_batches(GraphQLInt, meet) for name in ("a", "b", "c")})
    async with asyncio.timeout(PATIENCE):
        assert (await ask(schema, "{ a b c }")).data == {"a": 1, "b": 1, "c": 1}


async def test_resolvers_of_several_parents_run_at_the_same_time() -> None:
    """A resolver that is called for each parent waits for its siblings, in another list too."""
    meeting = asyncio.Barrier(6)

    async def meet(source: int, info: Any) -> int:
        await meeting.wait()
        return source

    schema = numbered({"met": resolved(GraphQLInt, meet)})
    async with asyncio.timeout(PATIENCE):
        result = await ask(schema, "{ items { met } others: items { met } }")
    assert result.data == {"items": [{"met": n} for n in range(3)], "others": [{"met": n} for n in range(3)]}


async def test_a_batch_and_a_single_resolver_of_one_layer_run_at_the_same_time() -> None:
    """How a field is resolved makes no difference to its layer."""
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
    """The tasks of a group in a batch resolver run, and are awaited."""

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    async def doubles(parents: Sequence[int], context: Any) -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(double(parent)) for parent in parents]
        return [task.result() for task in tasks]

    result = await ask(numbered({"double": in_batches(GraphQLInt, doubles)}), "{ items { double } }")
    assert result.data == {"items": [{"double": 0}, {"double": 2}, {"double": 4}]}


async def test_a_task_group_that_fails_fails_its_field_alone() -> None:
    """Its other tasks are cancelled by the group; fields beside it, and their tasks, are not touched."""
    endless = Endless()

    async def fail() -> None:
        await endless.begun.wait()
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


async def test_a_deadline_in_a_resolver_fails_its_field_alone() -> None:
    """`asyncio.timeout` in a resolver cancels what the resolver awaits, and nothing else."""

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
    """However a field is resolved; and what a coroutine sets, its siblings do not see."""

    def at_once(source: Any, info: Any) -> str:
        return voice.get()

    async def later(source: Any, info: Any) -> str:
        heard = voice.get()
        voice.set("a resolver's")
        await asyncio.sleep(0)
        return heard

    async def in_batch(parents: Sequence[Any], context: Any) -> list[str]:
        heard = voice.get()
        voice.set("a batch resolver's")
        await asyncio.sleep(0)
        return [heard for _ in parents]

    fields = {
        "at_once": resolved(GraphQLString, at_once),
        "later": resolved(GraphQLString, later),
        "again": resolved(GraphQLString, later),
        "in_batch": in_batches(GraphQLString, in_batch),
    }
    voice.set("the caller's")
    result = await ask(schema_of(fields), "{ later again in_batch at_once }")
    assert set((result.data or {}).values()) == {"the caller's"}
    assert voice.get() == "the caller's"


async def test_two_executions_at_once_do_not_mix() -> None:
    """Of one document, and so of one plan: each has its own root, context and variables, and fails for itself."""
    meeting = asyncio.Barrier(2)

    async def told(parents: Sequence[Any], context: str, *, n: int) -> list[Any]:
        await meeting.wait()
        return [LookupError(context) if n == 0 else f"{parent} {context} {n}" for parent in parents]

    executor = Executor(schema_of({"told": in_batches(GraphQLString, told, n=GraphQLInt)}))
    document = parse("query ($n: Int!) { told(n: $n) again: told(n: $n) @skip(if: false) }")
    meeting = asyncio.Barrier(4)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                executor.execute(document, root_value=f"root {n}", context_value=f"ctx {n}", variable_values={"n": n})
            )
            for n in range(2)
        ]
    failed, right = (task.result() for task in tasks)
    assert right.data == {"told": "root 1 ctx 1 1", "again": "root 1 ctx 1 1"}
    assert right.errors is None
    assert failed.data == {"told": None, "again": None}
    assert messages(failed) == [(("told",), "ctx 0"), (("again",), "ctx 0")]


def shared_by_all(value: Any) -> GraphQLSchema:
    """Make a schema whose field gives every parent one and the same future."""

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
    """It may be awaited as often as it is met: as a value, in a batch, in a list."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, 5)
    result = await ask(shared_by_all(future), "{ items { own given listed } }", context_value=future)
    assert result.data == {"items": [{"own": 5, "given": 5, "listed": [5, 5]}] * 3}


async def test_one_future_shared_by_several_parents_fails_all_of_them() -> None:
    """Each parent has an error of its own."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_exception(LookupError("lost"))
    result = await ask(shared_by_all(future), "{ items(count: 2) { own listed } }", context_value=future)
    assert result.data == {"items": [{"own": None, "listed": [None, None]}] * 2}
    places = [(0, "own"), (0, "listed", 0), (0, "listed", 1), (1, "own"), (1, "listed", 0), (1, "listed", 1)]
    assert messages(result) == [(("items", *place), "lost") for place in places]


async def test_a_failure_does_not_cancel_what_is_at_work_beside_it() -> None:
    """Even where it nulls the whole response, resolvers that have begun come to their end."""
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


async def test_a_layer_waits_for_the_slowest_and_the_next_one_is_asked_once() -> None:
    """Objects that come at different times are parents of one batch."""
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
