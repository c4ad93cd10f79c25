"""The validation rules for documents: those of graphql-core, with bounds for the expensive rules.

For documents within `DocumentLimits`, all rules together take approximately linear time.
"""

from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLNamedType,
    NonNullTypeNode,
    NullValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OverlappingFieldsCanBeMergedRule,
    ValidationContext,
    ValidationRule,
    ValuesOfCorrectTypeRule,
    VariableNode,
    get_named_type,
    is_introspection_type,
    specified_rules,
)
from graphql.validation import validation_context
from graphql.validation.validate import ValidationAbortedError

from server.operations.overlaps import LinearOverlappingFields

MAX_LINES = 5_000
MAX_FRAGMENT_WORK = 10_000  # visits of fragment spreads and variables, counted per operation
MAX_INVALID_VALUES = 5
MAX_QUOTED = 1_000


class LimitedDocument(ValidationRule):
    """Refuse documents with many lines, or with many operations that share many fragments or variables.

    To compute its location, each error scans all lines before it. For each operation, three rules visit all variables
    of the operation and its fragments.
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
    """Stop after a few invalid values, or the first long one: each error quotes a value, as long as the document."""

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self._reported = 0

    def report_error(self, error: GraphQLError) -> None:
        """Report at most `MAX_INVALID_VALUES` errors, and none after one of `MAX_QUOTED` characters."""
        super().report_error(error)
        self._reported += 1
        if self._reported >= MAX_INVALID_VALUES:
            raise ValidationAbortedError(f"Validation stopped after {MAX_INVALID_VALUES} invalid values.")
        if len(error.message) > MAX_QUOTED:
            raise ValidationAbortedError(f"Validation stopped after an invalid value of {MAX_QUOTED:,} characters.")


class OneOfInputObjects(ValidationRule):
    """Require exactly one field, and not null, in literals of `@oneOf` input objects.

    The GraphQL specification does; graphql-core checks values only when it executes.
    """

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self._variables: dict[int, str] = {}

    def enter_object_value(self, node: ObjectValueNode, *_args: Any) -> None:
        """Check the fields of a literal, and remember a variable among them."""
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
        """Require that the variables in these literals cannot be null."""
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
    """Return True for an input object with `@oneOf`."""
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
