"""References: stand-ins for values that are still being looked up, used to prefetch some fields of these values.

A field can declare a function that returns references without a look-up, for example objects that have only an id.
Fields that are declared to need only a reference start together with the look-up of their parents and share its
round trip. When the parents arrive, the prefetched columns become part of their rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .arguments import Arguments
from .awaitable_columns import AwaitableColumn
from .outputs import Object, shared_rows
from .plan import Column, Field, Paths, Prefetch, Row, Run
from .steps import Prefetched, Step


class PrefetchingRun(Run, Protocol):
    """A run that can start single fields."""

    def start(self, field: Field, parents: Sequence[Any], paths: Paths) -> Column | Step:
        """Return a field's completed column, or the step that awaits its values."""
        ...


class References:
    """The function that returns references to a field's values, with the field's arguments."""

    def __init__(self, function: Callable[..., Any], arguments: Arguments, *, is_root_value: bool) -> None:
        self._function = function
        self._arguments = arguments
        self._is_root_value = is_root_value

    def of(self, run: Run, parents: Sequence[Any]) -> Any:
        """Return one reference for each parent.

        Return None if the function or the coercion of arguments raises; the field's resolver reports the error.
        """
        try:
            if self._is_root_value:
                return [self._function(run.context, **self._arguments.of(run))]
            return self._function(parents, run.context, **self._arguments.of(run))
        except Exception:
            return None


def prefetch(run: PrefetchingRun, plan: Prefetch, parents: Sequence[Any]) -> Prefetched | None:
    """Start the fields that need only a reference. Return None if there are no usable references."""
    try:
        references = list(plan.references(run, parents) or ())
        distinct = [each for each in dict.fromkeys(references) if each is not None]
    except TypeError:  # not iterable, or not hashable
        return None
    if not distinct or len(references) != len(parents):
        return None
    columns = [run.start(field, distinct, None) for field in plan.selection.fields if field.needs_only_reference]
    for index, column in enumerate(columns):
        if type(column) is Step:
            column.slot = columns, index
    return Prefetched(references, distinct, columns)


def join(run: PrefetchingRun, step: Step, prefetched: Prefetched, values: Column) -> Column | None:
    """Return the column of rows for values that have arrived, including their prefetched cells.

    Return None if the values cannot be matched with their references, which makes the prefetched columns useless.
    """
    output, references = step.field.output, prefetched.references
    assert isinstance(output, Object)  # noqa: S101 - the planner ensures this
    if len(values) != step.count:
        return None
    try:
        all_are_objects = output.accepts_all(values)
    except AwaitableColumn:
        return None
    if all_are_objects and None not in references:
        rows = _rows(run, step.field, prefetched, dict(zip(references, values, strict=True)))
        return [rows[reference] for reference in references]
    return _join_some(run, step.field, output, prefetched, values)


def _join_some(run: PrefetchingRun, field: Field, output: Object, prefetched: Prefetched, values: Column) -> Column:
    """Return the column of rows for values, some of which are not objects or have no reference."""
    references = prefetched.references
    cells, present = output.check_each(run, values, None)
    found = {references[index]: values[index] for index in present if references[index] is not None}
    rows = _rows(run, field, prefetched, {each: found[each] for each in prefetched.distinct if each in found})
    others = [index for index in present if references[index] is None]
    other_rows = shared_rows(run, output.selection, [values[index] for index in others], None)
    for index, row in zip(others, other_rows, strict=True):
        cells[index] = row
    for index in present:
        if references[index] is not None:
            cells[index] = rows[references[index]]
    return cells


def _rows(run: PrefetchingRun, field: Field, prefetched: Prefetched, parents: Mapping[Any, Any]) -> dict[Any, Row]:
    """Map each reference to the row of its parent. The cells are prefetched, or from fields that this call starts."""
    selection, columns_prefetched, values = field.selection, iter(prefetched.columns), list(parents.values())
    assert selection is not None  # noqa: S101 - the planner ensures this
    kept = None
    if len(parents) < len(prefetched.distinct):
        kept = [index for index, reference in enumerate(prefetched.distinct) if reference in parents]
    columns: list[Column] = []
    waiting: list[Step] = []
    for each in selection.fields:
        if each.needs_only_reference:
            column = next(columns_prefetched)
        else:
            column = run.start(each, values, None) if values else []
        if isinstance(column, Step):
            waiting.append(column)
            columns.append([None] * len(values))
        elif each.needs_only_reference and kept is not None:
            columns.append([column[index] for index in kept])
        else:
            columns.append(column)
    rows = dict(zip(parents, selection.make_rows(columns), strict=True)) if values else {}
    for step in waiting:
        step.slot = None
        by_reference = step.field.needs_only_reference
        step.rows = [rows.get(each, {}) for each in prefetched.distinct] if by_reference else list(rows.values())
    return rows
