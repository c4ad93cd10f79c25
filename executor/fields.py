"""Fields declared once and driven in more than one way: `batched`, `single`, `live`.

`batched` takes a resolver `(parents, context, *, first=None, …) -> values` that answers for all parents of
a layer at once, in their order. A value that is an exception fails that parent alone. Ordinary execution
drives it through one dataloader per resolver and arguments (`Batches`, on the context); a resolver that is
a plain function, because it looks nothing up, is called at once. (One that is annotated to return an awaitable looks
something up all the same.) No resolver can tell who drives it. The declaration stays readable in the schema:
`metadata["batch"]`, `metadata["single"]` or `metadata["live"]` of the Strawberry field.

A field may tell `references` of its values before they are looked up: stand-ins, hashable, for which those fields of
the values that are declared `needs_only_reference` can be resolved at once. So what needs no more than a parent's id
shares a round trip with the look-up of the parent.

The arguments are the resolver's keyword-only parameters, described by `Annotated[…,
strawberry.argument(…)]`. One whose default is None is optional and shows no default in the SDL; a resolver
is not passed what was not given.
"""

import dataclasses
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, get_args, get_origin

import strawberry
from strawberry import UNSET

from executor.loader import DataLoader

BatchResolver: TypeAlias = Callable[..., Awaitable[Sequence[Any]] | Sequence[Any]]
References: TypeAlias = Callable[..., Any]
SingleResolver: TypeAlias = Callable[..., Any]
LiveResolver: TypeAlias = Callable[..., AsyncGenerator[Any, None]]
Arguments: TypeAlias = Mapping[str, Any]

ROOT = object()


class BatchContext(Protocol):
    """What a schema's context must offer for these fields."""

    batches: "Batches"

    def forget(self) -> None:
        """Drop all that was loaded, so that the next event of a subscription is resolved afresh."""


class Batches:
    """The batch resolvers at work for one context: a dataloader for each resolver and set of arguments.

    Parents that are equal (or, if unhashable, identical) are asked for once.
    """

    def __init__(self) -> None:
        self._loaders: dict[Hashable, DataLoader[Any, Any]] = {}

    def load(self, resolver: BatchResolver, parent: object, context: object, arguments: Arguments) -> Awaitable[Any]:
        """Ask for one parent's value together with the others of this layer."""
        key = (resolver, freeze(arguments))
        loader = self._loaders.get(key)
        if loader is None:
            answer = partial(_answer, resolver, context, arguments)
            loader = self._loaders[key] = DataLoader(answer, get_cache_key=freeze_parent)
        return loader.load(ROOT if parent is None else parent)


async def _answer(
    resolver: BatchResolver, context: object, arguments: Arguments, parents: Sequence[object]
) -> Sequence[Any]:
    given = [None if parent is ROOT else parent for parent in parents]
    values = resolver(given, context, **arguments)
    return await values if inspect.isawaitable(values) else values


def batched(
    resolver: BatchResolver,
    *,
    description: str,
    references: References | None = None,
    needs_only_reference: bool = False,
    **options: Any,
) -> Any:
    """Declare a field whose resolver answers for all parents of a layer at once: see the module.

    `references` is `(parents, context, *, …) -> stand-ins`, without any look-up; None where there is none.
    """
    if waits(resolver):

        def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
            context: BatchContext = info.context
            return context.batches.load(resolver, root, context, given(arguments))

    else:

        def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
            values: Any = resolver([root], info.context, **given(arguments))
            return _raised(values[0])

    _disguise(resolve, resolver, leading=2)
    metadata = _noted(batch=resolver, references=references, needs_only_reference=needs_only_reference or None)
    return strawberry.field(resolver=resolve, description=description, metadata=metadata, **options)


def single(resolver: SingleResolver, *, description: str, references: References | None = None, **options: Any) -> Any:
    """Declare a root field, of a query or a mutation: `(context, *, …) -> value`, or an awaitable of it.

    `references` is `(context, *, …) -> stand-in`, or None.
    """

    def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
        return resolver(info.context, **given(arguments))

    _disguise(resolve, resolver, leading=1)
    metadata = _noted(single=resolver, references=references)
    return strawberry.field(resolver=resolve, description=description, metadata=metadata, **options)


def live(resolver: LiveResolver, *, description: str, **options: Any) -> Any:
    """Declare a subscription: an asynchronous generator `(context, *, …)` of events.

    What was loaded for one event is forgotten after it, and the generator is closed when the subscriber goes.
    """

    async def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> AsyncIterator[Any]:
        context: BatchContext = info.context
        streamed = resolver(context, **given(arguments))
        arguments.clear()
        del info  # both may hold large arguments, and the stream may last for days
        async with aclosing(streamed) as events:
            async for event in events:
                yield event
                context.forget()

    _disguise(resolve, resolver, leading=1)
    return strawberry.subscription(resolver=resolve, description=description, metadata={"live": resolver}, **options)


def _noted(**notes: Any) -> dict[str, Any]:
    """Make a field's metadata of what there is to note."""
    return {name: note for name, note in notes.items() if note is not None}


def _disguise(resolve: Callable[..., Any], resolver: Callable[..., Any], *, leading: int) -> None:
    """Give a driver the signature that Strawberry reads: root, info, and the resolver's own arguments."""
    own = list(inspect.signature(resolver, eval_str=True).parameters.values())[leading:]
    for parameter in own:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(f"{resolver.__qualname__}: the argument '{parameter.name}' must be keyword-only.")
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("root", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("info", keyword, annotation=strawberry.Info),
        *(parameter.replace(default=UNSET) if parameter.default is None else parameter for parameter in own),
    ]
    resolve.__name__, resolve.__module__ = resolver.__name__, resolver.__module__
    resolve.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect


def waits(resolver: BatchResolver) -> bool:
    """Tell whether a resolver looks anything up: whether it is a coroutine function or annotated like one."""
    if inspect.iscoroutinefunction(resolver):
        return True
    returned = inspect.signature(resolver, eval_str=True).return_annotation
    ways = get_args(returned) if isinstance(returned, UnionType) else (returned,)
    origins = [get_origin(way) or way for way in ways]
    return any(isinstance(origin, type) and issubclass(origin, Awaitable) for origin in origins)


class OfRecord:
    """Mixed into a type whose values are the instances of one Python class, `record`, unknown to Strawberry."""

    record: ClassVar[type]

    @classmethod
    def is_type_of(cls, value: object, info: Any) -> bool:
        """Tell whether a value is of this type."""
        return type(value) is cls.record


def given(arguments: Arguments) -> Arguments:
    """Leave out what the client left out."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


def _raised(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


class Identity:
    """A stand-in for something unhashable: equal only to one for the same object, which it keeps alive."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def freeze(value: object) -> Hashable:
    """Make a hashable key of an argument's value: input objects, lists and dictionaries by content.

    Values of different types never give the same key: 1, 1.0 and True are three arguments.
    """
    if isinstance(value, Mapping):
        return (dict, frozenset((name, freeze(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return (list, tuple(freeze(item) for item in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return (type(value), tuple(freeze(getattr(value, field.name)) for field in fields))
    return freeze_parent(value)


def freeze_parent(value: object) -> Hashable:
    """Make a hashable key of a parent: by its own equality within its type, or by identity if unhashable."""
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return (type(value), value)
