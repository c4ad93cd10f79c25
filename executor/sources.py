"""Where the values of a field come from: attributes, batch resolvers, single resolvers, or a call for each parent."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from graphql.execution import default_field_resolver

from executor.fields import BatchResolver, SingleResolver
from executor.plan import Column, Field, Paths

if TYPE_CHECKING:
    from executor.arguments import Arguments
    from executor.run import Run


class TypeName:
    """`__typename`: the same for all."""

    lone = False

    def __init__(self, name: str) -> None:
        self._name = name

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Give the name of the parents' type."""
        return [self._name] * len(parents)


class Attribute:
    """An attribute of each parent."""

    lone = False

    def __init__(self, name: str) -> None:
        self._get = attrgetter(name)

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Read the attribute of all parents; a property that raises fails its parent alone."""
        try:
            return list(map(self._get, parents))
        except Exception:
            return [_attempt(self._get, parent) for parent in parents]


class Batch:
    """A batch resolver, called once for all parents."""

    lone = False

    def __init__(self, resolver: BatchResolver, arguments: "Arguments", *, waits: bool) -> None:
        self._resolver = resolver
        self._arguments = arguments
        self._waits = waits

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Any:
        """Call the resolver. If it looks nothing up and raises, it is asked for each parent alone."""
        arguments = self._arguments.of(run)
        try:
            return self._resolver(parents, run.context, **arguments)
        except Exception:
            if self._waits or len(parents) == 1:
                raise
            return [_attempt(partial(self._alone, run, arguments), parent) for parent in parents]

    def _alone(self, run: "Run", arguments: Mapping[str, Any], parent: Any) -> Any:
        [value] = self._resolver([parent], run.context, **arguments)  # type: ignore[misc]  # it does not wait
        return value


class Single:
    """The resolver of a root field."""

    lone = True

    def __init__(self, resolver: SingleResolver, arguments: "Arguments") -> None:
        self._resolver = resolver
        self._arguments = arguments

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Any:
        """Call the resolver: its value, or an awaitable of it."""
        return self._resolver(run.context, **self._arguments.of(run))


class Event:
    """The root field of a subscription, whose value is the event itself."""

    lone = False

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Give the event."""
        return list(parents)


class Each:
    """Any other resolver, called for each parent with all that ordinary execution would give it."""

    lone = False

    def __init__(self, resolve: Callable[..., Any] | None, arguments: "Arguments") -> None:
        self._resolve = resolve or default_field_resolver
        self._arguments = arguments

    def values(self, run: "Run", field: Field, parents: Sequence[Any], paths: Paths) -> Column:
        """Call the resolver parent by parent; the values may have to be awaited."""
        arguments = self._arguments.of(run)
        resolve, values = self._resolve, []
        for parent, path in zip(parents, paths or (), strict=True):
            try:
                values.append(resolve(parent, run.info(field, path), **arguments))
            except Exception as error:
                values.append(error)
        return values


def _attempt(get: Callable[[Any], Any], parent: Any) -> Any:
    try:
        return get(parent)
    except Exception as error:
        return error
