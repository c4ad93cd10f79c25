"""The API reference, from the GraphQL schema."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLType,
    OperationDefinitionNode,
    build_schema,
    get_named_type,
    is_introspection_type,
    is_specified_scalar_type,
    parse,
    print_ast,
)

from schema import sdl
from scripts.docs.tables import anchored, markdown

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROOTS = {"Query": "Queries", "Mutation": "Mutations", "Subscription": "Subscriptions"}
KINDS: Mapping[str, type[GraphQLNamedType]] = {
    "Objects": GraphQLObjectType,
    "Interfaces": GraphQLInterfaceType,
    "Inputs": GraphQLInputObjectType,
    "Enums": GraphQLEnumType,
    "Scalars": GraphQLScalarType,
}


def reference() -> str:
    """Return the description of the schema, a section for each root type, and one for each kind of type."""
    schema = build_schema(sdl())
    types = sorted(schema.type_map.values(), key=lambda each: each.name)
    own = [each for each in types if not is_introspection_type(each) and not is_specified_scalar_type(each)]
    roots = [f"## {title}\n\n{fields(schema.type_map[name])}" for name, title in ROOTS.items()]
    kinds = [
        f"## {title}\n\n" + "\n".join(described(each, schema) for each in own if is_shown(each, kind))
        for title, kind in KINDS.items()
    ]
    return "\n".join([schema.description or "", "", *roots, *kinds])


def is_shown(type_: GraphQLNamedType, kind: type[GraphQLNamedType]) -> bool:
    """Return True if a type belongs to the section of a kind."""
    return isinstance(type_, kind) and type_.name not in ROOTS


def described(type_: GraphQLNamedType, schema: GraphQLSchema) -> str:
    """Return the section of a type."""
    text = f"### {type_.name}\n\n{type_.description or ''}\n\n"
    if isinstance(type_, GraphQLObjectType) and type_.interfaces:
        text += f"Implements {listed(type_.interfaces)}.\n\n"
    if isinstance(type_, GraphQLInterfaceType):
        text += f"Implemented by {listed(schema.get_implementations(type_).objects)}.\n\n"
    if isinstance(type_, GraphQLInputObjectType) and type_.is_one_of:
        text += "Exactly one of the fields must be given.\n\n"
    if isinstance(type_, GraphQLScalarType) and type_.specified_by_url:
        text += f"Specified by <{type_.specified_by_url}>.\n\n"
    return text + fields(type_)


def fields(type_: GraphQLNamedType) -> str:
    """Return the table of a type's fields or values, or an empty string for a scalar or a union."""
    if isinstance(type_, GraphQLEnumType):
        rows = [
            (anchored(f"{type_.name}-{name}", name), value.description or "") for name, value in type_.values.items()
        ]
        return markdown(("value", "description"), rows)
    if not isinstance(type_, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
        return ""
    return markdown(
        ("field", "type", "description"),
        [
            (anchored(f"{type_.name}-{name}", name), linked(each.type), explained(each) + shown(type_.name, name))
            for name, each in type_.fields.items()
        ],
    )


def explained(field: GraphQLField | GraphQLInputField) -> str:
    """Return a field's description, with its default and its arguments."""
    text = (field.description or "") + default_of(field)
    arguments = field.args.items() if isinstance(field, GraphQLField) else ()
    return text + "".join(
        f"<br>• `{name}`: {linked(each.type)}. {each.description or ''}{default_of(each)}" for name, each in arguments
    )


def shown(type_: str, field: str) -> str:
    """Return links to the examples that select a root field."""
    links = [f"[`{name}`](../examples/{name})" for name, root, first in examples() if (root, first) == (type_, field)]
    return f"<br>Example{'s' * (len(links) > 1)}: {', '.join(links)}" if links else ""


@cache
def examples() -> list[tuple[str, str, str]]:
    """Return the file name, root type and field name of each root field that an example selects."""
    return [
        (path.name, operation.operation.value.title(), field.name.value)
        for path in sorted(EXAMPLES.glob("*.graphql"))
        for operation in parse(path.read_text("utf-8")).definitions
        if isinstance(operation, OperationDefinitionNode)
        for field in operation.selection_set.selections
        if isinstance(field, FieldNode)
    ]


def default_of(value: GraphQLField | GraphQLInputField | GraphQLArgument) -> str:
    """Return a sentence about the default, if there is one."""
    node = getattr(value, "ast_node", None)
    default = getattr(node, "default_value", None)
    return f" Default: `{print_ast(default)}`." if default else ""


def linked(type_: GraphQLType) -> str:
    """Return a type in GraphQL notation, such as `[Post!]`, with a link to its section."""
    named = get_named_type(type_)
    return f"`{type_}`" if is_specified_scalar_type(named) else f"[`{type_}`](#{named.name.lower()})"


def listed(types: tuple[GraphQLInterfaceType, ...] | list[GraphQLObjectType]) -> str:
    """Return links to types."""
    return ", ".join(linked(each) for each in sorted(types, key=lambda each: each.name))
