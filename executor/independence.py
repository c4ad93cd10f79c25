"""Independence: whether the results of an operation are the same for every context.

An independent operation may be run once for several clients. A field is independent if its values depend only on its
parents, its arguments, and data that is the same for all clients. Fields that read an attribute of the parent are
independent. A field with a resolver must be declared as `independent`, because the resolver gets the context. The root
field of a subscription is independent: its value is the event, from which all other fields are resolved.
"""

import graphql as core

from .declarations import Declarations
from .document_info import DocumentInfo


class Independence:
    """Decides whether the operations of one document are independent.

    With `leaves_open`, a field with a batch resolver may depend on the context, but the fields below it may not: see
    `open_runs`.
    """

    def __init__(
        self, schema: core.GraphQLSchema, declarations: Declarations, info: DocumentInfo, *, leaves_open: bool = False
    ) -> None:
        self._schema = schema
        self._leaves_open = leaves_open
        self._declarations = declarations
        self._fragments = {name: fragment.definition for name, fragment in info.fragments.items()}
        self._known: dict[tuple[str, bool], bool] = {}

    def of(self, operation: core.OperationDefinitionNode) -> bool:
        """Return True if all fields of an operation are independent, or may be left open.

        Fields that `@skip` or `@include` would omit count, too. O(n) in the number of nodes.
        """
        root = self._schema.get_root_type(operation.operation)
        return root is not None and self._selection(root, operation.selection_set, self._leaves_open)

    def _selection(self, type_: core.GraphQLNamedType, selections: core.SelectionSetNode, may_open: bool) -> bool:
        return all(self._part(type_, part, may_open) for part in selections.selections)

    def _part(self, type_: core.GraphQLNamedType, part: core.SelectionNode, may_open: bool) -> bool:
        if isinstance(part, core.FieldNode):
            return self._field(type_, part, may_open)
        if isinstance(part, core.FragmentSpreadNode):
            return self._fragment(part.name.value, may_open)
        assert isinstance(part, core.InlineFragmentNode)  # noqa: S101 - there are no other selections
        condition = part.type_condition
        chosen = self._schema.type_map[condition.name.value] if condition else type_
        return self._selection(chosen, part.selection_set, may_open)

    def _fragment(self, name: str, may_open: bool) -> bool:
        known = self._known.get((name, may_open))
        if known is None:
            definition = self._fragments[name]
            type_ = self._schema.type_map[definition.type_condition.name.value]
            known = self._known[name, may_open] = self._selection(type_, definition.selection_set, may_open)
        return known

    def _field(self, type_: core.GraphQLNamedType, node: core.FieldNode, may_open: bool) -> bool:
        name = node.name.value
        if name == "__typename":
            return True
        possible = self._schema.get_possible_types(type_) if core.is_abstract_type(type_) else [type_]
        definitions = [self._schema.get_field(each, name) for each in possible]  # type: ignore[arg-type]  # they have fields
        for definition in definitions:
            if definition is None:
                return False
            declared = self._declarations.of(definition)
            if not declared.is_independent:
                if not may_open or "batch" not in declared.own:
                    return False
                may_open = False
            if self._declarations.type_needs_paths(core.get_named_type(definition.type)):
                return False
        if node.selection_set is None:
            return True
        return all(
            self._selection(core.get_named_type(definition.type), node.selection_set, may_open)
            for definition in definitions
            if definition is not None
        )
