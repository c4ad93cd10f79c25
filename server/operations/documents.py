"""Documents and their operations.

The document cache parses, measures and validates each document once, and also caches the errors of refused documents. A
prepared document finds the operation that a request executes, and compares its cost with the limits.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import graphql as core
from cachetools import FIFOCache, LRUCache
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    OperationDefinitionNode,
)
from graphql.language.parser import MAX_NESTING_DEPTH
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.types.graphql import OperationType

from server.errors import COST_LIMIT, shortened
from server.operations.cost import CostAnalysis, OperationCost, OperationLimits, fields_of, fragments_of, size_of
from server.operations.parsing import MAX_ALIAS_LENGTH, DocumentLimits, excess, longest_alias, measure, parse_document
from server.operations.validation import ABORTED, MAX_FRAGMENT_WORK, RULES, NoIntrospection, validate
from server.operations.weights import Weights

CACHED_TOKENS = 50_000  # of all cached documents; a token and its part of the plan take about 700 bytes
CACHED_REFUSALS = 200
MAX_REFUSED_LENGTH = 5_000  # characters; the refusals of longer documents are not cached
CACHED_COSTS = 100  # of one document, by operation and page sizes
CHARACTERS_PER_TOKEN = 500  # characters of a text that take as much memory as a token
OVERHEAD = 20  # tokens, for the memory of the smallest document
MAX_ERRORS = 20
ALL_KINDS = frozenset(OperationType)
KINDS = {kind: OperationType(kind.value) for kind in core.OperationType}
INVALID = "GRAPHQL_VALIDATION_FAILED"
TOO_COMPLEX = (
    "The document nests fragments too deeply or spreads them too often: the limits are "
    f"{MAX_NESTING_DEPTH} levels, and {MAX_FRAGMENT_WORK:,} fragments and variables in all its operations together. "
    "Spread fewer fragments, or split the document."
)


class DocumentRefused(Exception):
    """Raised if a document is invalid or too large, or the requested operation is missing or too expensive.

    `errors` has at most 20 errors.
    """

    def __init__(self, errors: Sequence[GraphQLError]) -> None:
        super().__init__(errors[0].message)
        self.errors = tuple(errors)


class PreparedOperation(NamedTuple):
    """An operation of a valid document, with its variables and its cost, which is within the limits.

    `name` is None for an anonymous operation.
    """

    document: DocumentNode
    kind: core.OperationType
    name: str | None
    variables: Mapping[str, Any]
    cost: OperationCost

    @property
    def root_fields(self) -> set[str]:
        """The names of the root fields, not their aliases, including fields of fragments and fields with directives."""
        fragments = fragments_of(self.document)
        [operation] = [node for node in operations_of(self.document) if name_of(node) == self.name]
        return {field.name.value for field in fields_of(operation.selection_set, fragments)}


class PreparedDocument:
    """A valid document. `size` is its memory use, including the text, measured in tokens (about 700 bytes each)."""

    def __init__(self, text: str, document: DocumentNode, weights: Weights) -> None:
        self.document = document
        self.size = int(getattr(document, "token_count", 0)) + len(text) // CHARACTERS_PER_TOKEN + OVERHEAD
        self._kinds = {name_of(node): node.operation for node in operations_of(document)}
        self._weights = weights
        self._sized_by: frozenset[str] = frozenset()
        self._costs: dict[Hashable, OperationCost] = {}  # a plain dict: it is cleared whenever its keys change

    @property
    def names(self) -> list[str]:
        """The names of the document's named operations."""
        return [name for name in self._kinds if name]

    def operation(
        self,
        name: str | None,
        variables: Mapping[str, Any],
        limits: OperationLimits,
        allowed: Collection[OperationType] = ALL_KINDS,
    ) -> PreparedOperation:
        """Return the operation that a request executes: the one with this name, or the only one if `name` is None.

        Raises DocumentRefused if the document has no such operation or its cost exceeds the limits, and
        InvalidOperationTypeError if its kind is not allowed.
        """
        if name is None and len(self._kinds) == 1:
            [name] = self._kinds
        kind = self._kinds.get(name)
        if kind is None:
            raise DocumentRefused([GraphQLError(self._undetermined(name))])
        if KINDS[kind] not in allowed:
            raise InvalidOperationTypeError(KINDS[kind])
        cost = self.cost(name, variables)
        error = limits.exceeded_by(cost, kind)
        if error:
            raise DocumentRefused([error])
        return PreparedOperation(self.document, kind, name, variables, cost)

    def check_smallest(self, limits: OperationLimits) -> None:
        """Raise DocumentRefused if an operation exceeds the limits even with 0 for every variable."""
        for node in operations_of(self.document):
            smallest = {definition.variable.name.value: 0 for definition in node.variable_definitions or ()}
            self.operation(name_of(node), smallest, limits)

    def cost(self, operation_name: str | None, variables: Mapping[str, Any]) -> OperationCost:
        """Return the maximum cost of an operation. O(1) if its cost for these page sizes is cached, else O(fields)."""
        known = self._costs.get((operation_name, self._sizes(variables)))
        if known is not None:
            return known
        analysis = CostAnalysis(self._weights, self.document, variables)
        cost = analysis.of(operation_name)
        if not analysis.sized_by <= self._sized_by or len(self._costs) >= CACHED_COSTS:
            self._sized_by |= analysis.sized_by
            self._costs.clear()
        self._costs[operation_name, self._sizes(variables)] = cost
        return cost

    def _sizes(self, variables: Mapping[str, Any]) -> Hashable:
        return tuple([(name, size_of(variables[name])) for name in self._sized_by if name in variables])

    def _undetermined(self, name: str | None) -> str:
        """Return an error message that explains why no operation can be executed."""
        if name:
            return f'Unknown operation named "{name}".'
        if self._kinds:
            return "The document has several operations. Name one of them in 'operationName'."
        return "The document has no operation. Send a query, a mutation or a subscription."


class _Documents(LRUCache[str, PreparedDocument]):
    """The most recently used documents, up to `max_tokens` in total. Calls `on_evict` with each evicted document."""

    def __init__(self, max_tokens: int, on_evict: Callable[[DocumentNode], None] | None) -> None:
        super().__init__(max_tokens, getsizeof=lambda prepared: prepared.size)
        self._on_evict = on_evict

    def popitem(self) -> tuple[str, PreparedDocument]:
        """Evict the least recently used document, and return it with its text."""
        text, prepared = super().popitem()
        if self._on_evict:
            self._on_evict(prepared.document)
        return text, prepared


class DocumentCache:
    """Prepares documents for one schema, and caches the most recently used ones.

    `on_evict` is called with each evicted document. Without `locations`, only syntax errors contain locations in the
    document, but prepared documents take only 40% of the memory. Pinned documents stay prepared for the life of the
    process.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        limits: DocumentLimits,
        *,
        introspection: bool,
        locations: bool = True,
        on_evict: Callable[[DocumentNode], None] | None = None,
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._hides_schema = not introspection
        self._rules = RULES if introspection else (*RULES, NoIntrospection)
        self._weights = Weights(schema)
        self._locations = locations
        self._documents = _Documents(CACHED_TOKENS, on_evict)
        self._refusals: FIFOCache[str, tuple[GraphQLError, ...]] = FIFOCache(CACHED_REFUSALS)
        self._pinned: dict[str, PreparedDocument] = {}

    def known(self, text: str) -> PreparedDocument | None:
        """Return the cached or pinned document with this text, or None."""
        return self._documents.get(text) or self._pinned.get(text)

    def pin(self, text: str) -> PreparedDocument:
        """Prepare a document for the life of the process.

        Raises DocumentRefused, whose errors have locations. The number and total length of pinned documents are not
        limited here: pin only the operator's documents.
        """
        prepared = self._pinned.get(text)
        if prepared is None:
            try:
                prepared = self._pinned[text] = self._check(text, locations=self._locations)
            except DocumentRefused:
                self._check(text, locations=True)
                raise
        return prepared

    def prepare(self, text: str) -> PreparedDocument:
        """Return the prepared document with this text, from the cache if possible. Raises DocumentRefused."""
        prepared = self.known(text)
        if prepared is not None:
            return prepared
        refusal = self._refusals.get(text)
        if refusal is not None:
            raise DocumentRefused(refusal)
        try:
            prepared = self._documents[text] = self._check(text, locations=self._locations)
        except DocumentRefused as refused:
            if len(text) <= MAX_REFUSED_LENGTH:
                self._refusals[text] = refused.errors
            raise
        return prepared

    def _check(self, text: str, *, locations: bool) -> PreparedDocument:
        """Parse, measure and validate a document, and return it prepared. Raises DocumentRefused.

        Documents are measured first, because validation of hostile documents is slow.
        """
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
        errors = validate(self._schema, document, self._rules, MAX_ERRORS, hide_suggestions=self._hides_schema)
        if errors:
            raise DocumentRefused([_detached(error, INVALID) for error in errors[:MAX_ERRORS]])
        return PreparedDocument(text, document, self._weights)


def _detached(error: GraphQLError, code: str) -> GraphQLError:
    """Return a cacheable copy of an error, with a short message and without references to a document or traceback."""
    message = TOO_COMPLEX if error.message == ABORTED else shortened(error.message)
    copy = GraphQLError(message, extensions={"code": code})
    copy.locations = error.locations
    return copy


def operations_of(document: DocumentNode) -> list[OperationDefinitionNode]:
    """Return the operations of a document."""
    return [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]


def name_of(operation: OperationDefinitionNode) -> str | None:
    """Return the name of an operation, or None if it is anonymous."""
    return operation.name.value if operation.name else None
