"""How the fields of a schema are declared: what the executor can make of each, by its definition alone."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLAbstractType,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
)
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
    """The declarations of one schema, read as they are needed."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._known: dict[int, Declaration] = {}
        self._locating: frozenset[str] | None = None

    def of(self, definition: GraphQLField) -> Declaration:
        """Read a field's declaration."""
        known = self._known.get(id(definition))
        if known is None:
            known = self._known[id(definition)] = self._read(definition)
        return known

    def _read(self, definition: GraphQLField) -> Declaration:
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

    def record_of(self, type_: GraphQLObjectType) -> type | None:
        """Give the Python type whose instances are of an object type, if that alone decides."""
        definition = (type_.extensions or {}).get(STRAWBERRY)
        origin = getattr(definition, "origin", None)
        if isinstance(origin, type) and issubclass(origin, OfRecord) and _decides_by_record(origin):
            return origin.record
        return None

    def records_of(self, type_: GraphQLAbstractType) -> dict[type, GraphQLObjectType]:
        """Give the object types of an interface or a union by their records: of those that have one."""
        found: dict[type, GraphQLObjectType] = {}
        for possible in self._schema.get_possible_types(type_):
            record = self.record_of(possible)
            if record is not None:
                found.setdefault(record, possible)
        return found

    def asks_for_place(self, type_: Any) -> bool:
        """Tell whether it takes more than a value's Python type to know that it is of a type."""
        if isinstance(type_, GraphQLObjectType):
            return type_.is_type_of is not None and self.record_of(type_) is None
        if isinstance(type_, GraphQLInterfaceType | GraphQLUnionType):
            return len(self.records_of(type_)) < len(self._schema.get_possible_types(type_))
        return False

    def locates(self, type_: Any) -> bool:
        """Tell whether anything that can be selected of a type, however deep, asks for its place in the response."""
        if self._locating is None:
            self._locating = self._find_locating()
        if isinstance(type_, GraphQLInterfaceType | GraphQLUnionType):
            return any(possible.name in self._locating for possible in self._schema.get_possible_types(type_))
        return isinstance(type_, GraphQLObjectType) and type_.name in self._locating

    def _find_locating(self) -> frozenset[str]:
        objects = [type_ for type_ in self._schema.type_map.values() if isinstance(type_, GraphQLObjectType)]
        leads_to: dict[str, set[str]] = {}
        found: set[str] = set()
        for type_ in objects:
            leads_to[type_.name] = set()
            for definition in type_.fields.values():
                named = get_named_type(definition.type)
                if self.of(definition).is_ordinary or self.asks_for_place(named):
                    found.add(type_.name)
                if isinstance(named, GraphQLInterfaceType | GraphQLUnionType):
                    leads_to[type_.name] |= {each.name for each in self._schema.get_possible_types(named)}
                else:
                    leads_to[type_.name].add(named.name)
        before = -1
        while before < len(found):
            before = len(found)
            found |= {name for name, others in leads_to.items() if others & found}
        return frozenset(found)


def is_async_test(test: Callable[..., Any] | None) -> bool:
    """Tell whether a type resolver or `is_type_of` is a coroutine function, which the executor leaves to others."""
    return inspect.iscoroutinefunction(test)


def _decides_by_record(origin: type[OfRecord]) -> bool:
    return getattr(origin.is_type_of, "__func__", None) is OfRecord.is_type_of.__func__  # type: ignore[attr-defined]
