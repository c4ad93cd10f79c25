"""Null propagation: the last pass over the response of a run that had failures.

The pass walks the rows in document order, adds paths to errors and propagates nulls as the specification requires, so
the result is the same as in depth-first execution. A row that several paths share is walked once for each path. Runs
without failures skip the pass.
"""

import math
from typing import Any

from graphql import GraphQLError, GraphQLList, GraphQLNonNull, GraphQLOutputType
from graphql.error import located_error

from .awaitable_columns import IterationError
from .outputs import Failure, name_of
from .plan import Column, Field, Row, Run, Selection

Key = str | int


class Failed(Exception):
    """Carries an error up the response. The error itself is not raised, because each raise extends its traceback."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Propagation:
    """Turns rows into a response. `errors` holds at most `max_errors` errors, in document order."""

    def __init__(self, run: Run, max_errors: int | None = None) -> None:
        self._run = run
        self._max_errors = math.inf if max_errors is None else max_errors
        self.errors: list[GraphQLError] = []

    def data(self, selection: Selection, row: Row) -> dict[str, Any] | None:
        """Return the data of an operation, or None if a null propagated to the root."""
        try:
            return self._object(selection, row, [])
        except Failed as failed:
            self.errors.append(located_error(failed.error))
            return None

    def _object(self, selection: Selection, row: Row, path: list[Key]) -> dict[str, Any]:
        return {
            field.key: self._nullable(field, field.type, row[field.key], [*path, field.key])
            for field in selection.fields
            if field.key in row
        }

    def _nullable(self, field: Field, type_: GraphQLOutputType, cell: Any, path: list[Key]) -> Any:
        """Return the value of the cell at a path. A failure becomes null here, unless the type is non-null."""
        try:
            return self._cell(field, type_, cell, path)
        except Failed as failed:
            if isinstance(failed.error, IterationError):
                raise
            if len(self.errors) >= self._max_errors:
                if isinstance(type_, GraphQLNonNull):
                    raise
                return None
            error = located_error(failed.error, field.nodes, path)
            if isinstance(type_, GraphQLNonNull):
                raise Failed(error) from None
            self.errors.append(error)
            return None

    def _cell(self, field: Field, type_: GraphQLOutputType, cell: Any, path: list[Key]) -> Any:
        if isinstance(cell, Failure):
            raise Failed(cell.error)
        if isinstance(type_, GraphQLNonNull):
            cell = self._cell(field, type_.of_type, cell, path)
            if cell is None:
                raise Failed(TypeError(f"Cannot return null for non-nullable field {name_of(field)}."))
            return cell
        if cell is None:
            return None
        if isinstance(type_, GraphQLList):
            return self._list(field, type_.of_type, cell, path)
        selection = self._selection_of(field, cell)
        return cell if selection is None else self._object(selection, cell, path)

    def _list(self, field: Field, type_: GraphQLOutputType, items: Column, path: list[Key]) -> Column:
        try:
            return [self._nullable(field, type_, item, [*path, index]) for index, item in enumerate(items)]
        except Failed as failed:
            if isinstance(failed.error, IterationError):
                raise Failed(failed.error.error) from None
            raise

    def _selection_of(self, field: Field, cell: Any) -> Selection | None:
        """Return the selection of a row, or None for a leaf."""
        if field.selection is not None:
            return field.selection
        known = self._run.selections.get(id(cell))
        return known[1] if known and known[0] is cell else None
