"""The last pass over a response in which anything failed: errors get their paths, and nulls go up.

It walks the rows in the order of the document and does what the specification says of null in a non-null place, so
that its outcome is what depth-first execution would have given. Rows that are shared, because one parent stands at
several places, are walked once for each place. Nothing of this costs a run in which nothing failed.
"""

import math
from typing import Any

from graphql import GraphQLError, GraphQLList, GraphQLNonNull, GraphQLOutputType
from graphql.error import located_error

from executor.outputs import Failure, place
from executor.plan import Column, Field, Row, Selection
from executor.run import Run
from executor.settling import BrokenOff

Key = str | int


class Failed(Exception):
    """Carries an error up. The error itself is not raised: it may stand at many places, and remembers each raising."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Propagation:
    """Turns rows into a response. `errors` are in the order of the document, the first `max_errors` of them."""

    def __init__(self, run: Run, max_errors: int | None = None) -> None:
        self._run = run
        self._max_errors = math.inf if max_errors is None else max_errors
        self.errors: list[GraphQLError] = []

    def data(self, selection: Selection, row: Row) -> dict[str, Any] | None:
        """Give the data of an operation; None if a null went up to its root."""
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
        """Complete the cell at a place; what fails there is null there, unless it must go up."""
        try:
            return self._cell(field, type_, cell, path)
        except Failed as failed:
            if isinstance(failed.error, BrokenOff):
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
                raise Failed(TypeError(f"Cannot return null for non-nullable field {place(field)}."))
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
            if isinstance(failed.error, BrokenOff):
                raise Failed(failed.error.error) from None
            raise

    def _selection_of(self, field: Field, cell: Any) -> Selection | None:
        """Find what was selected of a row; None for a leaf."""
        if field.selection is not None:
            return field.selection
        known = self._run.selections.get(id(cell))
        return known[1] if known and known[0] is cell else None
