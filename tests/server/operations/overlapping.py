"""Documents whose fields overlap, and the comparison of the linear rule with graphql-core's."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLError,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    OverlappingFieldsCanBeMergedRule,
    build_schema,
    do_types_overlap,
    get_named_type,
    is_composite_type,
    is_object_type,
    parse,
    validate,
)
from hypothesis import strategies as st

from server.operations.overlaps import LinearOverlappingFields

PETS = build_schema("""
    type Query { pet(id: ID, like: Wish): Pet  pets(first: Int): [Pet!]!  any: Any  dog: Dog  cat: Cat }
    interface Named { name: String }
    interface Pet implements Named { name: String  friend: Pet  friends(first: Int): [Pet]  size(unit: Unit): Int }
    type Dog implements Pet & Named {
      name: String  friend: Dog  friends(first: Int): [Pet]  size(unit: Unit): Int  owner: Human  age: Int  best: Any
    }
    type Cat implements Pet & Named {
      name: String  friend: Pet  friends(first: Int): [Pet]  size(unit: Unit): Int  owner: [Human!]  age: Int!
    }
    type Human implements Named { name: String!  pet(id: ID, like: Wish): Pet  age: Float  best: Human  size: [Int] }
    union Any = Dog | Cat | Human
    enum Unit { CM INCH }
    input Wish { name: String  age: Int  other: Wish }
""")
STRINGS = ('"x"', '"y"', '"""x"""', "$text", "null")
NUMBERS = ("1", "2", "$number", "1.0")
MAX_DEPTH = 5
T = TypeVar("T")
Composite: TypeAlias = GraphQLObjectType | GraphQLInterfaceType | GraphQLUnionType


class Choices:
    """A stream of choices from bytes; after its end, the first option is always chosen."""

    def __init__(self, drawn: bytes) -> None:
        self._drawn = iter(drawn)

    def number(self, options: int) -> int:
        """Choose a number below `options`."""
        return next(self._drawn, 0) % options

    def one_in(self, options: int) -> bool:
        """Return True once in `options` times; never after the end of the stream."""
        return self.number(options) == options - 1

    def of(self, options: Sequence[T]) -> T:
        """Choose one option."""
        return options[self.number(len(options))]


class Writer:
    """Writes a document for a schema from choices.

    Most fields exist and most fragments can apply. If there are `roots`, the root fields are among them. Inside
    `__schema` and `__type` there are no type conditions, and no field has an argument twice: other rules refuse such
    documents, for which the two rules may differ.
    """

    def __init__(
        self, schema: GraphQLSchema, choices: Choices, *, cyclic: bool = False, roots: Collection[str] = ()
    ) -> None:
        self._schema = schema
        self._roots = roots
        self._choose = choices
        self._cyclic = cyclic
        self._seldom = 8  # once in so many times, an argument is given
        self._composite = [
            type_
            for name, type_ in schema.type_map.items()
            if is_composite_type(type_) and not name.startswith("__") and type_ not in _later_roots(schema)
        ]
        self._fragments: list[tuple[str, Composite]] = []

    def document(self) -> str:
        """Return a document of one or two operations and up to five fragments."""
        choose = self._choose
        query = self._schema.query_type
        assert query
        self._fragments = [(f"F{number}", choose.of(self._composite)) for number in range(choose.number(6))]
        written = [f"query Q{number} {self._selection_set(query, -1)}" for number in range(1 + choose.one_in(8))]
        for number, (name, type_) in enumerate(self._fragments):
            written.append(f"fragment {name} on {type_.name} {self._selection_set(type_, number)}")
        return " ".join(written)

    def _selection_set(self, parent: Composite, fragment: int, depth: int = 0) -> str:
        size = 1 + self._choose.number(3)
        return "{" + " ".join(self._selection(parent, fragment, depth) for _ in range(size)) + "}"

    def _selection(self, parent: Composite, fragment: int, depth: int) -> str:
        kind = self._choose.number(8) if depth < MAX_DEPTH and not parent.name.startswith("__") else 0
        near = self._near(parent)
        if kind == 7:
            for number, (name, type_) in enumerate(self._fragments):
                if (number > fragment or self._cyclic) and type_ in near and self._choose.one_in(2):
                    return f"...{name}"
        if kind == 6:
            type_ = self._choose.of(near)
            condition = f" on {type_.name}" if type_ is not parent or self._choose.one_in(2) else ""
            return f"...{condition} " + self._selection_set(type_, fragment, depth + 1)
        if kind in (4, 5):
            return self._on_each(near, fragment, depth)
        return self._field(parent, fragment, depth)

    def _on_each(self, types: Sequence[Composite], fragment: int, depth: int) -> str:
        """Return fields with one response name on different types; they may differ more than other fields."""
        choose = self._choose
        objects = [type_ for type_ in types if is_object_type(type_)]
        start = choose.number(len(objects) or 1)
        some = [*objects[start:], *objects[:start]][:2] + ([choose.of(types)] if choose.one_in(3) else [])
        names = some and sorted(set.intersection(*(set(_fields(type_)) for type_ in some)))
        if not names:
            return "__typename"
        seldom, self._seldom = self._seldom, 3
        of_each = {type_: _fields(type_) for type_ in some}
        different = choose.one_in(4)
        if not different and choose.one_in(2):
            deep = [
                name
                for name in names
                if all(is_composite_type(get_named_type(of_each[type_][name].type)) for type_ in some)
            ]
            names = deep or names
        name, alias = choose.of(names), "a: " if different else self._alias()
        fields = []
        for type_ in some:
            field = choose.of(names) if different else name
            written = self._known(field, of_each[type_][field], fragment, depth + 1)
            fields.append(f"... on {type_.name} {{{alias}{written}}}")
        self._seldom = seldom
        return " ".join(fields)

    def _near(self, parent: Composite) -> Sequence[Composite]:
        """Return the type and the types that share objects with it; rarely all types."""
        if self._choose.one_in(24):
            return self._composite
        return [parent, *(type_ for type_ in self._composite if do_types_overlap(self._schema, type_, parent))]

    def _alias(self) -> str:
        return self._choose.of(("",) * self._seldom + ("a: ", "b: "))

    def _field(self, parent: Composite, fragment: int, depth: int) -> str:
        choose = self._choose
        alias = self._alias()
        fields = _fields(parent)
        if choose.one_in(16) or not fields:
            if parent is self._schema.query_type and choose.one_in(2):
                root = self._schema.type_map["__Schema"]
                assert isinstance(root, GraphQLObjectType)
                return f"{alias}__schema " + self._selection_set(root, fragment, depth + 1)
            return alias + choose.of(("__typename", "__typename", "__typename", "unknown", "unknown {x: a}"))
        some = self._roots if self._roots and parent is self._schema.query_type else fields
        name = choose.of(sorted(some))
        return alias + self._known(name, fields[name], fragment, depth)

    def _known(self, name: str, field: GraphQLField, fragment: int, depth: int) -> str:
        type_ = get_named_type(field.type)
        written = name + self._arguments(field.args) + (" @stream" if self._choose.one_in(100) else "")
        if not is_composite_type(type_):
            return written
        if depth >= MAX_DEPTH:
            return "__typename"
        return written + " " + self._selection_set(type_, fragment, depth + 1)

    def _arguments(self, arguments: Mapping[str, GraphQLArgument]) -> str:
        given = [name for name in arguments if self._choose.one_in(self._seldom)]
        if self._choose.one_in(2):
            given.reverse()
        written = " ".join(f"{name}: {self._value(arguments[name].type)}" for name in given)
        return f"({written})" if written else ""

    def _value(self, type_: GraphQLInputType, depth: int = 0) -> str:
        choose = self._choose
        if isinstance(type_, GraphQLNonNull):
            return self._value(type_.of_type, depth)
        if isinstance(type_, GraphQLList):
            return "[" + " ".join(self._value(type_.of_type, depth) for _ in range(choose.number(3))) + "]"
        if isinstance(type_, GraphQLEnumType):
            return str(choose.of(sorted(type_.values)))
        if isinstance(type_, GraphQLInputObjectType):
            names = [name for name in type_.fields if depth < 2 and choose.one_in(3)]
            if choose.one_in(2):
                names.reverse()
            return "{" + " ".join(f"{name}: {self._value(type_.fields[name].type, depth + 1)}" for name in names) + "}"
        return choose.of(NUMBERS if type_.name in ("Int", "Float") else STRINGS)


def _fields(type_: GraphQLNamedType) -> Mapping[str, GraphQLField]:
    return type_.fields if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType) else {}


def _later_roots(schema: GraphQLSchema) -> set[GraphQLNamedType | None]:
    return {schema.mutation_type, schema.subscription_type}


choices = st.binary(min_size=30, max_size=120)
"""Choices for a document; shrink to shorter documents with simpler selections."""


def linear_errors(schema: GraphQLSchema, text: str) -> list[GraphQLError]:
    """Return the errors of the linear rule."""
    return validate(schema, parse(text), [LinearOverlappingFields])


def core_errors(schema: GraphQLSchema, text: str) -> list[GraphQLError]:
    """Return the errors of graphql-core's rule."""
    return validate(schema, parse(text), [OverlappingFieldsCanBeMergedRule])
