"""Open runs: one execution for several contexts. Fields that depend on the context are filled in afterwards.

The run executes everything that is the same for all contexts only once. Where a field depends on the context, the run
leaves the cell of the response open. `fill` then resolves each open field for all contexts, and completes the values of
all contexts as one layer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any, cast

from graphql.execution.values import VariableValues

from .plan import Column, Field, Row
from .plan import Run as PlanRunInterface
from .run import PlanRun
from .steps import Open

Filled = list[Any] | None


class Seat:
    """The parts of a run that a batch resolver needs: one of the contexts, and the variables."""

    __slots__ = ("arguments", "context", "variables")

    def __init__(self, context: Any, variables: VariableValues) -> None:
        self.context = context
        self.variables = variables
        self.arguments: dict[Any, Mapping[str, Any]] = {}


class OpenRun:
    """A finished run without errors. `data` is the response, with an `Open` in place of each value left open."""

    def __init__(self, run: PlanRun, data: Row) -> None:
        self._run = run
        self.data = data

    async def fill(self, cells: Sequence[Open], contexts: Sequence[Any]) -> list[Filled]:
        """Return, for each context, the values of the open cells in order, or None if a cell failed in this context.

        If any of the values cannot be completed, return None for every context. The number of round trips does not
        depend on the number of contexts.
        """
        fields: dict[Field, list[int]] = {}
        for place, cell in enumerate(cells):
            fields.setdefault(cell.field, []).append(place)
        asked = [self._values(field, [cells[i].parent for i in places], contexts) for field, places in fields.items()]
        arrived = await asyncio.gather(*asked)
        filled: list[Filled] = [[None] * len(cells) for _ in contexts]
        for columns in arrived:
            filled = [None if _has_failed(column) else row for row, column in zip(filled, columns, strict=True)]
        good = [index for index, row in enumerate(filled) if row is not None]
        again = self._run.again()
        for (field, places), columns in zip(fields.items(), arrived, strict=True):
            raw = [value for index in good for value in cast("Column", columns[index])]
            values = iter(again.complete_values(field, raw))
            for index in good:
                row = cast("list[Any]", filled[index])
                for place in places:
                    row[place] = next(values)
        await again.finish()
        return [None] * len(contexts) if again.failed else filled

    async def _values(self, field: Field, parents: Sequence[Any], contexts: Sequence[Any]) -> list[Any]:
        """Return, for each context, the raw column of a field, or an error in place of the column."""
        if field.together is not None:
            return list(await field.together(parents, contexts))
        started = [self._start(field, parents, Seat(context, self._run.variables)) for context in contexts]
        waiting = [values for values in started if type(values) is not list and isawaitable(values)]
        arrived = iter(await asyncio.gather(*waiting, return_exceptions=True))
        return [next(arrived) if type(values) is not list and isawaitable(values) else values for values in started]

    def _start(self, field: Field, parents: Sequence[Any], seat: Seat) -> Any:
        try:
            return field.source.values(cast("PlanRunInterface", seat), field, parents, None)
        except Exception as error:
            return error


def _has_failed(column: Column | BaseException) -> bool:
    return isinstance(column, BaseException) or any(isinstance(value, Exception) for value in column)
