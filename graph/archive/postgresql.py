"""The statements for PostgreSQL that take arrays: the insert, and the queries that must use one particular index.

PostgreSQL has no hints. If all conditions were equalities, it would estimate the same cost for the index (kind, number)
as for the right one on a table without statistics, and scan the posts of all authors. Row comparisons, such as `(kind,
number) > (...)`, make a scan of (kind, number) look expensive: PostgreSQL estimates that a range with two bounds
contains a ninth of the events.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Insert,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    TextClause,
    bindparam,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from graph.archive.rows import POST
from graph.archive.statements import ListScan
from graph.post_lists import LIST_COLUMNS, TIMELINE, PostList

POST_KIND = f"'{POST}'"
NUMBERS: ARRAY[Any] = ARRAY(BigInteger)
TEXTS: ARRAY[Any] = ARRAY(String)
EVENT = "SELECT number, kind, actor, subject, body FROM events"
ASKED = "unnest(:owners, :lows, :highs, :limits) WITH ORDINALITY AS asked(owner, low, high, most, place)"

IN_INDEX_ORDER = text("SELECT set_config('enable_sort', 'off', true)")
"""Makes the rest of the transaction read in index order. Without statistics, PostgreSQL would read and sort the whole
range for each page."""


@cache
def insert_arrays(table: Table, names: tuple[str, ...]) -> Insert:
    """Return the statement that inserts rows from one array per column.

    This takes the server half as long as one execution per row. The array types of texts have no length limit: with
    one, PostgreSQL would silently truncate a text instead of refusing the row.
    """
    return insert(table).from_select(names, array_rows(table, names))


def array_rows(table: Table, names: tuple[str, ...]) -> Select[Any]:
    """Return the statement that selects rows from one array per column of a table."""
    types = [_array_of(table.c[name].type) for name in names]
    arrays = [bindparam(name, type_=type_) for name, type_ in zip(names, types, strict=True)]
    rows = func.unnest(*arrays).table_valued(*names, name="new").render_derived()
    return select(*[rows.c[name] for name in names])


def _array_of(type_: TypeEngine[Any]) -> ARRAY[Any]:
    if isinstance(type_, BigInteger):
        return NUMBERS
    return ARRAY(type_) if isinstance(type_, Integer | LargeBinary) else TEXTS


@lru_cache(maxsize=2)
def post_numbers(forward: bool) -> TextClause:
    """Return the statement for the first `count` posts of all authors between `low` and `high`."""
    order = "DESC" if forward else "ASC"
    within = f"(kind, number) > ({POST_KIND}, :low) AND (kind, number) < ({POST_KIND}, :high)"
    ordered = f"ORDER BY kind {order}, number {order} LIMIT :count"
    return text(f"SELECT number FROM events WHERE {within} {ordered}")  # noqa: S608 - no part comes from outside


@lru_cache(maxsize=2)
def segments_of_codes(forward: bool) -> TextClause:
    """Return the statement for the first `count` segments of each search index code, as (position of code, segment)."""
    statement = f"""
        SELECT asked.place - 1, scan.segment
        FROM unnest(:codes) WITH ORDINALITY AS asked(code, place)
        CROSS JOIN LATERAL (
            SELECT segment FROM search_terms
            WHERE code = asked.code AND segment > :low AND segment < :high
            ORDER BY segment {"DESC" if forward else "ASC"} LIMIT :count
        ) AS scan
    """  # noqa: S608 - no part comes from outside
    return text(statement).bindparams(bindparam("codes", type_=ARRAY(Integer)))


@lru_cache(maxsize=8)
def first_events(owner: str, forward: bool) -> TextClause:
    """Return the statement for the first `count` events of these owners and kinds between `low` and `high`.

    `owner` is `actor` or `subject`. One limited index scan per owner and kind.
    """
    order = "DESC" if forward else "ASC"
    statement = f"""
        SELECT event.number, event.kind, event.actor, event.subject, event.body
        FROM (
            SELECT scan.number
            FROM unnest(:owners) AS owned(owner)
            CROSS JOIN unnest(:kinds) AS sort(kind)
            CROSS JOIN LATERAL ({_scan(owner, "owned.owner", "sort.kind", ":low", ":high", order)} LIMIT :count) AS scan
            ORDER BY scan.number {order} LIMIT :count
        ) AS first
        CROSS JOIN LATERAL ({EVENT} WHERE number = first.number OFFSET 0) AS event
        ORDER BY event.number {order}
    """  # noqa: S608 - no part comes from outside
    return text(statement).bindparams(bindparam("owners", type_=NUMBERS), bindparam("kinds", type_=ARRAY(String)))


@lru_cache(maxsize=2)
def merged(forward: bool) -> TextClause:
    """Return the statement for the first `count` posts of the timelines of `owners` between `low` and `high`."""
    order = "DESC" if forward else "ASC"
    scan = _list_scan(TIMELINE, "owned.owner", ":low", ":high", order)
    statement = f"""
        SELECT event.number, event.kind, event.actor, event.subject, event.body
        FROM (
            SELECT scan.number
            FROM unnest(:owners) AS owned(owner)
            CROSS JOIN LATERAL ({scan} LIMIT :count) AS scan
            ORDER BY scan.number {order} LIMIT :count
        ) AS first
        CROSS JOIN LATERAL ({EVENT} WHERE number = first.number OFFSET 0) AS event
        ORDER BY event.number {order}
    """  # noqa: S608 - no part comes from outside
    return text(statement).bindparams(bindparam("owners", type_=NUMBERS))


@lru_cache(maxsize=16)
def slices(forward: bool, post_list: PostList) -> TextClause:
    """Return the statement for limited scans of the lists of one kind.

    Each row begins with its scan's position.
    """
    scan = _list_scan(post_list, "asked.owner", "asked.low", "asked.high", "DESC" if forward else "ASC")
    statement = f"""
        SELECT asked.place - 1, event.number, event.kind, event.actor, event.subject, event.body
        FROM {ASKED}
        CROSS JOIN LATERAL ({scan} LIMIT asked.most) AS scan
        CROSS JOIN LATERAL ({EVENT} WHERE number = scan.number OFFSET 0) AS event
    """  # noqa: S608 - no part comes from outside
    return _per_owner(statement)


@lru_cache(maxsize=2)
def counts(owner: str, kind: str) -> TextClause:
    """Return the statement that counts each owner's events of one kind, as (position of owner, count)."""
    scan = _scan(owner, "asked.owner", f"'{kind}'", "asked.low", "asked.high")
    return _per_owner(f"SELECT asked.place - 1, (SELECT count(*) FROM ({scan}) AS scan) FROM {ASKED}")  # noqa: S608


@lru_cache(maxsize=8)
def post_counts(post_list: PostList) -> TextClause:
    """Return the statement that counts the posts of lists of one kind, as (position of owner, count)."""
    scan = _list_scan(post_list, "asked.owner", "asked.low", "asked.high")
    return _per_owner(f"SELECT asked.place - 1, (SELECT count(*) FROM ({scan}) AS scan) FROM {ASKED}")  # noqa: S608


@lru_cache(maxsize=8)
def post_ids(post_list: PostList) -> TextClause:
    """Return the statement for the ids of the posts in a list between two numbers, both exclusive."""
    return text(_list_scan(post_list, ":owner", ":low", ":high"))


def scan_parameters(scans: Sequence[ListScan]) -> dict[str, list[int]]:
    """Return the parameters of index scans: an array for each field of `ListScan`."""
    columns = zip(*scans, strict=True)
    return {f"{name}s": list(values) for name, values in zip(ListScan._fields, columns, strict=True)}


def _scan(column: str, owner: str, kind: str, low: str, high: str, order: str | None = None) -> str:
    """Return the SQL of a scan of the index (column, kind, number) between two numbers, both exclusive."""
    within = f"{column} = {owner} AND (kind, number) > ({kind}, {low}) AND (kind, number) < ({kind}, {high})"
    ordered = f" ORDER BY kind {order}, number {order}" if order else ""
    return f"SELECT number FROM events WHERE {within}{ordered}"  # noqa: S608 - no part comes from outside


def _list_scan(post_list: PostList, owner: str, low: str, high: str, order: str | None = None) -> str:
    """Return the SQL of a scan of an owner's list between two numbers, both exclusive, in the index (column, number).

    For a column that is not used only for lists, the index is (column, kind, number).
    """
    column = post_list.column
    if column not in LIST_COLUMNS:
        return _scan(column, owner, f"'{post_list.kind}'", low, high, order)
    within = f"({column}, number) > ({owner}, {low}) AND ({column}, number) < ({owner}, {high})"
    within += f" AND {column} IS NOT NULL" + ("" if post_list.kind is None else f" AND kind || '' = '{post_list.kind}'")
    ordered = f" ORDER BY {column} {order}, number {order}" if order else ""
    return f"SELECT number FROM events WHERE {within}{ordered}"  # noqa: S608 - no part comes from outside


def _per_owner(statement: str) -> TextClause:
    return text(statement).bindparams(*(bindparam(f"{name}s", type_=NUMBERS) for name in ListScan._fields))
