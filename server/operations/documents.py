"""The document cache: documents are parsed, measured and validated once; refusals are remembered, too, for a while.

A document is measured before it is validated, because validation takes long on hostile documents.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    OperationDefinitionNode,
    OperationType,
    Source,
    Token,
    validate,
)
from graphql.language.parser import Parser

from server.errors import COST_LIMIT, shortened
from server.operations.cost import Cost, Demand, size_of
from server.operations.document_size import MAX_ALIAS_LENGTH, DocumentLimits, excess, longest_alias, measure
from server.operations.validation import RULES, NoIntrospection
from server.operations.weights import Weights

MAX_ERRORS = 20
KEPT_TOKENS = 50_000  # of all documents that stay prepared; with its plan a token takes about 700 bytes
CHARACTERS_A_TOKEN = 500  # that take as much memory as a token
OVERHEAD = 20  # tokens that take as much memory as the least document
KEPT_DEMANDS = 100  # of one document, by the sizes that its variables ask for
KEPT_REFUSALS = 200
LONGEST_REFUSAL = 5_000  # characters of a document whose refusal is remembered
INVALID = "GRAPHQL_VALIDATION_FAILED"


class DocumentRefused(Exception):
    """A document that is not executed: a syntax error, too large, or invalid. Carries at most 20 coded errors."""

    def __init__(self, errors: Sequence[GraphQLError]) -> None:
        super().__init__(errors[0].message)
        self.errors = tuple(errors)


class Prepared:
    """A valid document, the kinds of its operations, and what these may take."""

    def __init__(self, document: DocumentNode, weights: Weights) -> None:
        self.document = document
        operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        self.operations = len(operations)
        self._kinds = {node.name.value if node.name else None: node.operation for node in operations}
        self._weights = weights
        self._sized_by: frozenset[str] = frozenset()
        self._demands: dict[Hashable, Demand] = {}

    def kind(self, operation_name: str | None) -> OperationType | None:
        """Return the kind of the operation that a request runs; None if the document has no such operation."""
        if not operation_name and self.operations == 1:
            return next(iter(self._kinds.values()))
        return self._kinds.get(operation_name)

    def demand(self, operation_name: str | None, variables: Mapping[str, Any]) -> Demand:
        """Return what an operation may take at most. It is looked up for page sizes that were met before."""
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        known = self._demands.get((operation_name, sizes))
        if known is not None:
            return known
        cost = Cost(self._weights, self.document, variables)
        demand = cost.of(operation_name)
        if not cost.sized_by <= self._sized_by or len(self._demands) >= KEPT_DEMANDS:
            self._sized_by |= cost.sized_by
            self._demands.clear()
        sizes = tuple((name, size_of(variables[name])) for name in self._sized_by if name in variables)
        self._demands[(operation_name, sizes)] = demand
        return demand


class Documents:
    """Prepares documents for one schema, and keeps those that were used last.

    `forget` is called with each document that is no longer kept. Without `locations`, errors do not say where in the
    document they are, except syntax errors: prepared documents then take 40% of the memory. Pinned documents stay
    prepared for the life of the process.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        limits: DocumentLimits,
        *,
        introspection: bool,
        locations: bool = True,
        forget: Callable[[DocumentNode], None] | None = None,
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._locations = locations
        self._introspection = introspection
        self._rules = [*RULES, *([] if introspection else [NoIntrospection])]
        self._weights = Weights(schema)
        self._forget = forget
        self._kept: OrderedDict[str, Prepared] = OrderedDict()
        self._kept_tokens = 0
        self._refused: OrderedDict[str, tuple[GraphQLError, ...]] = OrderedDict()
        self._pinned: dict[str, Prepared] = {}

    def pin(self, text: str) -> Prepared:
        """Prepare a document for the life of the process. Raises DocumentRefused, whose errors have locations.

        The number and length of pinned documents have no limit here: pin only what the operator trusts.
        """
        prepared = self._pinned.get(text)
        if prepared is None:
            try:
                prepared = self._pinned[text] = self._prepare(text, locations=self._locations)
            except DocumentRefused:
                self._prepare(text, locations=True)
                raise
        return prepared

    def knows(self, text: str) -> bool:
        """Return whether a document is prepared, so that to prepare it costs nothing."""
        return text in self._kept or text in self._pinned

    def prepare(self, text: str) -> Prepared:
        """Parse, measure and validate a document. Raises DocumentRefused."""
        prepared = self._kept.get(text)
        if prepared is not None:
            self._kept.move_to_end(text)
            return prepared
        if (prepared := self._pinned.get(text)) is not None:
            return prepared
        refusal = self._refused.get(text)
        if refusal is not None:
            raise DocumentRefused(refusal)
        try:
            prepared = self._prepare(text, locations=self._locations)
        except DocumentRefused as refused:
            self._remember(text, refused)
            raise
        self._keep(text, prepared)
        return prepared

    def _prepare(self, text: str, *, locations: bool) -> Prepared:
        try:
            document = parse_document(text, self._limits.tokens, locations=locations)
        except GraphQLSyntaxError as error:
            raise DocumentRefused([plain(error, "GRAPHQL_PARSE_FAILED")]) from None
        too_large = excess(measure(document), self._limits.size)
        if too_large is None and longest_alias(document) > MAX_ALIAS_LENGTH:
            too_large = f"The document has an alias of over {MAX_ALIAS_LENGTH} characters, the most that are allowed."
        if too_large is not None:
            raise DocumentRefused([GraphQLError(too_large, extensions={"code": COST_LIMIT})])
        hide = not self._introspection
        errors = validate(self._schema, document, self._rules, MAX_ERRORS, hide_suggestions=hide)
        if errors:
            raise DocumentRefused([plain(error, INVALID) for error in errors[:MAX_ERRORS]])
        return Prepared(document, self._weights)

    def _keep(self, text: str, prepared: Prepared) -> None:
        self._kept[text] = prepared
        self._kept_tokens += weight_of(text, prepared)
        while self._kept_tokens > KEPT_TOKENS:
            oldest, dropped = self._kept.popitem(last=False)
            self._kept_tokens -= weight_of(oldest, dropped)
            if self._forget:
                self._forget(dropped.document)

    def _remember(self, text: str, refused: DocumentRefused) -> None:
        if len(text) <= LONGEST_REFUSAL:
            self._refused[text] = refused.errors
            if len(self._refused) > KEPT_REFUSALS:
                self._refused.popitem(last=False)


def parse_document(text: str, max_tokens: int, *, locations: bool = True) -> DocumentNode:
    """Parse a document, and break the links between its tokens. Raises GraphQLSyntaxError.

    The library links tokens in both directions, so that each document would stay in memory until a garbage collection.
    """
    source = Source(text)
    parser = Parser(source, no_location=not locations, max_tokens=max_tokens)
    try:
        return parser.parse_document()
    except RecursionError:
        raise GraphQLSyntaxError(source, 0, "The document is nested too deeply.") from None
    finally:
        token: Token | None = parser._lexer.token
        while token is not None and token.next is not None:
            token = token.next
        while token is not None:
            previous = token.prev
            token.prev = token.next = None
            token = previous


def weight_of(text: str, prepared: Prepared) -> int:
    """Return the memory that a prepared document takes, in tokens: its own, and some for a long text."""
    return int(getattr(prepared.document, "token_count", 0)) + len(text) // CHARACTERS_A_TOKEN + OVERHEAD


def plain(error: GraphQLError, code: str) -> GraphQLError:
    """Copy an error without its document and traceback, so that it can be kept, and shorten its message."""
    copy = GraphQLError(shortened(error.message), extensions={"code": code})
    copy.locations = error.locations
    return copy
