"""Checks of documents: parsed, measured, then validated.

Documents are measured first, because validation of hostile documents is slow.
"""

from collections.abc import Sequence

from graphql import GraphQLError, GraphQLSchema, GraphQLSyntaxError

from server.errors import COST_LIMIT, shortened
from server.operations.document_size import MAX_ALIAS_LENGTH, DocumentLimits, excess, longest_alias, measure
from server.operations.parsing import parse_document
from server.operations.prepared_document import PreparedDocument
from server.operations.traversal import ABORTED, validate
from server.operations.validation import RULES, NoIntrospection
from server.operations.weights import Weights

MAX_ERRORS = 20
INVALID = "GRAPHQL_VALIDATION_FAILED"
TOO_COMPLEX = "The document nests too many fragments, or its operations share too many. Split it up."


class DocumentRefused(Exception):
    """A document has a syntax error, is too large, or is invalid. Holds at most 20 errors."""

    def __init__(self, errors: Sequence[GraphQLError]) -> None:
        super().__init__(errors[0].message)
        self.errors = tuple(errors)


class DocumentChecks:
    """The checks of documents for one schema."""

    def __init__(self, schema: GraphQLSchema, limits: DocumentLimits, *, introspection: bool) -> None:
        self._schema = schema
        self._limits = limits
        self._introspection = introspection
        self._rules = [*RULES, *([] if introspection else [NoIntrospection])]
        self._weights = Weights(schema)

    def prepare(self, text: str, *, locations: bool) -> PreparedDocument:
        """Parse, measure and validate a document, and return it prepared. Raises DocumentRefused."""
        try:
            document = parse_document(text, self._limits.tokens, locations=locations)
        except GraphQLSyntaxError as error:
            raise DocumentRefused([_detached(error, "GRAPHQL_PARSE_FAILED")]) from None
        try:
            too_large = excess(measure(document), self._limits.size)
        except RecursionError:  # only if the limits are far above their defaults
            too_large = TOO_COMPLEX
        if too_large is None and longest_alias(document) > MAX_ALIAS_LENGTH:
            too_large = f"An alias of the document exceeds the limit of {MAX_ALIAS_LENGTH} characters. Shorten it."
        if too_large is not None:
            raise DocumentRefused([GraphQLError(too_large, extensions={"code": COST_LIMIT})])
        hide = not self._introspection
        errors = validate(self._schema, document, self._rules, MAX_ERRORS, hide_suggestions=hide)
        if errors:
            raise DocumentRefused([_detached(error, INVALID) for error in errors[:MAX_ERRORS]])
        return PreparedDocument(text, document, self._weights)


def _detached(error: GraphQLError, code: str) -> GraphQLError:
    """Return a copy of an error with a truncated message, without document and traceback, so that it can be cached."""
    message = TOO_COMPLEX if error.message == ABORTED else shortened(error.message)
    copy = GraphQLError(message, extensions={"code": code})
    copy.locations = error.locations
    return copy
