"""The state of fields whose values are awaited."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .futures import Shared
from .plan import Column, Field, Paths, Row


@dataclass(slots=True, eq=False)
class Step:
    """A field whose values are awaited, and the rows that its values go into.

    If `is_root_value`, the future has one value instead of a column. `prefetched` holds columns of the field's
    selection that were started with references. A step that belongs to such columns has a `slot` there (the columns
    and an index) until there are rows.
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
    """The columns of the fields that need only a reference, for the distinct references to a step's values."""

    references: Sequence[Any]
    distinct: list[Any]
    columns: list[Column | Step]
