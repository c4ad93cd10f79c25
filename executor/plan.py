"""Plans: selections of fields, each with a source of raw values and an output that completes them.

A column holds one value for each parent, in the order of the parents. A source returns the raw column of a field for
all parents of a selection; an output turns it into the column of the response. A row is the response object of one
parent, with a cell for each field of the selection.

`Run` is the interface of a running plan that sources and outputs use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Protocol, TypeAlias

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    OperationDefinitionNode,
)
from graphql.execution import Executor as CoreExecutor
from graphql.execution.collect_fields import FieldDetailsList, FragmentDetails
from graphql.execution.values import VariableValues
from graphql.pyutils import Path

Column: TypeAlias = list[Any]
Row: TypeAlias = dict[str, Any]
Paths: TypeAlias = Sequence[Path] | None
RowMaker: TypeAlias = Callable[[Sequence[Column]], list[Row]]

COMPILED_FROM = 100  # rows of a selection


class Run(Protocol):
    """The execution of a plan.

    `failed` is True if a row holds a failure or a null that must be propagated. `arguments` caches the coerced
    arguments of this run. `selections` maps the `id()` of each row whose type is known only at run time to the row and
    its selection.
    """

    context: Any
    variables: VariableValues
    failed: bool
    arguments: dict[Any, Mapping[str, Any]]
    selections: dict[int, "tuple[Row, Selection]"]

    def select(self, selection: "Selection", parents: Sequence[Any], paths: Paths) -> list[Row]:
        """Start all fields of a selection and return a row for each parent. Cells of a row may be filled in later."""
        ...

    def info(self, field: "Field", path: Path) -> "GraphQLResolveInfo[Any]":
        """Return the `info` argument of an ordinary resolver."""
        ...

    @property
    def core(self) -> "CoreExecutor[Any]":
        """graphql-core's executor for the same operation."""
        ...


class Source(Protocol):
    """The origin of a field's values. If `is_root_value` is True, the source returns one value instead of a column."""

    is_root_value: bool

    def values(self, run: Run, field: "Field", parents: Sequence[Any], paths: Paths) -> Any:
        """Return a column of raw values, or an awaitable of one. A value may be an exception."""
        ...


class Output(Protocol):
    """The conversion of raw values into values of the response."""

    def complete(self, run: Run, values: Column, paths: Paths) -> Column:
        """Return the completed column, with failures as cells. Set `run.failed` if nulls or errors must propagate.

        Raises AwaitableColumn if values have to be awaited first.
        """
        ...


@dataclass(slots=True, eq=False)
class Field:
    """One field of a selection: all nodes of the document with the same response key.

    `needs_only_reference` is True if a reference to the parent is enough to resolve the field. `is_independent` is
    False if the values may depend on the context; then `together` may be a resolver for several contexts.
    """

    key: str
    details: FieldDetailsList
    definition: GraphQLField
    parent_type: GraphQLObjectType
    source: Source
    output: Output = dataclass_field(init=False)
    prefetch: "Prefetch | None" = None
    selection: "Selection | None" = None
    needs_only_reference: bool = False
    is_independent: bool = True
    together: Callable[..., Any] | None = None

    @property
    def type(self) -> GraphQLOutputType:
        """The type of the field in the schema."""
        return self.definition.type

    @property
    def coordinate(self) -> str:
        """The schema coordinate of the field, such as `User.followersCount`."""
        return f"{self.parent_type.name}.{self.details[0].node.name.value}"

    @property
    def nodes(self) -> list[FieldNode]:
        """The nodes that an error of the field refers to."""
        return [detail.node for detail in self.details]


@dataclass(slots=True, eq=False)
class Prefetch:
    """The fields of a selection that can start before the parents are loaded, using references to the parents.

    `references(run, parents)` returns one reference (or None) for each parent, or None if there are no references.
    """

    references: Callable[[Run, Sequence[Any]], Sequence[Any] | None]
    selection: "Selection"


@dataclass(slots=True, eq=False)
class Selection:
    """The fields selected from objects of one type.

    `needs_paths` is True if a field, or any field below it, needs its path. A parent at two paths then has two rows.
    """

    type: GraphQLObjectType
    fields: list[Field]
    needs_paths: bool = False
    make_rows: RowMaker = dataclass_field(init=False)

    def __post_init__(self) -> None:
        self.make_rows = Rows(tuple(each.key for each in self.fields))


@dataclass(slots=True, eq=False)
class Plan:
    """The plan of one operation, for one combination of `@skip` and `@include` conditions.

    A mutation has `parts`, one for each root field, which are executed one after another.
    """

    operation: OperationDefinitionNode
    fragments: dict[str, FragmentDetails]
    root: Selection
    parts: list[Selection]


@dataclass(frozen=True, slots=True)
class Fallback:
    """The reason why graphql-core must execute the operation, in place of a plan."""

    reason: str


class Rows:
    """Turns the columns of a selection into rows.

    After `COMPILED_FROM` rows it compiles a comprehension with dictionary displays. This is faster than a loop, but
    compiling costs as much as making a hundred rows. Keys are GraphQL names, so they cannot contain code.
    """

    __slots__ = ("_compiled", "_keys", "_made")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._made = 0
        self._compiled: RowMaker | None = None

    def __call__(self, columns: Sequence[Column]) -> list[Row]:
        """Return a row for each index of the columns. There must be one column for each key, and at least one."""
        if self._compiled is not None:
            return self._compiled(columns)
        keys = self._keys
        rows = [dict(zip(keys, cells, strict=True)) for cells in zip(*columns, strict=True)]
        self._made += len(rows)
        if self._made >= COMPILED_FROM:
            self._compiled = compile_rows(keys)
        return rows


def compile_rows(keys: tuple[str, ...]) -> RowMaker:
    """Compile and return a function that turns columns into rows with these keys."""
    names = [f"cell_{index}" for index in range(len(keys))]
    cells = ", ".join(f"{key!r}: {name}" for key, name in zip(keys, names, strict=True))
    loop = f"for {names[0]} in columns[0]" if len(keys) == 1 else f"for {', '.join(names)} in zip(*columns)"
    maker: RowMaker = eval(f"lambda columns: [{{{cells}}} {loop}]", {"zip": zip})  # noqa: S307 - names only
    return maker
