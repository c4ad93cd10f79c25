"""What an operation will do: selections of fields, each with a source of values and an output that completes them.

A *column* holds one value for each parent, in their order. A field's source makes the raw column for all parents
of a selection at once; its output makes the column of the response from it. A *row* is the response object of one
parent, and has a cell for each field of the selection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from graphql import FieldNode, GraphQLField, GraphQLObjectType, GraphQLOutputType, OperationDefinitionNode
from graphql.execution.collect_fields import FieldDetailsList, FragmentDetails
from graphql.pyutils import Path

if TYPE_CHECKING:
    from executor.run import Run

Column: TypeAlias = list[Any]
Row: TypeAlias = dict[str, Any]
Paths: TypeAlias = Sequence[Path] | None
RowMaker: TypeAlias = Callable[[Sequence[Column]], list[Row]]


class Source(Protocol):
    """Where a field's values come from. `lone` says that there is one parent, and the value comes without a list."""

    lone: bool

    def values(self, run: "Run", field: "Field", parents: Sequence[Any], paths: Paths) -> Any:
        """Give a column of raw values, or an awaitable of one; a value may be an exception."""
        ...


class Output(Protocol):
    """How raw values become what the response holds."""

    def complete(self, run: "Run", values: Column, paths: Paths) -> Column:
        """Complete a column. Failures are cells too; `run.failed` tells that there are some, or misplaced nulls.

        Raises Unsettled if values have to be awaited first.
        """
        ...


@dataclass(slots=True, eq=False)
class Field:
    """One field of a selection: all nodes of the document that ask for it under one key."""

    key: str
    details: FieldDetailsList
    definition: GraphQLField
    parent_type: GraphQLObjectType
    source: Source
    output: Output = dataclass_field(init=False)
    ahead: "Ahead | None" = None
    selection: "Selection | None" = None
    early: bool = False

    @property
    def type(self) -> GraphQLOutputType:
        """The type of the field, as the schema has it."""
        return self.definition.type

    @property
    def nodes(self) -> list[FieldNode]:
        """The nodes that an error of the field points to."""
        return [detail.node for detail in self.details]


@dataclass(slots=True, eq=False)
class Ahead:
    """What of a field's selection can begin before the field's own values are there.

    `references` gives a stand-in for each value, or nothing at all. Fields that need no more are `early`.
    """

    references: Callable[["Run", Sequence[Any]], Sequence[Any] | None]
    selection: "Selection"


@dataclass(slots=True, eq=False)
class Selection:
    """The fields asked for of objects of one type.

    `located`: somebody beneath wants to know paths, so that a parent that stands at two places cannot be shared.
    """

    type: GraphQLObjectType
    fields: list[Field]
    located: bool = False
    make_rows: RowMaker = dataclass_field(init=False)

    def __post_init__(self) -> None:
        self.make_rows = row_maker(tuple(each.key for each in self.fields))


@dataclass(slots=True, eq=False)
class Plan:
    """How one operation of a document is executed, for one choice of what `@skip` and `@include` leave in.

    A mutation has `parts`, one for each root field, which run one after another.
    """

    operation: OperationDefinitionNode
    fragments: dict[str, FragmentDetails]
    root: Selection
    parts: list[Selection]


def row_maker(keys: tuple[str, ...]) -> RowMaker:
    """Make a function from columns to rows: one comprehension, which builds a dictionary faster than any loop.

    Keys are names of GraphQL, which have nothing in them that could be code.
    """
    if not keys:
        return lambda columns: []
    names = [f"cell_{index}" for index in range(len(keys))]
    cells = ", ".join(f"{key!r}: {name}" for key, name in zip(keys, names, strict=True))
    loop = f"for {names[0]} in columns[0]" if len(keys) == 1 else f"for {', '.join(names)} in zip(*columns)"
    maker: RowMaker = eval(f"lambda columns: [{{{cells}}} {loop}]", {"zip": zip})  # noqa: S307 - names only
    return maker
