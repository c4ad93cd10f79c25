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

from executor.outputs import Object, share
from executor.plan import Ahead, Column, Field, Paths, Plan, Row, Selection
from executor.settling import Unsettled, depth_of, end, settle


@dataclass(slots=True, eq=False)
class Step:
    """A field whose values are under way, and the rows that wait for them.

    `lone`: what comes is one value instead of a column. `stand_ins` are the references of the values, if the field's
    selection was begun with them; `early` has the rows that were made then.
    """

    field: Field
    count: int
    paths: Paths
    future: "asyncio.Future[Any]"
    lone: bool = False
    rows: Sequence[Row] = ()
    stand_ins: Sequence[Any] = ()
    early: Mapping[Any, Row] | None = None


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
        self.selections: dict[int, tuple[Row, Selection]] = {}
        self._steps: list[Step] = []
        self._tasks: list[asyncio.Future[Any]] = []

    async def finish(self) -> None:
        """Await the steps, layer after layer, until there are none. If cancelled, end what was begun."""
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
                for step, values in zip(layer, arrived, strict=True):
                    self._arrive(step, values)
        finally:
            if self._tasks:
                await end(self._tasks)

    def select(self, selection: Selection, parents: Sequence[Any], paths: Paths) -> list[Row]:
        """Begin all fields of a selection; make a row for each parent, with what is there already."""
        columns: list[Column] = []
        steps: list[Step] = []
        for field in selection.fields:
            column = self._begin(field, parents, _below(selection, field, paths))
            if type(column) is Step:
                steps.append(column)
                columns.append([None] * len(parents))
            else:
                columns.append(column)  # type: ignore[arg-type]  # mypy does not narrow by `type(…) is`
        rows = selection.make_rows(columns) if columns else [{} for _ in parents]
        for step in steps:
            step.rows = rows
        return rows

    def _select_into(self, rows: Sequence[Row], fields: Sequence[Field], parents: Sequence[Any]) -> None:
        """Begin some fields of a selection, for rows that are there already."""
        for field in fields:
            column = self._begin(field, parents, None)
            self._put(field, rows, column)

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
        return self._complete(field, [values] if lone else list(values), len(parents), paths)

    def _begin_ahead(self, ahead: Ahead, step: Step, parents: Sequence[Any]) -> None:
        """Begin what of the selection needs no more than stand-ins; without these it begins with the values."""
        stand_ins = ahead.references(self, parents)
        if stand_ins is None:
            return
        distinct = list(dict.fromkeys(each for each in stand_ins if each is not None))
        if not distinct:
            return
        rows = ahead.selection.make_rows([[None] * len(distinct)] * len(ahead.selection.fields))
        step.stand_ins, step.early = stand_ins, dict(zip(distinct, rows, strict=True))
        self._select_into(rows, ahead.early, distinct)

    def _wait(self, step: Step) -> Step:
        self._steps.append(step)
        return step

    def _future(self, awaitable: Any) -> "asyncio.Future[Any]":
        if isinstance(awaitable, asyncio.Future):
            return awaitable
        task: asyncio.Future[Any] = asyncio.ensure_future(awaitable)
        self._tasks.append(task)
        return task

    def _arrive(self, step: Step, values: Any) -> None:
        """Complete what has come, and put it into the rows that wait for it."""
        failed = isinstance(values, Exception)
        values = [values] * step.count if failed or step.lone else list(values)
        if step.early is None:
            column = self._complete(step.field, values, step.count, step.paths)
        else:
            column = self._join(step, step.early, values)
        self._put(step.field, step.rows, column)

    def _complete(self, field: Field, values: Column, count: int, paths: Paths) -> Column | Step:
        if len(values) != count:
            values = [TypeError(f"A batch resolver gave {len(values)} values for {count} parents.")] * count
        try:
            return field.output.complete(self, values, paths)
        except Unsettled as unsettled:
            settling = self._future(settle(unsettled.values, depth_of(field.type)))
            return self._wait(Step(field, count, paths, settling))

    def _join(self, step: Step, early: Mapping[Any, Row], values: Column) -> Column | Step:
        """Bring the objects that have come together with the rows that their stand-ins have begun."""
        output, ahead = step.field.output, step.field.ahead
        assert isinstance(output, Object)  # noqa: S101 - so planned
        assert ahead is not None  # noqa: S101
        if len(values) != step.count:
            return self._complete(step.field, values, step.count, step.paths)
        try:
            simple = output.takes_all(values)
        except Unsettled:
            return self._complete(step.field, values, step.count, step.paths)
        if simple and None not in step.stand_ins:
            parents = dict(zip(step.stand_ins, values, strict=True))
            self._select_into([early[stand_in] for stand_in in parents], ahead.late, list(parents.values()))
            return [early[stand_in] for stand_in in step.stand_ins]
        cells, present = output.admit(self, values, None)
        known = [index for index in present if step.stand_ins[index] in early]
        parents = {step.stand_ins[index]: values[index] for index in known}
        self._select_into([early[stand_in] for stand_in in parents], ahead.late, list(parents.values()))
        for index in known:
            cells[index] = early[step.stand_ins[index]]
        if len(known) < len(present):
            unknown = [index for index in present if step.stand_ins[index] not in early]
            rows = share(self, ahead.selection, [values[index] for index in unknown], None)
            for index, row in zip(unknown, rows, strict=True):
                cells[index] = row
        return cells

    def _put(self, field: Field, rows: Sequence[Row], column: Column | Step) -> None:
        """Put a column into rows, or let them wait for it."""
        if isinstance(column, Step):
            column.rows = rows
            return
        key = field.key
        for row, cell in zip(rows, column, strict=True):
            row[key] = cell

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


def _below(selection: Selection, field: Field, paths: Paths) -> Paths:
    """Give the paths of a field for all parents, if anybody beneath wants them."""
    if not selection.located:
        return None
    if paths is None:
        return [Path(None, field.key, selection.type.name)]
    return [path.add_key(field.key, selection.type.name) for path in paths]
