"""The root fields of a document's operation."""

from collections.abc import Iterator

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)


def root_fields(document: DocumentNode, operation_name: str | None) -> set[str]:
    """Return the names of the root fields of an operation, through aliases and fragments, whatever their directives."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode) and operation_name in (None, node.name and node.name.value):
            return {*_names(node.selection_set, fragments)}
    return set()


def _names(selections: SelectionSetNode, fragments: dict[str, FragmentDefinitionNode]) -> Iterator[str]:
    for node in selections.selections:
        match node:
            case FieldNode():
                yield node.name.value
            case InlineFragmentNode():
                yield from _names(node.selection_set, fragments)
            case FragmentSpreadNode():
                yield from _names(fragments[node.name.value].selection_set, fragments)
