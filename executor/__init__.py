"""Breadth-first execution of GraphQL schemas, and batch-resolved fields that ordinary execution drives as well.

A field is declared once, with a resolver that answers for all its parents at once (`executor.fields`). `Executor`
calls it once for each layer of a query; ordinary execution drives it through dataloaders (`executor.loader`). The
package knows nothing of the schema it serves: any project with Strawberry, or with graphql-core, can use it.

A document becomes a plan once (`planner`, `plan`), which is then run layer by layer (`run`): sources give columns of
values (`sources`), outputs complete them (`outputs`). Only if anything failed, a last pass puts errors and nulls
where the specification wants them (`propagation`).
"""

from executor.execution import Executor, Operation
from executor.extension import BreadthFirst
from executor.fields import batched, live, single

__all__ = ["BreadthFirst", "Executor", "Operation", "batched", "live", "single"]
