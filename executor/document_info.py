"""Information about a document: operations, fragments, variables in conditions, and whether it is supported."""

from collections.abc import Iterator
from dataclasses import dataclass

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    Node,
    OperationDefinitionNode,
    VariableNode,
)
from graphql.execution.collect_fields import FragmentDetails
from graphql.language.ast import QUERY_DOCUMENT_KEYS

CONDITIONS = ("skip", "include")
PARTS = {
    kind: tuple(part for part in parts if part not in ("alias", "description", "name"))
    for kind, parts in QUERY_DOCUMENT_KEYS.items()
    if kind != "variable"
}
"""The attributes of each kind of node that hold child nodes, except names."""
UNSUPPORTED = ("defer", "stream", "__schema", "__type")


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """The parts of a document.

    `conditions` are the names of the variables used in `@skip` and `@include`. `supported` is False if only
    graphql-core can execute a part of the document.
    """

    operations: tuple[OperationDefinitionNode, ...]
    fragments: dict[str, FragmentDetails]
    conditions: tuple[str, ...]
    supported: bool

    @classmethod
    def of(cls, document: DocumentNode) -> "DocumentInfo":
        """Return the information about a document. O(n) in the number of its nodes."""
        nodes = list(nodes_of(document))
        operations = tuple(node for node in nodes if isinstance(node, OperationDefinitionNode))
        fragments = [node for node in nodes if isinstance(node, FragmentDefinitionNode)]
        conditions = [node for node in nodes if isinstance(node, DirectiveNode) and node.name.value in CONDITIONS]
        variables = {
            part.name.value for node in conditions for part in nodes_of(node) if isinstance(part, VariableNode)
        }
        names = {node.name.value for node in nodes if isinstance(node, DirectiveNode | FieldNode)}
        return cls(
            operations,
            {node.name.value: FragmentDetails(node) for node in fragments},
            tuple(sorted(variables)),
            names.isdisjoint(UNSUPPORTED) and not any(node.variable_definitions for node in fragments),
        )

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """Return the operation with this name, or the document's only operation if `name` is None.

        Return None if no operation has the name, or if `name` is None and there are several operations.
        """
        if name is None:
            return self.operations[0] if len(self.operations) == 1 else None
        return next((node for node in reversed(self.operations) if node.name and node.name.value == name), None)

    def variables_below_roots(self, operation: OperationDefinitionNode) -> list[str]:
        """Return the sorted names of the variables used anywhere but in arguments and directives of root fields."""
        fields = [node.selection_set for node in operation.selection_set.selections if isinstance(node, FieldNode)]
        others = [node for node in operation.selection_set.selections if not isinstance(node, FieldNode)]
        fragments = [fragment.definition for fragment in self.fragments.values()]
        parts = [part for node in (*fields, *others, *fragments) if node for part in nodes_of(node)]
        return sorted({part.name.value for part in parts if isinstance(part, VariableNode)})


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield a node and all its descendants except name nodes, in no particular order. O(n) in the number of nodes."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        for part in PARTS.get(node.kind, ()):
            value = getattr(node, part)
            if isinstance(value, Node):
                pending.append(value)
            elif value:
                pending.extend(reversed(value))
