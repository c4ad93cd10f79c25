"""Awaiting what a resolver left to be awaited inside its values: awaitables, and asynchronous iterables for lists."""

import asyncio
from collections.abc import AsyncIterable, Collection, Iterable
from functools import lru_cache
from inspect import isawaitable
from types import GeneratorType
from typing import Any

from graphql import GraphQLList, GraphQLNonNull, GraphQLOutputType
from graphql.pyutils import Undefined

from executor.plan import Column


class Unsettled(Exception):
    """Values have to be awaited before a column can be completed; what was iterated over is kept in `values`."""

    def __init__(self, values: Column) -> None:
        super().__init__()
        self.values = values


class BrokenOff(Exception):
    """The last item of an iterable that raised on the way: what failed is the whole list, after its items."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def drained(iterable: Iterable[Any]) -> Column:
    """Give the items of an iterable; if it raises on the way, those before and what it raised."""
    items: Column = []
    try:
        items.extend(iterable)
    except Exception as error:
        items.append(BrokenOff(error))
    return items


@lru_cache(maxsize=10_000)
def waits(kind: type) -> bool:
    """Tell whether values of a Python type can be awaited, or perhaps can."""
    return hasattr(kind, "__await__") or issubclass(kind, GeneratorType)


@lru_cache(maxsize=10_000)
def streams(kind: type) -> bool:
    """Tell whether values of a Python type are asynchronous iterables."""
    return hasattr(kind, "__aiter__")


@lru_cache(maxsize=10_000)
def is_plain(kind: type) -> bool:
    """Tell whether values of a Python type are neither null nor errors."""
    return not issubclass(kind, Exception) and kind not in (type(None), type(Undefined))


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
    except Exception as error:
        return error
    if not depth or not isinstance(value, AsyncIterable):
        return value
    items: Column = []
    try:
        async for item in value:
            items.append(item)
    except Exception as error:
        items.append(BrokenOff(error))
    return items


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
