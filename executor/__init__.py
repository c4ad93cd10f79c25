"""Breadth-first execution of GraphQL schemas.

A field is declared once, with a resolver that returns the values of all parents at once (`fields`). `Executor` calls
the resolver once per layer of a query. Ordinary execution calls it through dataloaders (`batches`, `loader`).

`execution` executes operations and caches their plans (`plan_cache`). The `planner` makes a plan from a document
(`document_info`) and the declarations of the schema's fields (`declarations`). `run` executes a plan layer by layer:
sources return columns of raw values (`sources`, `arguments`), outputs complete them (`outputs`, `awaitable_columns`),
and fields that need only a reference to their parent are prefetched (`references`). If anything failed, `propagation`
adds error paths and propagates nulls. An `observer` is notified of layers and fallbacks.
"""

from .batches import Batches
from .execution import Executor, Operation
from .extension import BreadthFirst
from .fields import batched, live, single

__all__ = ["Batches", "BreadthFirst", "Executor", "Operation", "batched", "live", "single"]
