"""Awaiting what a resolver left to be awaited inside its values: awaitables, and asynchronous iterables for lists."""

import asyncio
from collections.abc import AsyncIterable, Collection
from functools import lru_cache
from inspect import isawaitable
from types import GeneratorType
from typing import Any

from graphql import GraphQLList, GraphQLNonNull, GraphQLOutputType

from executor.plan import Column


class Unsettled(Exception):
    """Values have to be awaited before a column can be completed; what was iterated over is kept in `values`."""

    def __init__(self, values: Column) -> None:
        super().__init__()
        self.values = values


@lru_cache(maxsize=10_000)
def waits(kind: type) -> bool:
    """Tell whether values of a Python type can be awaited, or perhaps can."""
    return hasattr(kind, "__await__") or issubclass(kind, GeneratorType)


@lru_cache(maxsize=10_000)
def streams(kind: type) -> bool:
    """Tell whether values of a Python type are asynchronous iterables."""
    return hasattr(kind, "__aiter__")


def must_wait(values: Column, kinds: set[type]) -> bool:
    """Tell whether any value of a column, whose types are given, has to be awaited."""
    return any(map(waits, kinds)) and any(map(isawaitable, values))


async def settle(values: Column, depth: int) -> Column:
    """Await all there is to await in a column, with its lists to a depth; what fails becomes the exception."""
    values = list(await asyncio.gather(*(_settle_one(value, depth) for value in values)))
    if depth:
        nested = [index for index, value in enumerate(values) if type(value) is list]
        for index, items in zip(
            nested, await asyncio.gather(*(settle(values[i], depth - 1) for i in nested)), strict=True
        ):
            values[index] = items
    return values


async def _settle_one(value: Any, depth: int) -> Any:
    try:
        value = await value if isawaitable(value) else value
        if depth and isinstance(value, AsyncIterable):
            return [item async for item in value]
    except Exception as error:
        return error
    return value


def depth_of(type_: GraphQLOutputType) -> int:
    """Tell how many lists are nested in a type."""
    depth = 0
    while isinstance(type_, GraphQLNonNull | GraphQLList):
        depth += isinstance(type_, GraphQLList)
        type_ = type_.of_type
    return depth


async def end(tasks: "Collection[asyncio.Future[Any]]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
