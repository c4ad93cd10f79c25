"""How the fields of a schema are declared: what the executor can make of each, by its definition alone."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import graphql as core
from strawberry.types.arguments import convert_arguments
from strawberry.types.field import StrawberryField

from executor.arguments import Convert
from executor.fields import OfRecord, waits

STRAWBERRY = "strawberry-definition"
OWN = ("batch", "single", "live")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a field's definition says of itself.

    `attribute` is the name of a plain attribute; `own` what `batched`, `single` or `live` have noted down. A field with
    neither is resolved by an ordinary resolver. `convert` makes Strawberry's arguments of graphql-core's.
    """

    own: Mapping[str, Any]
    attribute: str | None = None
    convert: Convert | None = None

    @property
    def waits(self) -> bool:
        """Whether the batch resolver looks anything up."""
        return waits(self.own["batch"])

    @property
    def is_ordinary(self) -> bool:
        """Whether the field has a resolver that is called for each parent, and told of its place."""
        return self.attribute is None and not any(kind in self.own for kind in OWN)


class Declarations:
    """The declarations of one schema, read as they are needed. `planned_fields` counts what its planners have made."""

    def __init__(self, schema: core.GraphQLSchema) -> None:
        self.planned_fields = 0
        self._schema = schema
        self._known: dict[int, Declaration] = {}

    def of(self, definition: core.GraphQLField) -> Declaration:
        """Read a field's declaration."""
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
        return Declaration(field.metadata, convert=self._converter(field))

    def _converter(self, field: StrawberryField) -> Convert:
        schema = self._strawberry
        registry, config = schema.schema_converter.scalar_registry, schema.config
        return lambda values: convert_arguments(values, field.arguments, registry, config)

    @property
    def _strawberry(self) -> Any:
        return self._schema.extensions[STRAWBERRY]

    def record_of(self, type_: core.GraphQLObjectType) -> type | None:
        """Give the Python type whose instances are of an object type, if that alone decides."""
        definition = (type_.extensions or {}).get(STRAWBERRY)
        origin = getattr(definition, "origin", None)
        if isinstance(origin, type) and issubclass(origin, OfRecord) and _decides_by_record(origin):
            return origin.record
        return None

    def records_of(self, type_: core.GraphQLAbstractType) -> dict[type, core.GraphQLObjectType]:
        """Give the object types of an interface or a union by their records: of those that have one."""
        found: dict[type, core.GraphQLObjectType] = {}
        for possible in self._schema.get_possible_types(type_):
            record = self.record_of(possible)
            if record is not None:
                found.setdefault(record, possible)
        return found

    def asks_for_place(self, type_: Any) -> bool:
        """Tell whether it takes more than a value's Python type to know that it is of a type."""
        if isinstance(type_, core.GraphQLObjectType):
            return type_.is_type_of is not None and self.record_of(type_) is None
        if isinstance(type_, core.GraphQLInterfaceType | core.GraphQLUnionType):
            return len(self.records_of(type_)) < len(self._schema.get_possible_types(type_))
        return False

    @cached_property
    def any_test_is_async(self) -> bool:
        """Whether any type of the schema is recognised by a coroutine function, which the executor leaves to others."""
        types = self._schema.type_map.values()
        tests = [getattr(each, test, None) for each in types for test in ("is_type_of", "resolve_type")]
        return any(map(inspect.iscoroutinefunction, tests))

    @cached_property
    def any_asks_for_place(self) -> bool:
        """Whether any field of the schema has to be told of its place in the response, or any type of a value's."""
        objects = [type_ for type_ in self._schema.type_map.values() if isinstance(type_, core.GraphQLObjectType)]
        fields = [field for type_ in objects if not type_.name.startswith("__") for field in type_.fields.values()]
        return any(
            self.of(field).is_ordinary or self.asks_for_place(core.get_named_type(field.type)) for field in fields
        )


def _decides_by_record(origin: type[OfRecord]) -> bool:
    return getattr(origin.is_type_of, "__func__", None) is OfRecord.is_type_of.__func__  # type: ignore[attr-defined]
