"""Documents: parsed, measured and validated once, then kept; and how large a client's may be.

A document is measured before it is validated, because validation itself takes long on hostile ones. Measuring
visits every fragment once, however often it is spread, so its time is linear in the text.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    parse,
    specified_rules,
    validate,
)

from server.cost import Cost, size_of

MAX_BODY = 256 * 1024  # bytes of a request, or of a socket's message
MAX_TOKENS = 3_000
MAX_SELECTIONS = 500
MAX_ALIASES = 100
MAX_DIRECTIVES = 100
MAX_ERRORS = 20
COUNTED_TO = 1_000_000
KEPT_LENGTH = 500_000  # characters of all documents that stay prepared
KEPT_COSTS = 100  # of one document, by sizes
TOO_LARGE = "COST_LIMIT"
INVALID = "GRAPHQL_VALIDATION_FAILED"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a document is with its fragments counted wherever they are spread."""

    levels: int = 0
    selections: int = 0
    aliases: int = 0
    directives: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(
            max(self.levels, other.levels),
            min(self.selections + other.selections, COUNTED_TO),
            min(self.aliases + other.aliases, COUNTED_TO),
            min(self.directives + other.directives, COUNTED_TO),
        )


class Prepared:
    """A document without syntax errors, what else is wrong with it, and what its operations are and cost."""

    def __init__(self, document: DocumentNode, errors: tuple[GraphQLError, ...]) -> None:
        self.document = document
        self.errors = errors
        operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        self.operations = len(operations)
        self._kinds = {node.name.value if node.name else None: node.operation for node in operations}
        self._sized_by: frozenset[str] = frozenset()
        self._costs: dict[Hashable, int] = {}

    def kind(self, operation_name: str | None) -> OperationType | None:
        """Tell what kind of operation a request runs; None if it names none of the document's."""
        if not operation_name and self.operations == 1:
            return next(iter(self._kinds.values()))
        return self._kinds.get(operation_name)

    def cost(self, operation_name: str | None, variables: Mapping[str, Any]) -> int:
        """Count the objects that an operation can ask for; with sizes that were met before, it is looked up."""
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        known = self._costs.get((operation_name, sizes))
        if known is not None:
            return known
        cost = Cost(self.document, variables)
        counted = cost.of(operation_name)
        if not cost.sized_by <= self._sized_by or len(self._costs) >= KEPT_COSTS:
            self._sized_by |= cost.sized_by
            self._costs.clear()
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        self._costs[(operation_name, sizes)] = counted
        return counted


class Documents:
    """Prepares the documents of one schema; those last used stay prepared, unless there was anything wrong.

    `forget` is told of those that no longer do.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        max_depth: int,
        *,
        introspection: bool,
        forget: Callable[[DocumentNode], None] | None = None,
    ) -> None:
        self._schema = schema
        self._limits = Size(max_depth, MAX_SELECTIONS, MAX_ALIASES, MAX_DIRECTIVES)
        self._introspection = introspection
        self._rules = [*specified_rules, *([] if introspection else [NoSchemaIntrospectionCustomRule])]
        self._forget = forget
        self._kept: OrderedDict[str, Prepared] = OrderedDict()
        self._kept_length = 0

    def prepare(self, text: str) -> Prepared:
        """Parse a document, measure it and validate it. Raises GraphQLSyntaxError."""
        prepared = self._kept.get(text)
        if prepared is not None:
            self._kept.move_to_end(text)
            return prepared
        prepared = self._prepare(text)
        if not prepared.errors:
            self._kept[text] = prepared
            self._kept_length += len(text)
            while self._kept_length > KEPT_LENGTH:
                oldest, dropped = self._kept.popitem(last=False)
                self._kept_length -= len(oldest)
                if self._forget:
                    self._forget(dropped.document)
        return prepared

    def _prepare(self, text: str) -> Prepared:
        document = parse(text, max_tokens=MAX_TOKENS)
        excess = _excess(measure(document), self._limits)
        if excess is not None:
            return Prepared(document, (GraphQLError(excess, extensions={"code": TOO_LARGE}),))
        hide = not self._introspection
        errors = validate(self._schema, document, self._rules, MAX_ERRORS, hide_suggestions=hide)
        for error in errors:
            error.extensions = {"code": INVALID}
        return Prepared(document, tuple(errors))


def measure(document: DocumentNode) -> Size:
    """Measure all operations of a document together, and the fragments that none of them uses."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    measured: dict[str, Size] = {}
    total = Size()
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            total += Size(directives=len(node.directives or ())) + _of(node.selection_set, fragments, measured)
    for name, fragment in fragments.items():
        if name not in measured:
            total += _of(fragment.selection_set, fragments, measured)
    return total


def _of(
    selection_set: SelectionSetNode | None,
    fragments: Mapping[str, FragmentDefinitionNode],
    measured: dict[str, Size],
) -> Size:
    total = Size()
    for node in selection_set.selections if selection_set else ():
        total += Size(selections=1, directives=len(node.directives or ()))
        if isinstance(node, FragmentSpreadNode):
            name = node.name.value
            if name not in measured and name in fragments:
                measured[name] = Size()  # stands while a fragment spreads itself, which validation refuses
                measured[name] = _of(fragments[name].selection_set, fragments, measured)
            total += measured.get(name, Size())
        elif isinstance(node, FieldNode):
            inner = _of(node.selection_set, fragments, measured)
            total += inner + Size(levels=inner.levels + 1, aliases=int(node.alias is not None))
        elif isinstance(node, InlineFragmentNode):
            total += _of(node.selection_set, fragments, measured)
    return total


def _excess(size: Size, limits: Size) -> str | None:
    for field in fields(Size):
        found, allowed = getattr(size, field.name), getattr(limits, field.name)
        if found > allowed:
            count = "too many" if found >= COUNTED_TO else str(found)
            return f"The document has {count} {field.name} with its fragments spread; {allowed} are allowed."
    return None
