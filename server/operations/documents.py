"""The document cache: documents are checked once, and refusals are cached too."""

from collections.abc import Callable

from cachetools import FIFOCache, LRUCache
from graphql import DocumentNode, GraphQLError, GraphQLSchema

from server.operations.document_checks import DocumentChecks, DocumentRefused
from server.operations.document_size import DocumentLimits
from server.operations.prepared_document import PreparedDocument

CACHED_TOKENS = 50_000  # of all cached documents; with its plan a token takes about 700 bytes
CACHED_REFUSALS = 200
MAX_REFUSED_LENGTH = 5_000  # characters of a document whose refusal is cached


class _Documents(LRUCache[str, PreparedDocument]):
    """The documents used most recently, up to a number of tokens. Calls `on_evict` with each evicted document."""

    def __init__(self, max_tokens: int, on_evict: Callable[[DocumentNode], None] | None) -> None:
        super().__init__(max_tokens, getsizeof=lambda prepared: prepared.size)
        self._on_evict = on_evict

    def popitem(self) -> tuple[str, PreparedDocument]:
        """Evict the document that was used least recently."""
        text, prepared = super().popitem()
        if self._on_evict:
            self._on_evict(prepared.document)
        return text, prepared


class DocumentCache:
    """Prepares documents for one schema, and caches those that were used most recently.

    `on_evict` is called with each evicted document. Without `locations`, errors do not contain locations in the
    document, except syntax errors; prepared documents then take 40% of the memory. Pinned documents stay prepared for
    the life of the process.
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
        self._checks = DocumentChecks(schema, limits, introspection=introspection)
        self._locations = locations
        self._documents = _Documents(CACHED_TOKENS, on_evict)
        self._refusals: FIFOCache[str, tuple[GraphQLError, ...]] = FIFOCache(CACHED_REFUSALS)
        self._pinned: dict[str, PreparedDocument] = {}

    def __contains__(self, text: str) -> bool:
        return text in self._documents or text in self._pinned

    def pin(self, text: str) -> PreparedDocument:
        """Prepare a document for the life of the process. Raises DocumentRefused, whose errors have locations.

        The number and length of pinned documents are not limited here: pin only the operator's documents.
        """
        prepared = self._pinned.get(text)
        if prepared is None:
            try:
                prepared = self._pinned[text] = self._checks.prepare(text, locations=self._locations)
            except DocumentRefused:
                self._checks.prepare(text, locations=True)
                raise
        return prepared

    def prepare(self, text: str) -> PreparedDocument:
        """Return a prepared document, from the cache if it is there. Raises DocumentRefused."""
        prepared = self._documents.get(text) or self._pinned.get(text)
        if prepared is not None:
            return prepared
        refusal = self._refusals.get(text)
        if refusal is not None:
            raise DocumentRefused(refusal)
        try:
            prepared = self._documents[text] = self._checks.prepare(text, locations=self._locations)
        except DocumentRefused as refused:
            if len(text) <= MAX_REFUSED_LENGTH:
                self._refusals[text] = refused.errors
            raise
        return prepared
