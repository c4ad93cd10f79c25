"""The archive's tables, and the statements that differ between databases.

The statements force a scan of the index (author, id) per author and read ids first, then the rows. Without that,
optimizers choose a full table scan even for a few authors, because `id` is the primary key and the sort order.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    UnaryExpression,
    bindparam,
    column,
    func,
    literal_column,
    select,
    text,
    true,
    union_all,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.selectable import Subquery

MAX_UNION_TERMS = 256  # SQLite allows 500
MAX_LIST_LENGTH = 900  # from 1,000 on, MariaDB turns the list into a table and scans all posts of each author
NO_AUTHOR = -1

metadata = MetaData()
NUMBER = BigInteger().with_variant(Integer(), "sqlite")
IDENTITY = Table(
    "fanline_identity",
    metadata,
    Column("only", Integer(), primary_key=True, autoincrement=False),
    Column("id", String(64), nullable=False),
)
FLOORS = Table(
    "fanline_floors",
    metadata,
    Column("author", NUMBER, primary_key=True, autoincrement=False),
    Column("moved", NUMBER, nullable=False),
    Column("freed", NUMBER, nullable=False),
)
POSTS = Table(
    "fanline_posts",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=False),
    Column("author", NUMBER, nullable=False),
    Column("text", Text().with_variant(mysql.MEDIUMTEXT(), "mysql"), nullable=False),
    Column("platform", String(255)),
    Column("latitude", Double()),
    Column("longitude", Double()),
    Index("fanline_posts_author", "author", "id"),
)


def page_order(ids: ColumnElement[int], forward: bool) -> UnaryExpression[int]:
    """Return the sort order for the direction of paging."""
    return ids.desc() if forward else ids.asc()


def in_window() -> ColumnElement[bool]:
    """Return the condition that ids lie between the parameters `low` and `high`, both exclusive."""
    return (POSTS.c.id > bindparam("low")) & (POSTS.c.id < bindparam("high"))


def merged_by_list(authors: Collection[int], forward: bool) -> Select[Any]:
    """Return the merge statement for SQLite: one index scan per author, each stopped early.

    Without INDEXED BY, SQLite scans the table for long lists of authors.
    """
    id, author = column("id", NUMBER), column("author", NUMBER)
    ids = select(id).select_from(text("fanline_posts INDEXED BY fanline_posts_author"))
    within = ids.where(author.in_(authors), id > bindparam("low"), id < bindparam("high"))
    return _rows(within.order_by(page_order(id, forward)).limit(bindparam("count")), forward)


def merged_by_lateral(authors: Collection[int], forward: bool) -> Select[Any]:
    """Return the merge statement for PostgreSQL: a limited index scan per author."""
    array = bindparam("authors", list(authors), postgresql.ARRAY(BigInteger))
    each = func.unnest(array).table_valued("author", name="asked").render_derived()
    order = page_order(POSTS.c.id, forward)
    scan = select(POSTS.c.id).where(POSTS.c.author == each.c.author, in_window()).order_by(order)
    scans = scan.limit(bindparam("count")).lateral()
    first = select(scans.c.id).select_from(each.join(scans, true()))
    return _rows(first.order_by(page_order(scans.c.id, forward)).limit(bindparam("count")), forward)


@lru_cache(maxsize=64)
def merged_by_union(terms: int, forward: bool) -> Select[Any]:
    """Return the merge statement for MySQL and MariaDB: a union of limited index scans, one per author."""
    ids = index_scans(terms, forward)
    return _rows(select(ids.c.id).order_by(page_order(ids.c.id, forward)).limit(bindparam("count")), forward)


def _rows(ids: Select[Any], forward: bool) -> Select[Any]:
    """Return the statement that reads the rows of the selected ids, in the direction of paging."""
    chosen = ids.subquery()
    return select(POSTS).join(chosen, chosen.c.id == POSTS.c.id).order_by(page_order(POSTS.c.id, forward))


def leading_authors(authors: Sequence[int], forward: bool) -> Select[Any]:
    """Return the statement that selects the `count` authors whose posts can be in the window, for MySQL and MariaDB.

    They are the authors whose first posts come first. The databases find them with a loose index scan.
    """
    first = (func.max if forward else func.min)(POSTS.c.id).label("first")
    parts = [
        select(POSTS.c.author, first).where(POSTS.c.author.in_(authors[at : at + MAX_LIST_LENGTH]), in_window())
        for at in range(0, len(authors), MAX_LIST_LENGTH)
    ]
    every = union_all(*(part.group_by(POSTS.c.author) for part in parts)).subquery()
    return select(every.c.author).order_by(page_order(every.c.first, forward)).limit(bindparam("count"))


@lru_cache(maxsize=64)
def slices(terms: int, forward: bool) -> Select[Any]:
    """Return the statement for `terms` index scans; each row begins with the position of its scan.

    `scan_parameters` builds its parameters.
    """
    ids = index_scans(terms, forward)
    return select(ids.c.position, POSTS).join(ids, ids.c.id == POSTS.c.id)


def index_scans(terms: int, forward: bool) -> Subquery:
    """Return a subquery with (position, id) of `terms` limited index scans."""
    parts = []
    for position in range(terms):
        within = (POSTS.c.id > bindparam(f"low{position}")) & (POSTS.c.id < bindparam(f"high{position}"))
        scan = select(POSTS.c.id).where(POSTS.c.author == bindparam(f"author{position}"), within)
        limited = scan.order_by(page_order(POSTS.c.id, forward)).limit(bindparam(f"count{position}")).subquery()
        parts.append(select(literal_column(str(position)).label("position"), limited.c.id))
    return union_all(*parts).subquery()


def terms_for(reads: int) -> int:
    """Return the number of scans rounded up to a power of two, so that few different statements are prepared."""
    return min(MAX_UNION_TERMS, 1 << (reads - 1).bit_length())


def scan_parameters(reads: Sequence[tuple[int, int, int, int]], terms: int) -> dict[str, int]:
    """Return the parameters of index scans: author, low, high and count of each. Surplus scans find nothing."""
    padded = [*reads, *[(NO_AUTHOR, 0, 0, 0)] * (terms - len(reads))]
    names = ("author", "low", "high", "count")
    return {f"{name}{at}": value for at, read in enumerate(padded) for name, value in zip(names, read, strict=True)}


def insert_new(dialect: str, table: Table) -> Insert:
    """Return the statement that inserts rows, except those whose primary key exists."""
    if dialect == "mysql":  # INSERT IGNORE would also ignore invalid values
        [key] = table.primary_key.columns
        return mysql.insert(table).on_duplicate_key_update({key.name: key})
    new = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return new.on_conflict_do_nothing()
