"""The document cache: documents are checked once, and refusals are remembered for a while."""

from collections import OrderedDict
from collections.abc import Callable

from graphql import DocumentNode, GraphQLError, GraphQLSchema

from server.operations.document_checks import DocumentChecks, DocumentRefused
from server.operations.document_size import DocumentLimits
from server.operations.prepared_document import PreparedDocument

KEPT_TOKENS = 50_000  # of all documents that stay prepared; with its plan a token takes about 700 bytes
CHARACTERS_A_TOKEN = 500  # that take as much memory as a token
OVERHEAD = 20  # tokens that take as much memory as the least document
KEPT_REFUSALS = 200
LONGEST_REFUSAL = 5_000  # characters of a document whose refusal is remembered


class DocumentCache:
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
        self._checks = DocumentChecks(schema, limits, introspection=introspection)
        self._locations = locations
        self._forget = forget
        self._kept: OrderedDict[str, PreparedDocument] = OrderedDict()
        self._kept_tokens = 0
        self._refused: OrderedDict[str, tuple[GraphQLError, ...]] = OrderedDict()
        self._pinned: dict[str, PreparedDocument] = {}

    def pin(self, text: str) -> PreparedDocument:
        """Prepare a document for the life of the process. Raises DocumentRefused, whose errors have locations.

        The number and length of pinned documents have no limit here: pin only what the operator trusts.
        """
        prepared = self._pinned.get(text)
        if prepared is None:
            try:
                prepared = self._pinned[text] = self._checks.prepare(text, locations=self._locations)
            except DocumentRefused:
                self._checks.prepare(text, locations=True)
                raise
        return prepared

    def knows(self, text: str) -> bool:
        """Return whether a document is prepared, so that to prepare it costs nothing."""
        return text in self._kept or text in self._pinned

    def prepare(self, text: str) -> PreparedDocument:
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
            prepared = self._checks.prepare(text, locations=self._locations)
        except DocumentRefused as refused:
            self._remember(text, refused)
            raise
        self._keep(text, prepared)
        return prepared

    def _keep(self, text: str, prepared: PreparedDocument) -> None:
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


def weight_of(text: str, prepared: PreparedDocument) -> int:
    """Return the memory that a prepared document takes, in tokens: its own, and some for a long text."""
    return int(getattr(prepared.document, "token_count", 0)) + len(text) // CHARACTERS_A_TOKEN + OVERHEAD
