"""Batch resolvers in ordinary execution: one dataloader for each combination of resolver and arguments."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias

from .cache_keys import freeze, freeze_parent
from .loader import DataLoader

BatchResolver: TypeAlias = Callable[..., Awaitable[Sequence[Any]] | Sequence[Any]]
Arguments: TypeAlias = Mapping[str, Any]

ROOT = object()


class Batches:
    """The dataloaders of one context.

    Equal parents are passed to a resolver once. Unhashable parents are compared by identity.
    """

    def __init__(self) -> None:
        self._loaders: dict[Hashable, DataLoader[Any, Any]] = {}

    def load(self, resolver: BatchResolver, parent: object, context: object, arguments: Arguments) -> Awaitable[Any]:
        """Return a future for one parent's value. The resolver is called once for all parents of a layer."""
        key = (resolver, freeze(arguments))
        loader = self._loaders.get(key)
        if loader is None:
            batch = partial(_resolve, resolver, context, arguments)
            loader = self._loaders[key] = DataLoader(batch, get_cache_key=freeze_parent)
        return loader.load(ROOT if parent is None else parent)


async def _resolve(
    resolver: BatchResolver, context: object, arguments: Arguments, parents: Sequence[object]
) -> Sequence[Any]:
    values = resolver([None if parent is ROOT else parent for parent in parents], context, **arguments)
    return list(await values if isawaitable(values) else values)
