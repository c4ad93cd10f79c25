"""Independence: whether the results of an operation are the same for every context.

Such an operation may be run once for several clients. A field is independent if its values depend only on its parents,
its arguments, and data that is the same for all clients. Attributes of parents are; a resolver must be declared as
`independent`, because it gets the context. The event of a subscription is the parent of all other fields.
"""

import graphql as core

from .declarations import Declarations
from .document_info import DocumentInfo


class Independence:
    """Decides about the operations of one document."""

    def __init__(self, schema: core.GraphQLSchema, declarations: Declarations, info: DocumentInfo) -> None:
        self._schema = schema
        self._declarations = declarations
        self._fragments = {name: fragment.definition for name, fragment in info.fragments.items()}
        self._known: dict[str, bool] = {}

    def of(self, operation: core.OperationDefinitionNode) -> bool:
        """Return True if all fields are independent, those that conditions leave out included. O(n) in the nodes."""
        root = self._schema.get_root_type(operation.operation)
        return root is not None and self._selection(root, operation.selection_set)

    def _selection(self, type_: core.GraphQLNamedType, selections: core.SelectionSetNode) -> bool:
        return all(self._part(type_, part) for part in selections.selections)

    def _part(self, type_: core.GraphQLNamedType, part: core.SelectionNode) -> bool:
        if isinstance(part, core.FieldNode):
            return self._field(type_, part)
        if isinstance(part, core.FragmentSpreadNode):
            return self._fragment(part.name.value)
        assert isinstance(part, core.InlineFragmentNode)  # noqa: S101 - there are no other selections
        condition = part.type_condition
        return self._selection(self._schema.type_map[condition.name.value] if condition else type_, part.selection_set)

    def _fragment(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            definition = self._fragments[name]
            type_ = self._schema.type_map[definition.type_condition.name.value]
            known = self._known[name] = self._selection(type_, definition.selection_set)
        return known

    def _field(self, type_: core.GraphQLNamedType, node: core.FieldNode) -> bool:
        name = node.name.value
        if name == "__typename":
            return True
        possible = self._schema.get_possible_types(type_) if core.is_abstract_type(type_) else [type_]
        definitions = [self._schema.get_field(each, name) for each in possible]  # type: ignore[arg-type]  # they have fields
        for definition in definitions:
            if definition is None or not self._declarations.of(definition).is_independent:
                return False
            if self._declarations.type_needs_paths(core.get_named_type(definition.type)):
                return False
        if node.selection_set is None:
            return True
        return all(
            self._selection(core.get_named_type(definition.type), node.selection_set)
            for definition in definitions
            if definition is not None
        )
