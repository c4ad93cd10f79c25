"""The run of a plan: layer by layer, each field once for all parents of its selection.

A field whose values are available is completed immediately, and the fields below it start. All values that must be
awaited form the next layer: they are awaited together, so that the look-ups of a layer share a round trip. When all
have arrived, they are completed, which starts the next layer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from inspect import isawaitable
from typing import Any

from graphql import GraphQLResolveInfo, GraphQLSchema
from graphql.execution import Executor as CoreExecutor
from graphql.execution import default_field_resolver, default_type_resolver
from graphql.execution.values import VariableValues
from graphql.pyutils import Path

from .awaitable_columns import AwaitableColumn, await_column, list_depth
from .futures import Shared, cancel_all
from .observer import Observer
from .plan import Column, Field, Paths, Plan, Row, Selection
from .references import PrefetchingRun, join, prefetch
from .steps import Open, Step


class PlanRun(PrefetchingRun):
    """The run of one plan: see `Run`. With `leaves_open`, cells that depend on the context become `Open` values."""

    def __init__(
        self,
        schema: GraphQLSchema,
        plan: Plan,
        context: Any,
        root: Any,
        variables: VariableValues,
        observer: Observer | None = None,
        *,
        leaves_open: bool = False,
    ) -> None:
        self.schema = schema
        self.plan = plan
        self.context = context
        self.root = root
        self.variables = variables
        self.failed = False
        self.arguments: dict[Any, Mapping[str, Any]] = {}
        self.selections: dict[int, tuple[Row, Selection]] = {}
        self._observer = observer
        self._leaves_open = leaves_open
        self._steps: list[Step] = []
        self._tasks: list[asyncio.Future[Any]] = []

    async def finish(self) -> None:
        """Await all steps, layer by layer. If cancelled, cancel everything it started, and wait until its tasks end."""
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
                if self._observer is not None:
                    self._observer.layer_ended([step.field.coordinate for step in layer])
        except BaseException:
            for step in (*layer, *self._steps):
                step.future.cancel()
            if self._tasks:
                await cancel_all(self._tasks)
            raise

    def select(self, selection: Selection, parents: Sequence[Any], paths: Paths) -> list[Row]:
        """Start all fields of a selection and return a row for each parent, with the values that are available."""
        if not parents:
            return []
        columns: list[Column] = []
        steps: list[Step] = []
        for field in selection.fields:
            field_paths = _field_paths(selection, field, paths) if selection.needs_paths else None
            column = self.start(field, parents, field_paths)
            if type(column) is Step:
                steps.append(column)
                columns.append([None] * len(parents))
            else:
                columns.append(column)  # type: ignore[arg-type]  # mypy does not narrow by `type(…) is`
        rows = selection.make_rows(columns) if columns else [{} for _ in parents]
        for step in steps:
            step.rows = rows
        return rows

    def start(self, field: Field, parents: Sequence[Any], paths: Paths) -> Column | Step:
        """Return a field's completed column, or the step that awaits its values."""
        if self._leaves_open and not field.is_independent:
            return [Open(field, parent) for parent in parents]
        is_root_value = field.source.is_root_value
        try:
            values = field.source.values(self, field, parents, paths)
        except Exception as error:
            values, is_root_value = [error] * len(parents), False
        if type(values) is list and not is_root_value:
            return self._complete(field, values, len(parents), paths)
        if type(values) is Shared or isawaitable(values):
            step = self._wait(Step(field, len(parents), paths, self._future(values), is_root_value))
            if field.prefetch is not None:
                step.prefetched = prefetch(self, field.prefetch, parents)
            return step
        column = [values] if is_root_value else _as_column(values, len(parents))
        return self._complete(field, column, len(parents), paths)

    def again(self) -> "PlanRun":
        """Return a new run of the same plan, in which no field has started."""
        return PlanRun(self.schema, self.plan, self.context, self.root, self.variables)

    def complete_values(self, field: Field, values: Column) -> Column:
        """Complete values of a field that are already known, and start the fields below it.

        Raises TypeError if values are awaitable.
        """
        column = self._complete(field, values, len(values), None)
        if isinstance(column, Step):
            raise TypeError(f"The values of {field.coordinate} are awaitable.")
        return column

    def _wait(self, step: Step) -> Step:
        self._steps.append(step)
        return step

    def _future(self, awaitable: Any) -> "asyncio.Future[Any] | Shared[Any]":
        if type(awaitable) is Shared:
            return awaitable
        if isinstance(awaitable, asyncio.Future):
            if isinstance(awaitable, asyncio.Task):
                self._tasks.append(awaitable)
            return awaitable
        task: asyncio.Future[Any] = asyncio.ensure_future(awaitable)
        self._tasks.append(task)
        return task

    def _arrive(self, step: Step, values: Any) -> None:
        """Complete values that have arrived and put them into their rows."""
        failed = isinstance(values, Exception)
        values = [values] * step.count if failed or step.is_root_value else _as_column(values, step.count)
        column: Column | Step | None = None
        if step.prefetched is not None:
            column = join(self, step, step.prefetched, values)
        if column is None:
            column = self._complete(step.field, values, step.count, step.paths)
        if step.slot is not None:
            columns, index = step.slot
            columns[index] = column
            if isinstance(column, Step):
                column.slot = step.slot
        elif isinstance(column, Step):
            column.rows = step.rows
        else:
            key = step.field.key
            for row, cell in zip(step.rows, column, strict=True):
                row[key] = cell

    def _complete(self, field: Field, values: Column, count: int, paths: Paths) -> Column | Step:
        if len(values) != count:
            values = [TypeError(f"A batch resolver returned {len(values)} values for {count} parents.")] * count
        try:
            return field.output.complete(self, values, paths)
        except AwaitableColumn as column:
            future = self._future(await_column(column.values, list_depth(field.type)))
            return self._wait(Step(field, count, paths, future))

    def info(self, field: Field, path: Path) -> "GraphQLResolveInfo[Any]":
        """Return the `info` argument of an ordinary resolver."""
        while isinstance(path.key, int) and path.prev is not None:
            path = path.prev
        return self.core.build_resolve_info(field.definition, field.nodes, field.parent_type, path)

    @cached_property
    def core(self) -> "CoreExecutor[Any]":
        """graphql-core's executor of the same operation, used for type checks and `info` arguments of single values."""
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


def _as_column(values: Any, count: int) -> Column:
    """Return a batch resolver's result as a list. If it cannot be iterated, return the error once for each parent."""
    try:
        return values if type(values) is list else list(values)
    except Exception as error:
        return [error] * count


def _field_paths(selection: Selection, field: Field, paths: Paths) -> Paths:
    if paths is None:
        return [Path(None, field.key, selection.type.name)]
    return [path.add_key(field.key, selection.type.name) for path in paths]
