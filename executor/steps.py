"""The state of fields whose values are awaited."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .futures import Shared
from .plan import Column, Field, Paths, Row


@dataclass(slots=True, eq=False)
class Step:
    """A field whose values are awaited, and the rows that receive the values.

    `count` is the number of parents. If `is_root_value` is True, the future has one value instead of a column.
    `prefetched` holds the columns of the field's selection that were started early, because they need only references.
    If the step is itself a prefetched column, `slot` is the list of columns and the index at which to store the
    completed column. `slot` is None once there are rows to store the values in.
    """

    field: Field
    count: int
    paths: Paths
    future: "asyncio.Future[Any] | Shared[Any]"
    is_root_value: bool = False
    rows: Sequence[Row] = ()
    prefetched: "Prefetched | None" = None
    slot: "tuple[list[Column | Step], int] | None" = None


class Open:
    """A placeholder for the value of a field that depends on the context, when one run serves several contexts."""

    __slots__ = ("field", "parent")

    def __init__(self, field: Field, parent: Any) -> None:
        self.field = field
        self.parent = parent


@dataclass(slots=True, eq=False)
class Prefetched:
    """The prefetched columns for a step: one cell per distinct reference, for each field that needs only a reference.

    `references` has one reference (or None) for each of the step's parents.
    """

    references: Sequence[Any]
    distinct: list[Any]
    columns: list[Column | Step]
