"""Cancelling an execution, or letting its deadline pass, ends what it began, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from graphql import GraphQLInt, GraphQLList, parse

from executor import Executor
from executor.loader import DataLoader
from tests.executor.endless import Endless, cancel_when_begun
from tests.executor.tiny import ask, in_batches, numbered, resolved, schema_of
from tests.support.graph_worlds import PATIENCE

pytestmark = pytest.mark.usefixtures("nothing_is_left_behind")


async def test_cancelling_the_caller_cancels_the_resolvers_and_waits_for_them() -> None:
    """All that is at work is cancelled, and has cleaned up when the caller learns of it."""
    endless = Endless()
    schema = numbered({"one": in_batches(GraphQLInt, endless), "other": resolved(GraphQLInt, endless)})
    await cancel_when_begun(ask(schema, "{ items { one other } }"), endless.begun)
    assert endless.endings == ["cancelled"] * 4


async def test_cancelling_in_a_deeper_layer_cancels_it() -> None:
    """Awaitables inside lists are cancelled as well."""
    endless = Endless()

    async def promises(parents: Sequence[int], context: Any) -> list[Any]:
        return [[endless(), endless()] for _ in parents]

    schema = numbered({"promises": in_batches(GraphQLList(GraphQLInt), promises)})
    await cancel_when_begun(ask(schema, "{ items(count: 1) { promises } }"), endless.begun)
    assert endless.endings == ["cancelled"] * 2


async def test_cancelling_closes_an_asynchronous_iterable() -> None:
    """A list that comes item by item is closed where it stands."""
    endless, closed = Endless(), asyncio.Event()

    async def stream(source: Any, info: Any) -> AsyncIterator[int]:
        try:
            yield 1
            await endless()
        finally:
            closed.set()

    schema = schema_of({"numbers": resolved(GraphQLList(GraphQLInt), stream)})
    await cancel_when_begun(ask(schema, "{ numbers }"), endless.begun)
    assert closed.is_set()


async def test_a_mutation_that_is_cancelled_does_not_go_on() -> None:
    """Root fields after the one at work are never begun."""
    endless, begun = Endless(), []

    async def record(source: Any, info: Any) -> int:
        begun.append(info.field_name)
        return await endless()  # type: ignore[no-any-return]  # it never gives anything

    fields = {"first": resolved(GraphQLInt, record), "second": resolved(GraphQLInt, record)}
    await cancel_when_begun(ask(schema_of(fields, fields), "mutation { first second }"), endless.begun)
    assert begun == ["first"]


async def test_a_deadline_around_an_execution() -> None:
    """The caller gets TimeoutError, and what was at work is cancelled."""
    endless = Endless()
    schema = numbered({"slow": in_batches(GraphQLInt, endless)})

    async def execute_until_begun() -> None:
        async with asyncio.timeout(None) as deadline, asyncio.TaskGroup() as group:

            async def pass_the_deadline() -> None:
                await endless.begun.wait()
                deadline.reschedule(asyncio.get_running_loop().time())

            group.create_task(pass_the_deadline())
            await ask(schema, "{ items { slow } }")

    with pytest.raises(TimeoutError):
        await execute_until_begun()
    assert endless.endings == ["cancelled"]


async def test_a_shielded_task_outlives_the_caller() -> None:
    """What a resolver shields goes on, and its result can be had."""
    may_end, begun = asyncio.Event(), asyncio.Event()
    shielded: list[asyncio.Task[int]] = []

    async def work() -> int:
        begun.set()
        await may_end.wait()
        return 7

    async def guarded(source: Any, info: Any) -> int:
        shielded.append(asyncio.create_task(work()))
        return await asyncio.shield(shielded[0])

    await cancel_when_begun(ask(schema_of({"guarded": resolved(GraphQLInt, guarded)}), "{ guarded }"), begun)
    may_end.set()
    assert await shielded[0] == 7


async def test_a_resolver_whose_own_task_was_cancelled_cancels_the_execution() -> None:
    """`CancelledError` is no error of a field, as in graphql-core; it passes, and leaves nothing at work."""
    endless = Endless()

    async def given_up(source: Any, info: Any) -> int:
        await endless.begun.wait()
        raise asyncio.CancelledError

    schema = schema_of({"given_up": resolved(GraphQLInt, given_up), "slow": resolved(GraphQLInt, endless)})
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await ask(schema, "{ given_up slow }")
    assert endless.endings == ["cancelled"]


async def test_the_context_of_a_cancelled_execution_can_be_used_again() -> None:
    """A loader on it has gone on with its look-up, and gives what that has found."""
    may_end, begun = asyncio.Event(), asyncio.Event()
    calls: list[list[int]] = []

    async def look_up(keys: list[int]) -> list[int]:
        calls.append(list(keys))
        begun.set()
        await may_end.wait()
        return [key * 10 for key in keys]

    async def tens(parents: Sequence[int], context: "DataLoader[int, int]") -> list[int]:
        return await context.load_many(parents)

    loader: DataLoader[int, int] = DataLoader(look_up)
    executor = Executor(numbered({"tens": in_batches(GraphQLInt, tens)}))
    document = parse("{ items { tens } }")
    await cancel_when_begun(executor.execute(document, context_value=loader), begun)
    may_end.set()
    result = await executor.execute(document, context_value=loader)
    assert result.data == {"items": [{"tens": 0}, {"tens": 10}, {"tens": 20}]}
    assert calls == [[0, 1, 2]]
