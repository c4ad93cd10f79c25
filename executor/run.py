"""One run of a plan: layer by layer, each field once for all parents of its selection.

A field whose values are there at once is completed at once, and its selection begun. What has to be awaited makes
the next layer: all of it is under way together, so that look-ups of one layer share a round trip, and when the last
of it has come, all is completed and begins the layer after it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import isawaitable
from typing import Any

from graphql import GraphQLResolveInfo, GraphQLSchema
from graphql.execution import Executor as CoreExecutor
from graphql.execution import default_field_resolver, default_type_resolver
from graphql.execution.values import VariableValues
from graphql.pyutils import Path

from executor.arguments import Arguments
from executor.outputs import Object, share
from executor.plan import Ahead, Column, Field, Paths, Plan, Row, Selection
from executor.settling import Unsettled, depth_of, end, settle


@dataclass(slots=True, eq=False)
class Step:
    """A field whose values are under way, and the rows that wait for them.

    `lone`: what comes is one value instead of a column. `early` is what of the field's selection has begun with
    stand-ins; a step that is part of such a beginning has its `place` there until there are rows.
    """

    field: Field
    count: int
    paths: Paths
    future: "asyncio.Future[Any]"
    lone: bool = False
    rows: Sequence[Row] = ()
    early: "Early | None" = None
    place: "tuple[list[Column | Step], int] | None" = None


@dataclass(slots=True, eq=False)
class Early:
    """The columns of a selection's early fields, for the distinct stand-ins among those of all values."""

    stand_ins: Sequence[Any]
    distinct: list[Any]
    columns: "list[Column | Step]"


class Run:
    """The state of one run. `failed` tells that the rows hold failures, or nulls where there must be none.

    `selections` knows what was selected of a row that stands where the type was not known before.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        plan: Plan,
        context: Any,
        root: Any,
        variables: VariableValues,
    ) -> None:
        self.schema = schema
        self.plan = plan
        self.context = context
        self.root = root
        self.variables = variables
        self.failed = False
        self.arguments: dict[Arguments, Mapping[str, Any]] = {}
        self.selections: dict[int, tuple[Row, Selection]] = {}
        self._steps: list[Step] = []
        self._tasks: list[asyncio.Future[Any]] = []

    async def finish(self) -> None:
        """Await the steps, layer after layer, until there are none. If cancelled, end what was begun."""
        layer: list[Step] = []
        try:
            while self._steps:
                layer, self._steps = self._steps, []
                arrived: list[Any] = []
                for step in layer:
                    try:
                        arrived.append(await step.future)
                    except Exception as error:
                        arrived.append(error)
                self._tasks.clear()
                for step, values in zip(reversed(layer), reversed(arrived), strict=True):
                    self._arrive(step, values)
        except BaseException:
            for step in (*layer, *self._steps):
                step.future.cancel()
            if self._tasks:
                await end(self._tasks)
            raise

    def select(self, selection: Selection, parents: Sequence[Any], paths: Paths) -> list[Row]:
        """Begin all fields of a selection; make a row for each parent, with what is there already."""
        if not parents:
            return []
        columns: list[Column] = []
        steps: list[Step] = []
        for field in selection.fields:
            column = self._begin(field, parents, _below(selection, field, paths) if selection.located else None)
            if type(column) is Step:
                steps.append(column)
                columns.append([None] * len(parents))
            else:
                columns.append(column)  # type: ignore[arg-type]  # mypy does not narrow by `type(…) is`
        rows = selection.make_rows(columns) if columns else [{} for _ in parents]
        for step in steps:
            step.rows = rows
        return rows

    def _begin(self, field: Field, parents: Sequence[Any], paths: Paths) -> Column | Step:
        """Give a field's completed column, or the step that brings it."""
        lone = field.source.lone
        try:
            values = field.source.values(self, field, parents, paths)
        except Exception as error:
            values, lone = [error] * len(parents), False
        if type(values) is list and not lone:
            return self._complete(field, values, len(parents), paths)
        if isinstance(values, asyncio.Future) or isawaitable(values):
            step = self._wait(Step(field, len(parents), paths, self._future(values), lone))
            if field.ahead is not None:
                self._begin_ahead(field.ahead, step, parents)
            return step
        return self._complete(field, [values] if lone else _listed(values, len(parents)), len(parents), paths)

    def _begin_ahead(self, ahead: Ahead, step: Step, parents: Sequence[Any]) -> None:
        """Begin what of the selection needs no more than stand-ins; without these it begins with the values."""
        try:
            stand_ins = list(ahead.references(self, parents) or ())
            distinct = [each for each in dict.fromkeys(stand_ins) if each is not None]
        except TypeError:  # they cannot be listed, or not be told apart
            return
        if not distinct or len(stand_ins) != len(parents):
            return
        columns = [self._begin(field, distinct, None) for field in ahead.selection.fields if field.early]
        for index, column in enumerate(columns):
            if type(column) is Step:
                column.place = columns, index
        step.early = Early(stand_ins, distinct, columns)

    def _wait(self, step: Step) -> Step:
        self._steps.append(step)
        return step

    def _future(self, awaitable: Any) -> "asyncio.Future[Any]":
        if isinstance(awaitable, asyncio.Future):
            if isinstance(awaitable, asyncio.Task):
                self._tasks.append(awaitable)
            return awaitable
        task: asyncio.Future[Any] = asyncio.ensure_future(awaitable)
        self._tasks.append(task)
        return task

    def _arrive(self, step: Step, values: Any) -> None:
        """Complete what has come, and put it into the rows that wait for it."""
        failed = isinstance(values, Exception)
        values = [values] * step.count if failed or step.lone else _listed(values, step.count)
        if step.early is None:
            column = self._complete(step.field, values, step.count, step.paths)
        else:
            column = self._join(step, step.early, values)
        if step.place is not None:
            columns, index = step.place
            columns[index] = column
            if isinstance(column, Step):
                column.place = step.place
        elif isinstance(column, Step):
            column.rows = step.rows
        else:
            key = step.field.key
            for row, cell in zip(step.rows, column, strict=True):
                row[key] = cell

    def _complete(self, field: Field, values: Column, count: int, paths: Paths) -> Column | Step:
        if len(values) != count:
            values = [TypeError(f"A batch resolver gave {len(values)} values for {count} parents.")] * count
        try:
            return field.output.complete(self, values, paths)
        except Unsettled as unsettled:
            settling = self._future(settle(unsettled.values, depth_of(field.type)))
            return self._wait(Step(field, count, paths, settling))

    def _join(self, step: Step, early: Early, values: Column) -> Column | Step:
        """Bring the objects that have come together with what their stand-ins have begun."""
        output, stand_ins = step.field.output, early.stand_ins
        assert isinstance(output, Object)  # noqa: S101 - so planned
        try:
            simple = len(values) == step.count and output.takes_all(values) and None not in stand_ins
        except Unsettled:
            return self._complete(step.field, values, step.count, step.paths)
        if simple:
            rows = self._rows_of(step.field, early, dict(zip(stand_ins, values, strict=True)))
            return [rows[stand_in] for stand_in in stand_ins]
        if len(values) != step.count:
            return self._complete(step.field, values, step.count, step.paths)
        cells, present = output.admit(self, values, None)
        found = {stand_ins[index]: values[index] for index in present if stand_ins[index] is not None}
        rows = self._rows_of(step.field, early, {each: found[each] for each in early.distinct if each in found})
        alone = [index for index in present if stand_ins[index] is None]
        for index, row in zip(alone, share(self, output.selection, [values[i] for i in alone], None), strict=True):
            cells[index] = row
        for index in present:
            if stand_ins[index] is not None:
                cells[index] = rows[stand_ins[index]]
        return cells

    def _rows_of(self, field: Field, early: Early, parents: Mapping[Any, Any]) -> dict[Any, Row]:
        """Make the rows of objects by their stand-ins: of early columns, and of those that begin now."""
        selection, begun, those = field.selection, iter(early.columns), list(parents.values())
        assert selection is not None  # noqa: S101 - so planned
        kept = None
        if len(parents) < len(early.distinct):
            kept = [index for index, stand_in in enumerate(early.distinct) if stand_in in parents]
        columns: list[Column] = []
        waiting: list[Step] = []
        for each in selection.fields:
            column = next(begun) if each.early else self._begin(each, those, None) if those else []
            if isinstance(column, Step):
                waiting.append(column)
                columns.append([None] * len(those))
            else:
                columns.append([column[index] for index in kept] if each.early and kept is not None else column)
        rows = dict(zip(parents, selection.make_rows(columns), strict=True)) if those else {}
        for step in waiting:
            step.place = None
            step.rows = [rows.get(each, {}) for each in early.distinct] if step.field.early else list(rows.values())
        return rows

    def info(self, field: Field, path: Path) -> "GraphQLResolveInfo[Any]":
        """Make what an ordinary resolver is told of its field and place."""
        while isinstance(path.key, int) and path.prev is not None:
            path = path.prev
        return self.core.build_resolve_info(field.definition, field.nodes, field.parent_type, path)

    @cached_property
    def core(self) -> "CoreExecutor[Any]":
        """graphql-core's own executor of the same operation, for what it does value by value."""
        plan = self.plan
        return CoreExecutor(
            self.schema,
            {name: fragment.definition for name, fragment in plan.fragments.items()},
            plan.fragments,
            self.root,
            self.context,
            plan.operation,
            self.variables,
            default_field_resolver,
            default_type_resolver,
            default_field_resolver,
        )


def _listed(values: Any, count: int) -> Column:
    """Make a column of what a batch resolver gave, be it an error."""
    try:
        return values if type(values) is list else list(values)
    except Exception as error:
        return [error] * count


def _below(selection: Selection, field: Field, paths: Paths) -> Paths:
    """Give the paths of a field for all parents."""
    if paths is None:
        return [Path(None, field.key, selection.type.name)]
    return [path.add_key(field.key, selection.type.name) for path in paths]
