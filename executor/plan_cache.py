"""The plans of recently executed documents."""

from collections.abc import Hashable

from cachetools import LRUCache
from graphql import DocumentNode

from .declarations import Declarations
from .document_info import DocumentInfo
from .plan import Fallback, Plan

MAX_DOCUMENTS = 1000
MAX_FIELDS = 20_000  # of all plans; a field takes nearly 2 KB, and a document has a plan for each set of conditions


class PlannedDocument:
    """One document and its plans or Fallbacks. It keeps the document alive, so that no other object gets its `id()`.

    `independent` maps the name of an operation to two flags: whether its results are the same in every context, and
    whether an open run can execute it.
    """

    def __init__(self, document: DocumentNode) -> None:
        self.document = document
        self.info = DocumentInfo.of(document)
        self.plans: dict[Hashable, Plan | Fallback] = {}
        self.independent: dict[str | None, tuple[bool, bool]] = {}


class PlanCache:
    """Documents and their plans, keyed by the identity of the document object.

    The cache drops the least recently used documents above `MAX_DOCUMENTS`, and all documents once more than
    `MAX_FIELDS` fields have been planned.
    """

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self._documents: LRUCache[int, PlannedDocument] = LRUCache(MAX_DOCUMENTS)

    def __len__(self) -> int:
        return len(self._documents)

    def document(self, document: DocumentNode) -> PlannedDocument:
        """Return the cached document, adding it if necessary."""
        known = self._documents.get(id(document))
        if known is None:
            known = self._documents[id(document)] = PlannedDocument(document)
        return known

    def add(self, document: PlannedDocument, conditions: Hashable, plan: Plan | Fallback) -> None:
        """Add a document's plan or Fallback for a combination of conditions.

        Clear the whole cache if more than `MAX_FIELDS` fields have been planned since it was last cleared.
        """
        document.plans[conditions] = plan
        if self._declarations.planned_fields > MAX_FIELDS:
            self._declarations.planned_fields = 0
            self._documents.clear()

    def drop(self, document: DocumentNode) -> None:
        """Drop a document and its plans."""
        self._documents.pop(id(document), None)
