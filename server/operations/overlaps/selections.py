"""The selection sets of a document with their types, for the comparison of overlapping fields."""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from graphlib import TopologicalSorter
from operator import itemgetter

from graphql import (
    ArgumentNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    ListValueNode,
    ObjectFieldNode,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    StringValueNode,
    ValueNode,
    VariableNode,
    get_named_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    type_from_ast,
)


class Selections:
    """The fields of one selection set, including those in inline fragments, and the fragments that it spreads.

    `leaves` are the parent types and names of fields without an alias, arguments, directives or selections. `fields`
    contains each such field once, even if the selection set repeats it.
    """

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.leaves: set[tuple[GraphQLNamedType | None, str]] = set()
        self.spreads: list[Selections] = []

    @cached_property
    def expanded(self) -> tuple["Selections", ...]:
        """These selections and all selections that they spread directly or indirectly, each once."""
        found = {self: None}
        pending = [self]
        while pending:
            for spread in pending.pop().spreads:
                if spread not in found:
                    found[spread] = None
                    pending.append(spread)
        return tuple(found)


@dataclass(eq=False, slots=True)
class Field:
    """A field of the document, with the properties that must be equal in merged fields."""

    node: FieldNode
    parent: GraphQLNamedType | None
    definition: GraphQLField | None
    selections: Selections | None
    response_name: str
    _call: str | None = None

    @property
    def call(self) -> str:
        """The field's name and arguments in a normal form, so that equal calls have equal strings."""
        if self._call is None:
            name = self.node.name.value
            self._call = repr((name, _by_name(self.node.arguments))) if self.node.arguments else name
        return self._call

    @property
    def shape(self) -> Hashable:
        """The list and non-null wrappers of the field's type, and its scalar or enum; None if the type is unknown."""
        return None if self.definition is None else _shape(self.definition.type)

    @property
    def streamed(self) -> bool:
        """True if the field has a `@stream` directive."""
        return any(directive.name.value == "stream" for directive in self.node.directives or ())


class Reader:
    """Reads each selection set of a document once: O(n) for n nodes.

    `variables` lists the fragments that declare variables, and the spreads that have arguments.
    """

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._fragments: dict[str, Selections] = {}
        self.variables: list[FragmentDefinitionNode | FragmentSpreadNode] = []

    def roots(self, document: DocumentNode) -> list[Selections]:
        """Return the selections of all operations, and of the fragments that are not spread anywhere.

        Raises CycleError if fragments spread each other in a cycle.
        """
        fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        self._fragments = {name: Selections() for name in fragments}
        spread_by: dict[str, set[str]] = {}
        for name, fragment in fragments.items():
            if fragment.variable_definitions:
                self.variables.append(fragment)
            type_ = type_from_ast(self._schema, fragment.type_condition)
            spread_by[name] = self._read(fragment.selection_set, type_, self._fragments[name])
        TopologicalSorter(spread_by).prepare()
        spread = set().union(*spread_by.values())
        roots = []
        for node in document.definitions:
            if isinstance(node, OperationDefinitionNode):
                roots.append(Selections())
                spread |= self._read(node.selection_set, self._schema.get_root_type(node.operation), roots[-1])
        return roots + [self._fragments[name] for name in fragments if name not in spread]

    def _read(self, selection_set: SelectionSetNode, parent: GraphQLNamedType | None, into: Selections) -> set[str]:
        """Fill `into` from a selection set. Return the names of the fragments that are spread in it, at any depth."""
        spread = set()
        pending = [(selection_set, parent, into)]
        while pending:
            selection_set, parent, into = pending.pop()
            unread = deque((node, parent) for node in selection_set.selections)
            while unread:
                node, parent = unread.popleft()
                if isinstance(node, FieldNode):
                    if not (node.selection_set or node.arguments or node.alias or node.directives):
                        leaf = (parent, node.name.value)
                        if leaf in into.leaves:
                            continue
                        into.leaves.add(leaf)
                    field = _field(node, parent)
                    into.fields.append(field)
                    if node.selection_set and field.selections:
                        type_ = get_named_type(field.definition.type) if field.definition else None
                        pending.append((node.selection_set, type_, field.selections))
                elif isinstance(node, InlineFragmentNode):
                    type_ = type_from_ast(self._schema, node.type_condition) if node.type_condition else parent
                    unread.extendleft((inner, type_) for inner in reversed(node.selection_set.selections))
                elif isinstance(node, FragmentSpreadNode) and node.name.value in self._fragments:
                    if node.arguments:
                        self.variables.append(node)
                    spread.add(node.name.value)
                    into.spreads.append(self._fragments[node.name.value])
        return spread


@lru_cache(maxsize=1024)
def _shape(type_: GraphQLOutputType) -> Hashable:
    wrappers = ""
    while is_list_type(type_) or is_non_null_type(type_):
        wrappers += "[" if is_list_type(type_) else "!"
        type_ = type_.of_type
    return wrappers, type_ if is_leaf_type(type_) else None


def _field(node: FieldNode, parent: GraphQLNamedType | None) -> Field:
    # As in graphql-core, meta fields such as __typename have no definition, so their types are not compared.
    fields = parent.fields if isinstance(parent, GraphQLObjectType | GraphQLInterfaceType) else {}
    name = node.name.value
    selections = Selections() if node.selection_set else None
    return Field(node, parent, fields.get(name), selections, node.alias.value if node.alias else name)


def _by_name(nodes: Iterable[ArgumentNode | ObjectFieldNode]) -> list[tuple[str, object]]:
    return sorted(((node.name.value, _literal(node.value)) for node in nodes), key=itemgetter(0))


def _literal(node: ValueNode) -> object:
    """Return a value that is equal for equal literals; the order of object fields does not matter."""
    if isinstance(node, VariableNode):
        return "variable", node.name.value
    if isinstance(node, ObjectValueNode):
        return "object", _by_name(node.fields)
    if isinstance(node, ListValueNode):
        return [_literal(value) for value in node.values]
    if isinstance(node, StringValueNode):
        return "string", node.value, bool(node.block)
    return node.kind, getattr(node, "value", None)
