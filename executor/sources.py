"""Sources of field values: type names, attributes, batch resolvers, root resolvers, events, ordinary resolvers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from graphql.execution import default_field_resolver

from .arguments import Arguments
from .batches import BatchResolver
from .fields import SingleResolver
from .plan import Column, Field, Paths, Run


class TypeName:
    """The source of `__typename`: the same type name for all parents."""

    is_root_value = False

    def __init__(self, name: str) -> None:
        self._name = name

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Return a column that repeats the name of the parents' type."""
        return [self._name] * len(parents)


class Attribute:
    """An attribute of each parent."""

    is_root_value = False

    def __init__(self, name: str) -> None:
        self._get = attrgetter(name)

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Return the attribute of each parent. A property that raises fails for its parent only."""
        try:
            return list(map(self._get, parents))
        except Exception:
            return [_result_or_error(self._get, parent) for parent in parents]


class Batch:
    """A batch resolver, called once for all parents."""

    is_root_value = False

    def __init__(self, resolver: BatchResolver, arguments: Arguments, *, is_async: bool) -> None:
        self._resolver = resolver
        self._arguments = arguments
        self._is_async = is_async

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Any:
        """Return the result of the resolver.

        If a synchronous resolver raises, call it again for each parent separately, so that the others can succeed.
        """
        arguments = self._arguments.of(run)
        try:
            return self._resolver(parents, run.context, **arguments)
        except Exception:
            if self._is_async or len(parents) == 1:
                raise
            return [_result_or_error(partial(self._resolve_alone, run, arguments), parent) for parent in parents]

    def _resolve_alone(self, run: Run, arguments: Mapping[str, Any], parent: Any) -> Any:
        [value] = self._resolver([parent], run.context, **arguments)  # type: ignore[misc]  # it is synchronous
        return value


class RootValue:
    """The resolver of a root field, which returns one value instead of a column."""

    is_root_value = True

    def __init__(self, resolver: SingleResolver, arguments: Arguments) -> None:
        self._resolver = resolver
        self._arguments = arguments

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Any:
        """Return the value, or an awaitable of it."""
        return self._resolver(run.context, **self._arguments.of(run))


class SubscriptionEvent:
    """The root field of a subscription, whose value is the event."""

    is_root_value = False

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Return the events, which are the parents of the root field."""
        return list(parents)


class OrdinaryResolver:
    """A resolver that is called for each parent with its `info`, as in ordinary execution."""

    is_root_value = False

    def __init__(self, resolve: Callable[..., Any] | None, arguments: Arguments) -> None:
        self._resolve = resolve or default_field_resolver
        self._arguments = arguments

    def values(self, run: Run, field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Return the resolver's result for each parent; results may be awaitables."""
        arguments = self._arguments.of(run)
        resolve, values = self._resolve, []
        for parent, path in zip(parents, paths or (), strict=True):
            try:
                values.append(resolve(parent, run.info(field, path), **arguments))
            except Exception as error:
                values.append(error)
        return values


def _result_or_error(get: Callable[[Any], Any], parent: Any) -> Any:
    try:
        return get(parent)
    except Exception as error:
        return error
