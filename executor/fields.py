"""Declarations of Strawberry fields that both execution paths can resolve: `batched`, `single`, `live`.

`batched` takes a resolver `(parents, context, *, first=None, …) -> values`, which returns the values of all parents of
a layer in the order of the parents. If a value is an exception, the field fails for that parent only. The executor
calls the resolver once for each layer. Ordinary execution calls it through a dataloader (`Batches`, in the context), or
directly if the resolver is synchronous. A resolver is asynchronous if it is a coroutine function or annotated to return
an awaitable.

A field can declare `references`: a function that returns stand-ins for its values without a look-up, such as objects
that have only an id. Fields of these values that are declared with `needs_only_reference` are then resolved in the same
round trip as the values themselves. References must be hashable.

The GraphQL arguments are the resolver's keyword-only parameters, described by `Annotated[…, strawberry.argument(…)]`. A
parameter with the default None is optional and has no default in the SDL. Arguments that the client omits are not
passed to the resolver.

The declaration is in the metadata of the Strawberry field: `metadata["batch"]`, `metadata["single"]` or
`metadata["live"]`.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, get_args, get_origin

import strawberry
from strawberry import UNSET

from .batches import Arguments, Batches, BatchResolver

ReferenceFunction: TypeAlias = Callable[..., Any]
TogetherResolver: TypeAlias = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
SingleResolver: TypeAlias = Callable[..., Any]
LiveResolver: TypeAlias = Callable[..., AsyncGenerator[Any, None]]


class BatchContext(Protocol):
    """The attributes that the context of a schema needs for these fields in ordinary execution."""

    batches: Batches

    def forget(self) -> None:
        """Drop all cached values, so that the next event of a subscription is resolved with current ones."""


def batched(
    resolver: BatchResolver,
    *,
    description: str,
    references: ReferenceFunction | None = None,
    needs_only_reference: bool = False,
    independent: bool = False,
    together: TogetherResolver | None = None,
    **options: Any,
) -> Any:
    """Declare a field whose resolver returns the values of all parents of a layer.

    `references` is a function `(parents, context, *, …) -> references` that needs no look-up. A reference can be None.
    `independent` promises that the values and the references are the same in the context of every client. `together` is
    a function `(parents, contexts) -> columns` that resolves a field without arguments for several contexts at once.
    """
    if is_async(resolver):

        def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
            context: BatchContext = info.context
            return context.batches.load(resolver, root, context, given(arguments))

    else:

        def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
            values: Any = resolver([root], info.context, **given(arguments))
            if isinstance(values[0], Exception):
                raise values[0]
            return values[0]

    _set_signature(resolve, resolver, leading=2)
    metadata = _metadata(
        batch=resolver,
        references=references,
        needs_only_reference=needs_only_reference or None,
        independent=independent or None,
        together=together,
    )
    return strawberry.field(resolver=resolve, description=description, metadata=metadata, **options)


def single(
    resolver: SingleResolver, *, description: str, references: ReferenceFunction | None = None, **options: Any
) -> Any:
    """Declare a root field of a query or mutation with a resolver that returns one value.

    The resolver is a function `(context, *, …)` that returns the value or an awaitable of it. `references` is a
    function `(context, *, …) -> reference` that needs no look-up. The reference can be None.
    """

    def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> Any:
        return resolver(info.context, **given(arguments))

    _set_signature(resolve, resolver, leading=1)
    metadata = _metadata(single=resolver, references=references)
    return strawberry.field(resolver=resolve, description=description, metadata=metadata, **options)


def live(resolver: LiveResolver, *, description: str, **options: Any) -> Any:
    """Declare a subscription whose resolver is an asynchronous generator function `(context, *, …)` of events.

    The context's cached values are dropped after each event. The generator is closed when the client unsubscribes.
    """

    async def resolve(root: Any, info: strawberry.Info[Any, Any], **arguments: Any) -> AsyncIterator[Any]:
        context: BatchContext = info.context
        generator = resolver(context, **given(arguments))
        arguments.clear()
        del info  # both can hold large arguments, and a subscription can last for days
        async with aclosing(generator) as events:
            async for event in events:
                yield event
                context.forget()

    _set_signature(resolve, resolver, leading=1)
    return strawberry.subscription(resolver=resolve, description=description, metadata={"live": resolver}, **options)


def _metadata(**entries: Any) -> dict[str, Any]:
    return {name: entry for name, entry in entries.items() if entry is not None}


def _set_signature(resolve: Callable[..., Any], resolver: Callable[..., Any], *, leading: int) -> None:
    """Set the signature that Strawberry reads: root, info, and the resolver's parameters after the first `leading`.

    Raises TypeError if one of these parameters is not keyword-only.
    """
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


def is_async(resolver: BatchResolver) -> bool:
    """Return True if a resolver is a coroutine function or annotated to return an awaitable."""
    if inspect.iscoroutinefunction(resolver):
        return True
    returned = inspect.signature(resolver, eval_str=True).return_annotation
    options = get_args(returned) if isinstance(returned, UnionType) else (returned,)
    origins = [get_origin(option) or option for option in options]
    return any(isinstance(origin, type) and issubclass(origin, Awaitable) for origin in origins)


class OfRecord:
    """Mixin for a GraphQL type whose values are instances of another Python class, `record`."""

    record: ClassVar[type]

    @classmethod
    def is_type_of(cls, value: object, info: Any) -> bool:
        """Return True if a value belongs to this type."""
        return type(value) is cls.record


def given(arguments: Arguments) -> Arguments:
    """Return the arguments without those that the client omitted, whose value is `UNSET`."""
    return {name: value for name, value in arguments.items() if value is not UNSET}
