"""Validation of documents with the rules of graphql-core, in a third of the time of its `validate`.

graphql-core visits each node through generic code, and visits each operation again to find its variables. Its look-ups
by node hash all nodes below. This module calls the same rules in the same order, but finds the functions for a kind of
node once, does not visit names, and compares nodes by identity.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from graphql import (
    BREAK,
    ASTValidationRule,
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    TypeInfo,
    ValidationContext,
    Visitor,
)
from graphql.language.ast import QUERY_DOCUMENT_KEYS
from graphql.pyutils import RefMap
from graphql.validation.validate import FragmentNestingVisitor, ValidationAbortedError
from graphql.validation.validation_context import NodeWithSelectionSet, VariableUsage, VariableUsageVisitor

ABORTED = "Validation aborted."  # graphql-core's message
TOO_MANY = f"Too many validation errors, error limit reached. {ABORTED}"
UNVISITED = frozenset({"alias", "description", "name"})
"""Parts of nodes that contain names and texts only. A type condition is no name."""
NO_PATH: list[str | int] = []  # no rule uses the path of a node


class _Steps(NamedTuple):
    """What to do for a kind of node: functions with the numbers of their visitors, and the parts to visit.

    `is_quiet` is True if there is nothing to do but visit the parts.
    """

    enter_types: Callable[[Any], None] | None
    enter: tuple[tuple[int, Callable[..., Any]], ...]
    parts: tuple[str, ...]
    leave: tuple[tuple[int, Callable[..., Any]], ...]
    leave_types: Callable[[], None] | None
    is_quiet: bool


class Traversal:
    """Visits nodes with several visitors in parallel, while `type_info` follows.

    Visitors may return `SKIP` or `BREAK`, but not other nodes. They must not use the path of a node, and names are not
    visited.
    """

    def __init__(self, type_info: TypeInfo, visitors: Sequence[Visitor]) -> None:
        self._type_info = type_info
        self._visitors = visitors
        self._skipping: list[bool] = [False] * len(visitors)
        self._steps: dict[str, _Steps] = {}
        self._ancestors: list[Any] = []

    def visit(self, node: Node, key: str | int | None = None, parent: Any = None) -> None:
        """Visit a node and all nodes below it. O(nodes)."""
        kind = node.kind
        steps = self._steps.get(kind) or self._prepare(kind)
        if steps.is_quiet and not any(getattr(node, part) for part in steps.parts):
            return
        if steps.enter_types is not None:
            steps.enter_types(node)
        skipping, ancestors = self._skipping, self._ancestors
        skipped = self._enter(steps, node, key, parent) if steps.enter else None
        if parent is not None:
            ancestors.append(parent)
        for part in steps.parts:
            child = getattr(node, part)
            if isinstance(child, Node):
                self.visit(child, part, node)
            elif child:
                ancestors.append(node)
                for index, item in enumerate(child):
                    self.visit(item, index, child)
                ancestors.pop()
        if parent is not None:
            ancestors.pop()
        for number, leave in steps.leave:
            if not skipping[number] and leave(node, key, parent, NO_PATH, ancestors) is BREAK:
                skipping[number] = True
        for number in skipped or ():
            skipping[number] = False
        if steps.leave_types is not None:
            steps.leave_types()

    def _enter(self, steps: _Steps, node: Node, key: str | int | None, parent: Any) -> list[int] | None:
        """Call the visitors; return the numbers of those that skip what is below."""
        skipping, ancestors = self._skipping, self._ancestors
        skipped = None
        for number, enter in steps.enter:
            if skipping[number]:
                continue
            result = enter(node, key, parent, NO_PATH, ancestors)
            if result is not None:
                skipping[number] = True
                if result is not BREAK:
                    skipped = [*(skipped or ()), number]
        return skipped

    def _prepare(self, kind: str) -> _Steps:
        found = [visitor.get_enter_leave_for_kind(kind) for visitor in self._visitors]
        enter = tuple((number, each.enter) for number, each in enumerate(found) if each.enter)
        leave = tuple((number, each.leave) for number, each in enumerate(found) if each.leave)
        steps = self._steps[kind] = _Steps(
            getattr(self._type_info, f"enter_{kind}", None),
            enter,
            tuple(part for part in QUERY_DOCUMENT_KEYS.get(kind, ()) if part not in UNVISITED),
            leave,
            getattr(self._type_info, f"leave_{kind}", None),
            is_quiet=not enter and not leave,
        )
        return steps


class _Usages(VariableUsageVisitor):
    """Finds the variables in one definition after the other."""

    def begin(self, fragment: FragmentDefinitionNode | None) -> list[VariableUsage]:
        """Return a list to which the variables found from now on are added."""
        self._fragment_definition = fragment
        self.usages = []
        self._append_usage = self.usages.append
        return self.usages


class Context(ValidationContext):
    """A validation context that compares nodes by identity, and finds variables with a `Traversal`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._fragment_spreads = RefMap()  # type: ignore[assignment]  # it has the methods of a dict that are used
        self._variable_usages = RefMap()  # type: ignore[assignment]
        self._recursive_variable_usages = RefMap()  # type: ignore[assignment]
        self._usages = _Usages(self._type_info)
        self._finding_variables = Traversal(self._type_info, [self._usages])

    def get_variable_usages(self, node: NodeWithSelectionSet) -> list[VariableUsage]:
        """Return the variables in an operation or a fragment. O(nodes) the first time."""
        usages = self._variable_usages.get(node)
        if usages is None:
            fragment = node if isinstance(node, FragmentDefinitionNode) else None
            usages = self._variable_usages[node] = self._usages.begin(fragment)
            self._finding_variables.visit(node)
        return usages


def validate(
    schema: GraphQLSchema,
    document: DocumentNode,
    rules: Collection[type[ASTValidationRule]],
    max_errors: int,
    *,
    hide_suggestions: bool = False,
) -> list[GraphQLError]:
    """Return the errors of a document, at most one more than `max_errors`: as graphql-core's `validate` does."""
    errors: list[GraphQLError] = []
    type_info = TypeInfo(schema)

    def add(error: GraphQLError) -> None:
        if len(errors) >= max_errors:
            raise ValidationAbortedError(TOO_MANY)
        errors.append(error)

    context = Context(schema, document, type_info, add, hide_suggestions)
    visitors: list[Visitor] = [rule(context) for rule in rules]
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    if fragments:
        visitors.insert(0, FragmentNestingVisitor(fragments))
    try:
        Traversal(type_info, visitors).visit(document)
    except ValidationAbortedError as error:
        error.__context__ = None  # it would keep the frames of the validation
        errors.append(error.with_traceback(None))
    except RecursionError:
        errors.append(ValidationAbortedError(ABORTED))
    return errors
