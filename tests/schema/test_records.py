"""The types of fields match the types of their records' attributes and of their resolvers' results.

The declarations of fields return Any, so mypy cannot check this.
"""

import inspect
from collections.abc import Awaitable, Sequence
from datetime import datetime
from enum import Enum
from types import GenericAlias, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from graphql import GraphQLObjectType
from strawberry.types.base import StrawberryList, StrawberryOptional
from strawberry.types.enum import StrawberryEnumDefinition
from strawberry.types.field import StrawberryField
from strawberry.types.lazy_type import LazyType

from graph.feed.updates import CountsChanged
from resolvers.times import FormattedTime
from schema import schema

COMBINED = {CountsChanged}
"""Updates that streams combine into others before they send them."""
Cases = list[tuple[type, StrawberryField, type | None]]


def cases() -> Cases:
    """Return every field of every object type, with the record of the type."""
    definitions = [
        graphql_type.extensions["strawberry-definition"]
        for graphql_type in schema._schema.type_map.values()
        if isinstance(graphql_type, GraphQLObjectType) and "strawberry-definition" in graphql_type.extensions
    ]
    return [
        (definition.origin, field, getattr(definition.origin, "record", None))
        for definition in definitions
        for field in definition.fields
    ]


def name_of(case: tuple[type, StrawberryField, type | None]) -> str:
    return f"{case[0].__name__}.{case[1].python_name}"


def python_type(declared: Any) -> Any:
    """Return the Python type of a field's declared type: records for object types."""
    if isinstance(declared, StrawberryOptional):
        return python_type(declared.of_type) | None
    if isinstance(declared, StrawberryList):
        return GenericAlias(Sequence, (python_type(declared.of_type),))
    if isinstance(declared, LazyType):
        return python_type(declared.resolve_type())
    if isinstance(declared, StrawberryEnumDefinition):
        return declared.wrapped_cls
    if isinstance(declared, type) and issubclass(declared, Enum):
        return declared
    if getattr(declared, "__name__", None) == "ID":
        return str
    if declared is datetime:
        return datetime | FormattedTime
    definition = getattr(declared, "__strawberry_definition__", None)
    if definition is not None and definition.is_interface:
        implementers = [
            each.extensions["strawberry-definition"].origin.record
            for each in schema._schema.get_possible_types(schema._schema.type_map[definition.name])  # type: ignore[arg-type]  # an interface
        ]
        return Union[tuple(implementers)]  # noqa: UP007 - computed
    return getattr(declared, "record", declared)


def members(hint: Any) -> set[Any]:
    return set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}


def fits(actual: Any, expected: Any) -> bool:
    """Return True if each value of `actual` is also a value of `expected`. Supports unions, sequences and classes.

    A class with subclasses stands for its subclasses: the values of an interface are never direct instances of the base
    class.
    """
    if get_origin(actual) in (Union, UnionType):
        return all(fits(member, expected) for member in members(actual))
    subclasses: list[type] = type.__subclasses__(actual) if isinstance(actual, type) else []
    if subclasses and actual not in members(expected):
        return all(fits(each, expected) for each in subclasses)
    for member in members(expected):
        if getattr(member, "_is_protocol", False):
            return all(name in get_type_hints(actual) for name in vars(member) if not name.startswith("_"))
        if actual is member or (isinstance(actual, type) and isinstance(member, type) and issubclass(actual, member)):
            return True
        if is_sequence(actual) and is_sequence(member) and fits(get_args(actual)[0], get_args(member)[0]):
            return True
    return False


def is_sequence(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Sequence)


def result_type(resolver: Any) -> Any:
    hint = get_type_hints(resolver)["return"]
    if any(get_origin(each) is Awaitable for each in get_args(hint)):  # or the result itself
        results = [get_args(each)[0] if get_origin(each) is Awaitable else each for each in get_args(hint)]
        hint = Union[tuple(results)]  # noqa: UP007 - computed
    if get_origin(hint) is Awaitable:
        [hint] = get_args(hint)
    return hint


def without_exceptions_and_none(hint: Any, *, allow_none: bool) -> Any:
    """Remove exceptions returned as values, and None where a look-up returns it for a missing object."""
    dropped = {NoneType} if allow_none else set()
    kept = [m for m in members(hint) if m not in dropped and not (isinstance(m, type) and issubclass(m, Exception))]
    return Union[tuple(kept)]  # noqa: UP007 - computed


@pytest.mark.parametrize("case", cases(), ids=name_of)
def test_a_field_and_its_record_or_resolver_agree(case: tuple[type, StrawberryField, type | None]) -> None:
    """The record has an attribute of the field's type, or the resolver returns values of that type."""
    _, field, record = case
    expected = python_type(field.type)
    must_exist = not isinstance(field.type, StrawberryOptional)
    if "batch" in field.metadata:
        [actual] = get_args(result_type(field.metadata["batch"]))
        assert is_sequence(result_type(field.metadata["batch"]))
    elif "single" in field.metadata:
        actual = result_type(field.metadata["single"])
    elif "live" in field.metadata:
        actual = Union[tuple(members(get_args(result_type(field.metadata["live"]))[0]) - COMBINED)]  # noqa: UP007 - computed
    else:
        assert record is not None
        actual = attribute_type(record, field.python_name)
        must_exist = False
    actual = without_exceptions_and_none(actual, allow_none=must_exist)
    if is_sequence(actual):
        item = without_exceptions_and_none(get_args(actual)[0], allow_none=True)
        actual = GenericAlias(Sequence, (item,))
    assert fits(actual, expected), (actual, expected)


def attribute_type(record: type, name: str) -> Any:
    attribute = inspect.getattr_static(record, name)
    if isinstance(attribute, property):
        return get_type_hints(attribute.fget)["return"]
    return get_type_hints(record)[name]


def test_batch_resolvers_accept_the_records_of_their_type() -> None:
    for owner, field, record in cases():
        resolver = field.metadata.get("batch")
        if resolver is None or record is None:
            continue
        parameter = next(iter(inspect.signature(resolver, eval_str=True).parameters.values()))
        accepted = get_args(get_type_hints(resolver)[parameter.name])[0]
        assert fits(record, accepted), (owner, field.python_name)
