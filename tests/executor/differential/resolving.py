"""The kinds of resolvers of generated fields. Each has a synchronous equivalent for graphql-core."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from graphql import GraphQLArgument, GraphQLField, GraphQLList, GraphQLNonNull, GraphQLResolveInfo

from tests.executor.differential.answers import FieldPlan, World
from tests.executor.differential.things import Identity, Reference, identity_of

NOBODY = Identity("Nobody", 0, None)


class Promise:
    """An awaitable that is neither a coroutine nor a future."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from asyncio.sleep(0).__await__()
        return given(self._value)


def given(answer: Any) -> Any:
    """Return a value, or raise it if it is an exception."""
    if isinstance(answer, Exception):
        raise answer
    return answer


async def later(answer: Any, ticks: int) -> Any:
    """Return a value after some event-loop iterations."""
    for _ in range(ticks):
        await asyncio.sleep(0)
    return given(answer)


def future_of(answer: Any) -> "asyncio.Future[Any]":
    """Return a future that finishes in the next event-loop iteration."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def finish() -> None:
        if future.cancelled():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    asyncio.get_running_loop().call_soon(finish)
    return future


def awaited(answer: Any, way: int) -> Any:
    """Return a value as one of several kinds of awaitables, or unchanged."""
    if way < 4:
        return later(answer, way)
    return future_of(answer) if way == 4 else Promise(answer) if way == 5 else given(answer)


def with_awaitables(items: Iterable[Any], way: int) -> Iterator[Any]:
    """Return the items of a list, some of them as awaitables."""
    for index, item in enumerate(items):
        promised = (way + index) % 3 == 0
        yield later(item, 1) if promised else item


async def streamed(items: Iterable[Any]) -> AsyncIterator[Any]:
    """Yield the items of a list, one per event-loop iteration."""
    for item in items:
        await asyncio.sleep(0)
        yield item


def awaitable_list(answer: Any, way: int) -> Any:
    """Return a list with awaitables in it, as an asynchronous iterable, or unchanged."""
    if not isinstance(answer, list | tuple | deque | Iterator):
        return answer
    if way % 4 == 0:
        return streamed(answer)
    if way % 4 == 1:
        return list(with_awaitables(answer, way)) if isinstance(answer, list) else with_awaitables(answer, way)
    return answer


def is_list(plan: FieldPlan) -> bool:
    """Return True if a field is a list."""
    return isinstance(plan.type.of_type if isinstance(plan.type, GraphQLNonNull) else plan.type, GraphQLList)


def resolver(plan: FieldPlan) -> Callable[..., Any]:
    """Return an ordinary resolver, which uses `info`."""
    lists = is_list(plan)

    def resolve(source: Any, info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
        world: World = info.context
        answer = world.answer(plan, source, arguments, info)
        if not world.live:
            return given(answer)
        way = crc32(f"{world.salt} {info.path.as_list()}".encode()) % 63
        return awaited(awaitable_list(answer, way // 9) if lists else answer, way % 9)

    return resolve


def batch_equivalent(plan: FieldPlan) -> Callable[..., Any]:
    """Return the resolver for graphql-core, which the executor must not call."""

    def resolve(source: Any, info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
        world: World = info.context
        if world.live:
            raise AssertionError(f"{plan.name} has a batch resolver")
        return given(world.answer(plan, source, arguments))

    return resolve


def batch(plan: FieldPlan, *, may_raise: bool = True) -> Callable[..., Sequence[Any]]:
    """Return a synchronous batch resolver, which returns failures as values or, for some seeds, raises the first."""

    def resolve_all(parents: Sequence[Any], context: World, **arguments: Any) -> Sequence[Any]:
        failure = context.fails_for_all(plan, arguments)
        if failure is not None:
            raise failure
        values = [context.answer(plan, parent, arguments) for parent in parents]
        return [given(value) for value in values] if may_raise and context.salt % 2 else values

    return resolve_all


def asynchronous_batch(plan: FieldPlan) -> Callable[..., Awaitable[Sequence[Any]]]:
    """Return a batch resolver that returns a tuple after some event-loop iterations."""
    resolve_all = batch(plan, may_raise=False)
    lists = is_list(plan)

    async def resolve_all_later(parents: Sequence[Any], context: World, **arguments: Any) -> Sequence[Any]:
        for _ in range(context.salt % 3):
            await asyncio.sleep(0)
        values = resolve_all(parents, context, **arguments)
        if lists and context.live:
            values = [awaitable_list(value, context.salt // 3 + at) for at, value in enumerate(values)]
        return tuple(values)

    return resolve_all_later


def reference_to(answer: Any) -> Reference | None:
    """Return a reference to a value, or None if the value is not an object."""
    identity = identity_of(answer)
    if identity is not None:
        return Reference(identity)
    return Reference(NOBODY) if answer is None or isinstance(answer, Exception) else None


def references(plan: FieldPlan) -> Callable[..., Sequence[Any]]:
    """Return the reference function of a field. It may return references to values that turn out to be null."""

    def refer(parents: Sequence[Any], context: World, **arguments: Any) -> Sequence[Any]:
        return [reference_to(context.answer(plan, parent, arguments)) for parent in parents]

    return refer


def make_field(plan: FieldPlan, arguments: Mapping[str, GraphQLArgument]) -> GraphQLField:
    """Return the field."""
    args = dict(arguments)
    if plan.realisation in ("attribute", "method"):
        return GraphQLField(plan.type, args)
    if plan.realisation == "each":
        return GraphQLField(plan.type, args, resolve=resolver(plan))
    if plan.realisation == "batch":
        extensions: dict[str, Any] = {"batch": batch(plan)}
    else:
        extensions = {"batch": asynchronous_batch(plan), "needs_only_reference": True}
    if plan.realisation == "references":
        extensions["references"] = references(plan)
    return GraphQLField(plan.type, args, resolve=batch_equivalent(plan), extensions=extensions)


def claimed_type(value: Any, info: GraphQLResolveInfo[Any], abstract_type: Any) -> Any:
    """Return the type that an object claims to be."""
    identity = identity_of(value)
    if identity is None:
        return None
    if identity.claim == "raise":
        raise LookupError(f"cannot resolve the type at {info.path.as_list()} of {info.parent_type}.{info.field_name}")
    return identity.claim


def same_kind(name: str) -> Callable[[Any, GraphQLResolveInfo[Any]], bool]:
    """Return an `is_type_of` function for this type."""

    def is_type_of(value: Any, info: GraphQLResolveInfo[Any]) -> bool:
        identity = identity_of(value)
        if identity is not None and identity.claim == "raise" and identity.number == 0:
            raise ValueError(f"cannot tell at {info.path.as_list()} of {info.parent_type}.{info.field_name}")
        return identity is not None and identity.kind == name

    return is_type_of
