"""Generated schemas: small, with every kind of type and every kind of resolver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLError,
    GraphQLField,
    GraphQLFloat,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
    GraphQLUnionType,
    Undefined,
    is_object_type,
    print_schema,
)

from tests.executor.differential.answers import FieldPlan, Layout
from tests.executor.differential.resolving import claimed_type, make_field, same_kind
from tests.executor.differential.tapes import Tape
from tests.executor.differential.things import FORMS

FAULTS = ("none", "none", "none", "none", "null", "error", "wrong", "failing_iterator")
REALISATIONS = ("each", "attribute", "batch", "async batch", "method", "references")
BATCHES = ("batch", "async batch", "references")
FIELDS = 9
Leaf = GraphQLScalarType | GraphQLEnumType


@dataclass(frozen=True)
class GeneratedSchema:
    """A schema for both executors, and the layout that its data depends on."""

    schema: GraphQLSchema
    layout: Layout

    def __str__(self) -> str:
        plans = (
            f"# {plan.name}: {plan.realisation}, faults {plan.faults}{', may fail for all' * plan.shared_failure}"
            for plan in self.layout.plans.values()
        )
        return "\n".join([print_schema(self.schema), *plans, f"# things: {self.layout.forms}"])


def coerce_odd(value: Any) -> Any:
    """Return the value of the scalar Odd, which is sometimes invalid."""
    if value == "raise":
        raise ValueError("too odd")
    if value == "coded":
        raise GraphQLError("odd with a code", extensions={"code": "ODD"})
    if value == "none":
        return None
    return Undefined if value == "undefined" else value


def strict(field: GraphQLField) -> GraphQLField:
    """Return the field with a non-null type."""
    type_ = field.type if isinstance(field.type, GraphQLNonNull) else GraphQLNonNull(field.type)
    return GraphQLField(type_, field.args, resolve=field.resolve, extensions=field.extensions)


class SchemaWriter:
    """Makes a schema from a tape.

    A field has the same type in all types that have it, so that documents can be valid. Some object types have non-null
    fields where their interfaces have nullable ones. In nearly half of the schemas all fields have batch resolvers, so
    that no field needs its path.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._realisations = BATCHES if tape.chance(45) else REALISATIONS
        self._leaves = self._leaf_types()
        self._filter = self._filter_type()
        self._interfaces: list[GraphQLInterfaceType] = []
        self._objects: list[GraphQLObjectType] = []
        self._unions: list[GraphQLUnionType] = []
        self._fields: dict[str, GraphQLField] = {}
        self._plans: dict[str, FieldPlan] = {}
        self._shares: dict[str, set[str]] = {}
        self._stricter: dict[str, set[str]] = {}

    def write(self) -> GeneratedSchema:
        """Return the schema."""
        tape = self._tape
        for index in range(tape.below(3)):
            self._interfaces.append(self._interface(f"Face{index}"))
        for index in range(2 + tape.below(2)):
            self._objects.append(self._object(f"Thing{index}"))
        if tape.chance(50):
            self._unions.append(self._union("Either"))
        self._make_fields()
        names = list(self._fields)
        for type_ in (*self._interfaces, *self._objects):
            self._shares[type_.name] = {names[0], *tape.some(names, 6)}
            self._stricter[type_.name] = set(tape.some(names, 2)) if is_object_type(type_) else set()
        root = GraphQLObjectType("Query", {name: self._fields[name] for name in names})
        changing = [name for name in names if tape.chance(50)] or names
        change = GraphQLObjectType("Mutation", {name: self._fields[name] for name in changing})
        schema = GraphQLSchema(root, change if tape.chance(40) else None, types=[*self._objects, *self._interfaces])
        forms = {type_.name: tape.pick(tuple(FORMS)) for type_ in self._objects}
        abstract: list[GraphQLInterfaceType | GraphQLUnionType] = [*self._interfaces, *self._unions]
        members = {
            each.name: sorted(type_.name for type_ in schema.get_possible_types(each)) or ["Query"] for each in abstract
        }
        return GeneratedSchema(schema, Layout(self._plans, forms, members))

    @staticmethod
    def _leaf_types() -> list[Leaf]:
        shade = GraphQLEnumType(
            "Shade", {"DARK": GraphQLEnumValue(1), "DIM": GraphQLEnumValue("dim"), "PALE": GraphQLEnumValue((2, 3))}
        )
        odd = GraphQLScalarType("Odd", coerce_output_value=coerce_odd)
        return [GraphQLString, GraphQLInt, GraphQLFloat, GraphQLBoolean, GraphQLID, shade, odd]

    def _filter_type(self) -> GraphQLInputObjectType:
        shade = self._leaves[5]

        def fields() -> dict[str, GraphQLInputField]:
            return {
                "text": GraphQLInputField(GraphQLString, out_name="words"),
                "count": GraphQLInputField(GraphQLNonNull(GraphQLInt), default_value=3),
                "shades": GraphQLInputField(GraphQLList(GraphQLNonNull(shade))),
                "also": GraphQLInputField(filter_type),
                "must": GraphQLInputField(GraphQLNonNull(GraphQLBoolean)),
            }

        filter_type = GraphQLInputObjectType("Filter", fields)
        return filter_type

    def _interface(self, name: str) -> GraphQLInterfaceType:
        above = [*self._interfaces] if self._tape.chance(50) else []
        return GraphQLInterfaceType(
            name,
            lambda: self._fields_of(name, above),
            interfaces=above,
            resolve_type=claimed_type if self._tape.chance(50) else None,
        )

    def _object(self, name: str) -> GraphQLObjectType:
        chosen = self._tape.some(self._interfaces, 2)
        interfaces = [face for face in self._interfaces if face in chosen or any(face in c.interfaces for c in chosen)]
        return GraphQLObjectType(
            name,
            lambda: self._fields_of(name, interfaces),
            interfaces=interfaces,
            is_type_of=same_kind(name) if self._tape.chance(20 if self._realisations is BATCHES else 50) else None,
        )

    def _union(self, name: str) -> GraphQLUnionType:
        return GraphQLUnionType(name, self._objects[:2], resolve_type=claimed_type if self._tape.chance(50) else None)

    def _fields_of(self, name: str, above: list[GraphQLInterfaceType]) -> dict[str, GraphQLField]:
        names = self._shares[name].union(*(self._shares[face.name] for face in above))
        stricter = self._stricter[name]
        return {key: strict(field) if key in stricter else field for key, field in self._fields.items() if key in names}

    def _make_fields(self) -> None:
        for index in range(FIELDS):
            composite = index >= FIELDS - 4
            name = f"{'sub' if composite else 'leaf'}{index}"
            named = self._tape.pick([*self._objects, *self._interfaces, *self._unions] if composite else self._leaves)
            type_ = self._wrapped(named)
            plan = FieldPlan(name, type_, self._faults(), self._realisation(type_), self._tape.chance(10))
            self._plans[name] = plan
            self._fields[name] = make_field(plan, self._arguments(plan))

    def _faults(self) -> tuple[str, ...]:
        return tuple(self._tape.pick(FAULTS) for _ in range(self._tape.pick((0, 0, 0, 2, 4, 6)))) or ("none",)

    def _realisation(self, type_: GraphQLOutputType) -> str:
        realisation = self._tape.pick(self._realisations)
        single = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
        if is_object_type(single) and self._realisations is BATCHES and self._tape.chance(40):
            return "references"
        return "async batch" if realisation == "references" and not is_object_type(single) else realisation

    def _wrapped(self, type_: Any) -> GraphQLOutputType:
        for _ in range(self._tape.pick((0, 0, 0, 1, 1, 2))):
            type_ = GraphQLList(GraphQLNonNull(type_) if self._tape.chance(40) else type_)
        return GraphQLNonNull(type_) if self._tape.chance(35) else type_

    def _arguments(self, plan: FieldPlan) -> Mapping[str, GraphQLArgument]:
        if plan.realisation == "attribute" or not self._tape.chance(50):
            return {}
        offered = {
            "n": GraphQLArgument(GraphQLInt, default_value=1),
            "need": GraphQLArgument(GraphQLNonNull(GraphQLInt), default_value=5),
            "shade": GraphQLArgument(self._leaves[5], out_name="tone"),
            "filter": GraphQLArgument(self._filter),
            "ids": GraphQLArgument(GraphQLList(GraphQLNonNull(GraphQLID))),
            "odd": GraphQLArgument(self._leaves[6]),
            "must": GraphQLArgument(GraphQLNonNull(GraphQLString)),
        }
        return {name: offered[name] for name in self._tape.some(tuple(offered), 4)}
