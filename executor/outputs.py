"""Outputs: the conversion of a column of raw values into a column of the response, by the type of the field.

An output first collects the Python types of a column's values. If all of them are expected, which is the usual case,
the values are not checked one by one.
"""

import math
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain, islice
from typing import Any

import graphql as core
from graphql.execution import Executor as CoreExecutor
from graphql.execution import default_type_resolver
from graphql.execution.executor import invalid_return_type_error
from graphql.pyutils import Path, Undefined, is_iterable

from .awaitable_columns import AwaitableColumn, has_awaitables, is_async_iterable, is_plain, items_of
from .plan import Column, Field, Output, Paths, Row, Run, Selection

NULL = type(None)
INT_RANGE = 2**31
EXACT: dict[core.GraphQLLeafType, type] = {
    core.GraphQLString: str,
    core.GraphQLID: str,
    core.GraphQLBoolean: bool,
    core.GraphQLInt: int,
    core.GraphQLFloat: float,
}


class Failure:
    """A cell of the response whose value is an error, until `Propagation` replaces it."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def fail(run: Run, error: Exception) -> Failure:
    """Return a failure for an error and mark the run as failed.

    The error is not raised, because several cells may share it and each raise would extend its traceback.
    """
    run.failed = True
    return Failure(error)


class Leaf:
    """Completes scalars and enums. Values that already have the expected Python type are returned unchanged."""

    def __init__(self, type_: core.GraphQLLeafType, *, nullable: bool) -> None:
        self._type = type_
        self._nullable = nullable
        exact = EXACT.get(type_) or getattr(type_.coerce_output_value, "exact", None)
        self._exact = frozenset({exact, NULL} if nullable else {exact}) if exact else frozenset[type]()
        self._check = _CHECKS.get(exact) if exact else None
        self._names: dict[int, tuple[Enum, str]] = {}

    def complete(self, run: Run, values: Column, paths: Paths) -> Column:
        """Return the completed column: see `Output`."""
        kinds = set(map(type, values))
        if kinds <= self._exact and (self._check is None or self._check(values)):
            return values
        if has_awaitables(values, kinds):
            raise AwaitableColumn(values)
        if len(kinds) == 1 and isinstance(self._type, core.GraphQLEnumType):
            return self._member_names(run, values, *kinds)
        return [self._coerce(run, value) for value in values]

    def _member_names(self, run: Run, values: Column, kind: type) -> Column:
        """Return the names of enum members, coercing each member once per plan."""
        if not issubclass(kind, Enum):
            return [self._coerce(run, value) for value in values]
        names = self._names
        for member in {id(value): value for value in values if id(value) not in names}.values():
            name = self._coerce(run, member)
            if isinstance(name, Failure):
                return [self._coerce(run, value) for value in values]
            names[id(member)] = (member, name)
        return [names[id(value)][1] for value in values]

    def _coerce(self, run: Run, value: Any) -> Any:
        if value is None or value is Undefined:
            run.failed |= not self._nullable
            return None
        if isinstance(value, Exception):
            return fail(run, value)
        try:
            return CoreExecutor.complete_leaf_value(self._type, value)
        except Exception as error:
            return fail(run, error)


class List:
    """Completes lists: the items of all lists are completed as one column."""

    def __init__(self, field: Field, item: Output, *, nullable: bool) -> None:
        self._field = field
        self._item = item
        self._nullable = nullable

    def complete(self, run: Run, values: Column, paths: Paths) -> Column:
        """Return the completed column: see `Output`."""
        if len(values) == 1 and type(values[0]) in (list, tuple):
            return [self._complete_only(run, values[0], paths[0] if paths else None)]
        kinds = set(map(type, values))
        if has_awaitables(values, kinds) or any(map(is_async_iterable, kinds)):
            raise AwaitableColumn(values)
        lists = [value if type(value) is list else self._as_list(run, value) for value in values]
        present = [items for items in lists if type(items) is list]
        where = None
        if paths is not None:
            where = [
                path.add_key(index)
                for items, path in zip(lists, paths, strict=True)
                if type(items) is list
                for index in range(len(items))
            ]
        try:
            done = iter(self._item.complete(run, list(chain.from_iterable(present)), where))
        except AwaitableColumn as column:
            raw = [each.error if isinstance(each, Failure) else each for each in lists]
            raise AwaitableColumn(_nest(raw, column.values)) from None
        return _nest(lists, done)

    def _complete_only(self, run: Run, items: Column, path: Path | None) -> Column:
        """Complete a column that consists of one list."""
        paths = None if path is None else [path.add_key(index) for index in range(len(items))]
        try:
            done = self._item.complete(run, items, paths)
        except AwaitableColumn as column:
            raise AwaitableColumn([column.values]) from None
        return list(done) if done is items else done

    def _as_list(self, run: Run, value: Any) -> Any:
        """Return the items of a value, None for a null, or a failure if the value is an error or not iterable."""
        if value is None or value is Undefined:
            run.failed |= not self._nullable
            return None
        if isinstance(value, Exception):
            return fail(run, value)
        if is_iterable(value):
            return items_of(value)
        return fail(
            run, core.GraphQLError(f"Expected Iterable, but did not find one for field '{name_of(self._field)}'.")
        )


class Object:
    """Completes objects of one type. An object that occurs several times in a column becomes one shared row.

    `record` is the one Python class whose instances belong to the type. If it is None, values are checked one by one.
    """

    def __init__(self, field: Field, selection: Selection, record: type | None, *, nullable: bool) -> None:
        self._field = field
        self.selection = selection
        self._record = record
        self._nullable = nullable

    def complete(self, run: Run, values: Column, paths: Paths) -> Column:
        """Return the completed column: see `Output`."""
        if self.accepts_all(values):
            return self._rows(run, values, paths)
        cells, present = self.check_each(run, values, paths)
        if len(present) == len(values):
            return self._rows(run, values, paths)
        rows = self._rows(run, [values[i] for i in present], None if paths is None else [paths[i] for i in present])
        for index, row in zip(present, rows, strict=True):
            cells[index] = row
        return cells

    def accepts_all(self, values: Column) -> bool:
        """Return True if the Python types of the values prove that all of them belong to the type.

        Raises AwaitableColumn if values have to be awaited first.
        """
        kinds = set(map(type, values))
        if len(kinds) == 1 and self._record in kinds:
            return True
        if has_awaitables(values, kinds):
            raise AwaitableColumn(values)
        return self._record is None and self.selection.type.is_type_of is None and all(map(is_plain, kinds))

    def check_each(self, run: Run, values: Column, paths: Paths) -> tuple[Column, list[int]]:
        """Check values one by one. Return a column of cells, and the indexes of the values that belong to the type.

        The cells hold the nulls and failures; the cells of values that belong to the type are still None.
        """
        cells: Column = [None] * len(values)
        present = []
        for index, value in enumerate(values):
            if value is None or value is Undefined:
                run.failed |= not self._nullable
            elif error := self._type_error(run, value, paths[index] if paths else None):
                cells[index] = fail(run, error)
            else:
                present.append(index)
        return cells, present

    def _type_error(self, run: Run, value: Any, path: Path | None) -> Exception | None:
        if isinstance(value, Exception):
            return value
        return type_error(run, self._field, self.selection.type, self._record, value, path)

    def _rows(self, run: Run, parents: Column, paths: Paths) -> list[Row]:
        return shared_rows(run, self.selection, parents, paths)


class Abstract:
    """Completes objects of an interface or a union, grouped by their types.

    `records` maps each Python class that determines the object type of its instances to that type. `select` plans the
    selection of an object type when its first value occurs.
    """

    def __init__(
        self,
        field: Field,
        type_: core.GraphQLAbstractType,
        records: dict[type, core.GraphQLObjectType],
        select: Callable[[core.GraphQLObjectType], Selection],
        *,
        nullable: bool,
    ) -> None:
        self._field = field
        self._type = type_
        self._records = records
        self._select = select
        self._nullable = nullable
        self._selections: dict[str, Selection] = {}
        self._planned: dict[type, str] = {}  # type names by class in `records`, once planned

    def complete(self, run: Run, values: Column, paths: Paths) -> Column:
        """Return the completed column: see `Output`."""
        if has_awaitables(values, set(map(type, values))):
            raise AwaitableColumn(values)
        cells: Column = [None] * len(values)
        groups: dict[str, list[int]] = {}
        for index, value in enumerate(values):
            name = self._planned.get(type(value))
            if name is None:
                if value is None or value is Undefined:
                    run.failed |= not self._nullable
                    continue
                if isinstance(value, Exception):
                    cells[index] = fail(run, value)
                    continue
                try:
                    name = self._type_of(run, value, paths[index] if paths else None).name
                except Exception as error:
                    cells[index] = fail(run, error)
                    continue
            groups.setdefault(name, []).append(index)
        for name, members in groups.items():
            selection = self._selections[name]
            where = None if paths is None else [paths[index] for index in members]
            for index, row in zip(
                members, shared_rows(run, selection, [values[i] for i in members], where), strict=True
            ):
                cells[index] = row
                run.selections[id(row)] = (row, selection)
        return cells

    def _type_of(self, run: Run, value: Any, path: Path | None) -> core.GraphQLObjectType:
        record = self._records.get(type(value))
        found = record or self._resolve_type(run, value, path)
        if found.name not in self._selections:
            self._selections[found.name] = self._select(found)
        if record is not None:
            self._planned[type(value)] = record.name
        return found

    def _resolve_type(self, run: Run, value: Any, path: Path | None) -> core.GraphQLObjectType:
        field = self._field
        info = run.info(field, path or Path(None, field.key, field.parent_type.name))
        name = (self._type.resolve_type or default_type_resolver)(value, info, self._type)
        found = run.core.ensure_valid_runtime_type(name, self._type, field.details, info, value)
        if error := type_error(run, field, found, None, value, path):
            raise error
        return found


def name_of(field: Field) -> str:
    """Return a field's parent type and name, such as `User.followersCount`, for error messages."""
    return f"{field.parent_type}.{field.nodes[0].name.value}"


def type_error(
    run: Run, field: Field, type_: core.GraphQLObjectType, record: type | None, value: Any, path: Path | None
) -> Exception | None:
    """Return None if a value belongs to an object type, otherwise an error."""
    if record is not None:
        return None if type(value) is record else invalid_return_type_error(type_, value, field.details)
    if type_.is_type_of is None:
        return None
    try:
        accepted = type_.is_type_of(value, run.info(field, path or Path(None, field.key, field.parent_type.name)))
    except Exception as error:
        return error
    return None if accepted else invalid_return_type_error(type_, value, field.details)


def shared_rows(run: Run, selection: Selection, parents: Column, paths: Paths) -> list[Row]:
    """Return the row of each parent. Unless paths are needed, a parent that occurs several times has one shared row."""
    if selection.needs_paths or len(parents) == 1:
        return run.select(selection, parents, paths)
    distinct = {id(parent): parent for parent in parents}
    if len(distinct) == len(parents):
        return run.select(selection, parents, None)
    rows = dict(zip(distinct, run.select(selection, list(distinct.values()), None), strict=True))
    return [rows[id(parent)] for parent in parents]


def _nest(lists: Column, items: Iterable[Any]) -> Column:
    """Return a column of lists with their items replaced, in order, by the items of a flat column.

    Cells that are not lists stay as they are.
    """
    rest = iter(items)
    return [list(islice(rest, len(each))) if type(each) is list else each for each in lists]


def _in_range(values: Column) -> bool:
    numbers = [value for value in values if value is not None]
    return not numbers or (min(numbers) >= -INT_RANGE and max(numbers) < INT_RANGE)


def _finite(values: Column) -> bool:
    return all(math.isfinite(value) for value in values if value is not None)


_CHECKS: dict[type, Callable[[Column], bool]] = {int: _in_range, float: _finite}
