"""Declarations: how each field of a schema is resolved, according to its definition."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import graphql as core
from strawberry.types.arguments import convert_arguments
from strawberry.types.field import StrawberryField

from .arguments import Convert
from .fields import OfRecord, is_async

STRAWBERRY = "strawberry-definition"
OWN = ("batch", "single", "live")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of one field.

    `attribute` is the name of the Python attribute that holds the value. `own` is the metadata that `batched`, `single`
    or `live` attached to the field. A field with neither has an ordinary resolver. `convert` turns graphql-core's
    arguments into Strawberry's. `is_async` is True for a batch resolver that returns an awaitable.
    """

    own: Mapping[str, Any]
    attribute: str | None = None
    convert: Convert | None = None
    is_async: bool = False

    @property
    def is_independent(self) -> bool:
        """True if, for the same parents, the values are the same in every context: see `executor.independence`."""
        return self.attribute is not None or "live" in self.own or bool(self.own.get("independent"))

    @property
    def is_ordinary(self) -> bool:
        """True if the field has an ordinary resolver, which is called once per parent and gets the parent's path."""
        return self.attribute is None and not any(kind in self.own for kind in OWN)


class Declarations:
    """The declarations of one schema, read on first use.

    `planned_fields` counts the fields that were planned since the plan cache was last cleared.
    """

    def __init__(self, schema: core.GraphQLSchema) -> None:
        self.planned_fields = 0
        self._schema = schema
        self._known: dict[int, Declaration] = {}

    def of(self, definition: core.GraphQLField) -> Declaration:
        """Return a field's declaration."""
        known = self._known.get(id(definition))
        if known is None:
            known = self._known[id(definition)] = self._read(definition)
        return known

    def _read(self, definition: core.GraphQLField) -> Declaration:
        field = (definition.extensions or {}).get(STRAWBERRY)
        if not isinstance(field, StrawberryField):
            return Declaration(definition.extensions or {})
        handled = bool(self._strawberry.exception_handlers)
        if field.is_basic_field and not handled and field.default_resolver is getattr:
            return Declaration({}, attribute=field.python_name)
        if field.extensions or handled or not any(kind in field.metadata for kind in OWN):
            return Declaration({})
        own = field.metadata
        return Declaration(own, convert=self._converter(field), is_async="batch" in own and is_async(own["batch"]))

    def _converter(self, field: StrawberryField) -> Convert:
        schema = self._strawberry
        registry, config = schema.schema_converter.scalar_registry, schema.config
        return lambda values: convert_arguments(values, field.arguments, registry, config)

    @property
    def _strawberry(self) -> Any:
        return self._schema.extensions[STRAWBERRY]

    def record_of(self, type_: core.GraphQLObjectType) -> type | None:
        """Return the one Python class whose instances are the values of an object type.

        Return None if there is no such class, so that values must be checked one by one.
        """
        definition = (type_.extensions or {}).get(STRAWBERRY)
        origin = getattr(definition, "origin", None)
        if isinstance(origin, type) and issubclass(origin, OfRecord) and _has_record_check(origin):
            return origin.record
        return None

    def records_of(self, type_: core.GraphQLAbstractType) -> dict[type, core.GraphQLObjectType]:
        """Map record classes to the object types of an interface or a union. Types without such a class are omitted."""
        found: dict[type, core.GraphQLObjectType] = {}
        for possible in self._schema.get_possible_types(type_):
            record = self.record_of(possible)
            if record is not None:
                found.setdefault(record, possible)
        return found

    def type_needs_paths(self, type_: Any) -> bool:
        """Return True if a type check of the values needs the resolver's `info`, which contains their path."""
        if isinstance(type_, core.GraphQLObjectType):
            return type_.is_type_of is not None and self.record_of(type_) is None
        if isinstance(type_, core.GraphQLInterfaceType | core.GraphQLUnionType):
            return len(self.records_of(type_)) < len(self._schema.get_possible_types(type_))
        return False

    @cached_property
    def has_async_type_checks(self) -> bool:
        """True if a type check of the schema is a coroutine function, which the executor does not support."""
        types = self._schema.type_map.values()
        tests = [getattr(each, test, None) for each in types for test in ("is_type_of", "resolve_type")]
        return any(map(inspect.iscoroutinefunction, tests))

    @cached_property
    def any_field_needs_paths(self) -> bool:
        """True if any field or type check of the schema needs the path of the value in the response."""
        objects = [type_ for type_ in self._schema.type_map.values() if isinstance(type_, core.GraphQLObjectType)]
        fields = [field for type_ in objects if not type_.name.startswith("__") for field in type_.fields.values()]
        return any(
            self.of(field).is_ordinary or self.type_needs_paths(core.get_named_type(field.type)) for field in fields
        )


def _has_record_check(origin: type[OfRecord]) -> bool:
    return getattr(origin.is_type_of, "__func__", None) is OfRecord.is_type_of.__func__  # type: ignore[attr-defined]
