"""The variables of a subscription: graphql-core coerces them, except long lists of texts, which it would only copy.

A filter may have thousands of ids, and graphql-core takes a microsecond for each: too long for the event loop. So it
coerces the variables with empty lists in their place, and the lists are put back into the result. Variables that are
invalid are coerced once more as they are, for their errors.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLID,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    GraphQLString,
    GraphQLType,
    OperationDefinitionNode,
    type_from_ast,
)
from graphql.execution import Executor

LONG = 50  # entries of a list that is worth the detour


class LongList(NamedTuple):
    """The value of a variable, or of a field of its input object: its name there, and after coercion."""

    variable: str
    field: str | None
    coerced_field: str | None
    entries: list[str]


def build_executor(
    schema: GraphQLSchema,
    document: DocumentNode,
    context: Any,
    variables: Mapping[str, Any],
    operation_name: str | None,
    *,
    hide_suggestions: bool,
) -> "Executor[Any] | list[GraphQLError]":
    """Return graphql-core's executor of an operation, or the errors of its variables: those of `Executor.build`."""

    def build(values: Mapping[str, Any]) -> "Executor[Any] | list[GraphQLError]":
        return Executor.build(
            schema, document, None, context, dict(values), operation_name, hide_suggestions=hide_suggestions
        )

    found = list(_long_lists(schema, document, variables, operation_name))
    built = build(_without(variables, found))
    if isinstance(built, list):
        return build(variables) if found else built
    sources, coerced = built.variable_values
    for long in found:
        sources[long.variable] = sources[long.variable]._replace(value=variables[long.variable])
        if long.field is None:
            coerced[long.variable] = list(long.entries)
        else:
            coerced[long.variable][long.coerced_field] = list(long.entries)
    return built


def _long_lists(
    schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any], operation_name: str | None
) -> Iterator[LongList]:
    """Yield the lists of texts for types whose values are texts: such entries are coerced to themselves."""
    for node in document.definitions:
        if not isinstance(node, OperationDefinitionNode) or (operation_name and _name_of(node) != operation_name):
            continue
        for definition in node.variable_definitions or ():
            name = definition.variable.name.value
            value: Any = variables.get(name)
            type_ = _nullable(type_from_ast(schema, definition.type))
            if _is_long(value, type_):
                yield LongList(name, None, None, value)
            elif isinstance(type_, GraphQLInputObjectType) and type(value) is dict:
                for key, field in type_.fields.items():
                    if _is_long(value.get(key), _nullable(field.type)):
                        yield LongList(name, key, field.out_name or key, value[key])


def _nullable(type_: GraphQLType | None) -> GraphQLType | None:
    return type_.of_type if isinstance(type_, GraphQLNonNull) else type_


def _is_long(value: Any, type_: GraphQLType | None) -> bool:
    return (
        type(value) is list
        and len(value) >= LONG
        and isinstance(type_, GraphQLList)
        and _nullable(type_.of_type) in (GraphQLID, GraphQLString)
        and set(map(type, value)) == {str}
    )


def _without(variables: Mapping[str, Any], found: list[LongList]) -> dict[str, Any]:
    """Return the variables with empty lists in place of these."""
    shortened = dict(variables)
    for long in found:
        if long.field is None:
            shortened[long.variable] = []
        else:
            shortened[long.variable] = {**shortened[long.variable], long.field: []}
    return shortened


def _name_of(operation: OperationDefinitionNode) -> str | None:
    return operation.name.value if operation.name else None
