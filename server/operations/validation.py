"""Validation of documents: graphql-core's rules in a third of the time, with bounds for the expensive rules.

For documents within `DocumentLimits`, all rules together take approximately linear time.

graphql-core visits each node through generic code, and visits each operation again to find its variables. When it looks
up a node in a dictionary, it hashes the node and all its descendants. `validate` calls the same rules in the same
order, but finds the functions for a kind of node only once, does not visit names, and compares nodes by identity.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from graphql import (
    BREAK,
    ASTValidationRule,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLNamedType,
    GraphQLSchema,
    Node,
    NonNullTypeNode,
    NullValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OverlappingFieldsCanBeMergedRule,
    TypeInfo,
    ValidationContext,
    ValidationRule,
    ValuesOfCorrectTypeRule,
    VariableNode,
    Visitor,
    get_named_type,
    is_introspection_type,
    specified_rules,
)
from graphql.language.ast import QUERY_DOCUMENT_KEYS
from graphql.pyutils import RefMap
from graphql.validation import validation_context
from graphql.validation.validate import FragmentNestingVisitor, ValidationAbortedError
from graphql.validation.validation_context import NodeWithSelectionSet, VariableUsage, VariableUsageVisitor

from server.operations.overlaps import LinearOverlappingFields

MAX_LINES = 5_000
MAX_FRAGMENT_WORK = 10_000  # visits of fragment spreads and variables, counted per operation
MAX_INVALID_VALUES = 5
MAX_QUOTED = 1_000
ABORTED = "Validation aborted."  # graphql-core's message
TOO_MANY = f"Too many validation errors, error limit reached. {ABORTED}"
UNVISITED = frozenset({"alias", "description", "name"})
"""Attributes of nodes that contain only names and texts, and are not visited."""
NO_PATH: list[str | int] = []  # no rule uses the path of a node


class LimitedDocument(ValidationRule):
    """Refuse documents with many lines, or with many operations that share many fragments or variables.

    Many lines are expensive because each error scans all lines before its location. Shared fragments are expensive
    because three rules visit, for each operation, all variables in the operation and its fragments.
    """

    def enter_document(self, document: DocumentNode, *_args: Any) -> None:
        """Check the number of lines, and lower graphql-core's bound for shared fragments."""
        text = document.loc.source.body if document.loc else ""
        lines = 1 + text.count("\n") + text.count("\r") - text.count("\r\n")
        if lines > MAX_LINES:
            message = f"The document has {lines:,} lines; the limit is {MAX_LINES:,}. Remove blank lines."
            raise ValidationAbortedError(message)
        self.context.spend_fragment_work(max(validation_context.MAX_FRAGMENT_WORK - MAX_FRAGMENT_WORK, 0))


class LimitedValues(ValuesOfCorrectTypeRule):
    """Stop validation after a few invalid values, or the first long one, because errors quote the whole value."""

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self._reported = 0

    def report_error(self, error: GraphQLError) -> None:
        """Report an error. Abort after `MAX_INVALID_VALUES` errors, or one longer than `MAX_QUOTED` characters."""
        super().report_error(error)
        self._reported += 1
        if self._reported >= MAX_INVALID_VALUES:
            raise ValidationAbortedError(f"Validation stopped after {MAX_INVALID_VALUES} invalid values.")
        if len(error.message) > MAX_QUOTED:
            raise ValidationAbortedError(f"Validation stopped after an invalid value of {MAX_QUOTED:,} characters.")


class OneOfInputObjects(ValidationRule):
    """Require exactly one non-null field in each literal of a `@oneOf` input object.

    The GraphQL specification requires this in validation; graphql-core checks these values only during execution.
    """

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self._variables: dict[int, str] = {}

    def enter_object_value(self, node: ObjectValueNode, *_args: Any) -> None:
        """Check the fields of a literal. If the value of its field is a variable, remember the variable."""
        type_ = get_named_type(self.context.get_input_type())
        if type_ is None or not is_one_of(type_):
            return
        if len(node.fields) != 1:
            message = f"OneOf input object '{type_.name}' must specify exactly one field; this has {len(node.fields)}."
            self.report_error(GraphQLError(message, node))
            return
        [field] = node.fields
        if isinstance(field.value, NullValueNode):
            message = f"Field '{type_.name}.{field.name.value}' must not be null."
            self.report_error(GraphQLError(message, node))
        elif isinstance(field.value, VariableNode):
            self._variables[id(field.value)] = type_.name

    def leave_document(self, document: DocumentNode, *_args: Any) -> None:
        """Require that the variables used as field values in `@oneOf` literals are declared as non-null."""
        if not self._variables:
            return
        for operation in document.definitions:
            if isinstance(operation, OperationDefinitionNode):
                self._check_variables(operation)

    def _check_variables(self, operation: OperationDefinitionNode) -> None:
        nullable = {
            definition.variable.name.value
            for definition in operation.variable_definitions or ()
            if not isinstance(definition.type, NonNullTypeNode)
        }
        for usage in self.context.get_recursive_variable_usages(operation):
            name, type_name = usage.node.name.value, self._variables.get(id(usage.node))
            if type_name is not None and name in nullable:
                message = f"Variable '${name}' must be non-null for OneOf input object '{type_name}'."
                self.report_error(GraphQLError(message, usage.node))


def is_one_of(type_: GraphQLNamedType) -> bool:
    """Return True if a type is an input object with `@oneOf`."""
    return bool(getattr(type_.extensions.get("strawberry-definition"), "is_one_of", False))


class NoIntrospection(ValidationRule):
    """Refuse introspection, with one error for the whole document.

    graphql-core's rule reports every field, so an ordinary introspection query would get dozens of errors.
    """

    _reported = False

    def enter_field(self, node: FieldNode, *_args: Any) -> None:
        """Report the first field whose type belongs to the introspection system."""
        type_ = self.context.get_type()
        if not self._reported and type_ is not None and is_introspection_type(get_named_type(type_)):
            self._reported = True
            name = node.name.value
            message = (
                f"GraphQL introspection has been disabled, but the document contains the field '{name}'. "
                "Ask the operator for the schema."
            )
            self.report_error(GraphQLError(message, node))


REPLACED: dict[type[ASTValidationRule], type[ASTValidationRule]] = {
    OverlappingFieldsCanBeMergedRule: LinearOverlappingFields,
    ValuesOfCorrectTypeRule: LimitedValues,
}
RULES: tuple[type[ASTValidationRule], ...] = (
    LimitedDocument,
    *(REPLACED.get(rule, rule) for rule in specified_rules),
    OneOfInputObjects,
)


class _Steps(NamedTuple):
    """What to do at each node of one kind: the functions to call, and the attributes that contain nodes to visit.

    Each function is paired with the number of its visitor. `is_quiet` is True if no visitor has a function for this
    kind.
    """

    enter_types: Callable[[Any], None] | None
    enter: tuple[tuple[int, Callable[..., Any]], ...]
    parts: tuple[str, ...]
    leave: tuple[tuple[int, Callable[..., Any]], ...]
    leave_types: Callable[[], None] | None
    is_quiet: bool


class Traversal:
    """Visits nodes with several visitors in parallel, and keeps `type_info` up to date.

    Visitors may return `SKIP` or `BREAK`, but not replacement nodes. They must not use the path of a node. Names are
    not visited.
    """

    def __init__(self, type_info: TypeInfo, visitors: Sequence[Visitor]) -> None:
        self._type_info = type_info
        self._visitors = visitors
        self._skipping: list[bool] = [False] * len(visitors)
        self._steps: dict[str, _Steps] = {}
        self._ancestors: list[Any] = []

    def visit(self, node: Node, key: str | int | None = None, parent: Any = None) -> None:
        """Visit a node and all its descendants. O(nodes)."""
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
        """Call the visitors that enter a node. Return the numbers of the visitors that skip its descendants, if any."""
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
    """Finds the variables used in operations and fragments, one definition at a time."""

    def begin(self, fragment: FragmentDefinitionNode | None) -> list[VariableUsage]:
        """Begin a definition: return a new list, to which the variables found from now on are added."""
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
    """Return the errors that graphql-core's `validate` would return for these rules.

    There are at most `max_errors` errors, plus one if validation is aborted.
    """
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
        error.__context__ = None  # otherwise the error would keep the frames of the validation alive
        errors.append(error.with_traceback(None))
    except RecursionError:
        errors.append(ValidationAbortedError(ABORTED))
    return errors
