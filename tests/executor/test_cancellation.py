"""Cancelled executions and deadlines: everything that an execution started is cancelled, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from graphql import GraphQLInt, GraphQLList, parse

from executor import Executor
from executor.loader import DataLoader
from tests.executor.endless import Endless, cancel_when_started
from tests.executor.tiny import ask, in_batches, numbered, resolved, schema_of
from tests.support.graph_worlds import PATIENCE

pytestmark = pytest.mark.usefixtures("no_tasks_left_behind")


async def test_cancelling_the_caller_cancels_the_resolvers_and_waits_for_them() -> None:
    """All running resolvers are cancelled and have cleaned up before the caller continues."""
    endless = Endless()
    schema = numbered({"one": in_batches(GraphQLInt, endless), "other": resolved(GraphQLInt, endless)})
    await cancel_when_started(ask(schema, "{ items { one other } }"), endless.started)
    assert endless.endings == ["cancelled"] * 4


async def test_cancelling_in_a_deeper_layer_cancels_it() -> None:
    """Awaitables in lists are cancelled as well."""
    endless = Endless()

    async def promises(parents: Sequence[int], context: Any) -> list[Any]:
        return [[endless(), endless()] for _ in parents]

    schema = numbered({"promises": in_batches(GraphQLList(GraphQLInt), promises)})
    await cancel_when_started(ask(schema, "{ items(count: 1) { promises } }"), endless.started)
    assert endless.endings == ["cancelled"] * 2


async def test_cancelling_closes_an_asynchronous_iterable() -> None:
    """The asynchronous generator of a list is closed."""
    endless, closed = Endless(), asyncio.Event()

    async def stream(source: Any, info: Any) -> AsyncIterator[int]:
        try:
            yield 1
            await endless()
        finally:
            closed.set()

    schema = schema_of({"numbers": resolved(GraphQLList(GraphQLInt), stream)})
    await cancel_when_started(ask(schema, "{ numbers }"), endless.started)
    assert closed.is_set()


async def test_a_cancelled_mutation_stops() -> None:
    """Root fields after the running one never start."""
    endless, started = Endless(), []

    async def record(source: Any, info: Any) -> int:
        started.append(info.field_name)
        number: int = await endless()
        return number

    fields = {"first": resolved(GraphQLInt, record), "second": resolved(GraphQLInt, record)}
    await cancel_when_started(ask(schema_of(fields, fields), "mutation { first second }"), endless.started)
    assert started == ["first"]


async def test_a_deadline_around_an_execution() -> None:
    """The caller gets TimeoutError, and running resolvers are cancelled."""
    endless = Endless()
    schema = numbered({"slow": in_batches(GraphQLInt, endless)})

    async def execute_until_started() -> None:
        async with asyncio.timeout(None) as deadline, asyncio.TaskGroup() as group:

            async def pass_the_deadline() -> None:
                await endless.started.wait()
                deadline.reschedule(asyncio.get_running_loop().time())

            group.create_task(pass_the_deadline())
            await ask(schema, "{ items { slow } }")

    with pytest.raises(TimeoutError):
        await execute_until_started()
    assert endless.endings == ["cancelled"]


async def test_a_shielded_task_survives_cancellation() -> None:
    """A task that a resolver shields continues, and its result is available."""
    may_end, started = asyncio.Event(), asyncio.Event()
    shielded: list[asyncio.Task[int]] = []

    async def work() -> int:
        started.set()
        await may_end.wait()
        return 7

    async def guarded(source: Any, info: Any) -> int:
        shielded.append(asyncio.create_task(work()))
        return await asyncio.shield(shielded[0])

    await cancel_when_started(ask(schema_of({"guarded": resolved(GraphQLInt, guarded)}), "{ guarded }"), started)
    may_end.set()
    assert await shielded[0] == 7


async def test_a_resolver_whose_own_task_was_cancelled_cancels_the_execution() -> None:
    """As in graphql-core, `CancelledError` is not an error of a field: it propagates, and no resolver keeps running."""
    endless = Endless()

    async def given_up(source: Any, info: Any) -> int:
        await endless.started.wait()
        raise asyncio.CancelledError

    schema = schema_of({"given_up": resolved(GraphQLInt, given_up), "slow": resolved(GraphQLInt, endless)})
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await ask(schema, "{ given_up slow }")
    assert endless.endings == ["cancelled"]


async def test_the_context_of_a_cancelled_execution_can_be_used_again() -> None:
    """A dataloader of the context finishes its look-up and returns the values to the next execution."""
    may_end, started = asyncio.Event(), asyncio.Event()
    calls: list[list[int]] = []

    async def look_up(keys: list[int]) -> list[int]:
        calls.append(list(keys))
        started.set()
        await may_end.wait()
        return [key * 10 for key in keys]

    async def tens(parents: Sequence[int], context: "DataLoader[int, int]") -> list[int]:
        return await context.load_many(parents)

    loader: DataLoader[int, int] = DataLoader(look_up)
    executor = Executor(numbered({"tens": in_batches(GraphQLInt, tens)}))
    document = parse("{ items { tens } }")
    await cancel_when_started(executor.execute(document, context_value=loader), started)
    may_end.set()
    result = await executor.execute(document, context_value=loader)
    assert result.data == {"items": [{"tens": 0}, {"tens": 10}, {"tens": 20}]}
    assert calls == [[0, 1, 2]]
