"""Columns with values that must be awaited: awaitables, and asynchronous iterables where a list is expected."""

import asyncio
from collections.abc import AsyncIterable, Iterable
from functools import lru_cache
from inspect import isawaitable
from types import GeneratorType
from typing import Any

from graphql import GraphQLList, GraphQLNonNull, GraphQLOutputType
from graphql.pyutils import Undefined

from .plan import Column


class AwaitableColumn(Exception):
    """Raised for a column whose values must be awaited before it can be completed.

    `values` is that column, with iterators that were already consumed replaced by lists of their items.
    """

    def __init__(self, values: Column) -> None:
        super().__init__()
        self.values = values


class IterationError(Exception):
    """Marks the end of a list whose iterator raised `error`. The error fails the whole list."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def items_of(iterable: Iterable[Any]) -> Column:
    """Return the items of an iterable. If iteration raises, the last item is an IterationError."""
    items: Column = []
    try:
        items.extend(iterable)
    except Exception as error:
        items.append(IterationError(error))
    return items


@lru_cache(maxsize=10_000)
def may_be_awaitable(kind: type) -> bool:
    """Return True if instances of a Python type can be awaitable."""
    return hasattr(kind, "__await__") or issubclass(kind, GeneratorType)


@lru_cache(maxsize=10_000)
def is_async_iterable(kind: type) -> bool:
    """Return True if instances of a Python type are asynchronous iterables."""
    return hasattr(kind, "__aiter__")


@lru_cache(maxsize=10_000)
def is_plain(kind: type) -> bool:
    """Return True if instances of a Python type are neither null (None or Undefined) nor exceptions."""
    return not issubclass(kind, Exception) and kind not in (type(None), type(Undefined))


def has_awaitables(values: Column, kinds: set[type]) -> bool:
    """Return True if a column holds an awaitable. `kinds` are the Python types of its values."""
    return any(map(may_be_awaitable, kinds)) and any(map(isawaitable, values))


async def await_column(values: Column, depth: int) -> Column:
    """Await the values of a column, and the items of lists nested up to `depth` levels deep.

    Return a column of the results. A value or item that raises is replaced by the exception. An asynchronous iterable
    that raises becomes a list that ends with an IterationError.
    """
    values = list(await asyncio.gather(*(_await_value(value, depth) for value in values)))
    if depth:
        nested = [index for index, value in enumerate(values) if type(value) is list]
        for index, items in zip(
            nested, await asyncio.gather(*(await_column(values[i], depth - 1) for i in nested)), strict=True
        ):
            values[index] = items
    return values


async def _await_value(value: Any, depth: int) -> Any:
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
        items.append(IterationError(error))
    return items


def list_depth(type_: GraphQLOutputType) -> int:
    """Return the number of nested list levels of a type, such as 2 for `[[Int!]]!`."""
    depth = 0
    while isinstance(type_, GraphQLNonNull | GraphQLList):
        depth += isinstance(type_, GraphQLList)
        type_ = type_.of_type
    return depth
