"""The archive's tables, and those of its statements that take care to be fast in every database.

What is to be avoided is a walk through the table, however few authors are asked for: optimizers fall for it, because
`id` is the primary key and the order asked for. So each author's newest posts are read along the index
(author, id), where they lie together in order, and only ids are gathered before the rows are fetched.
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

TERMS = 256  # of a union; SQLite allows 500
MEMBERS = 900  # of a list; from 1000 on, MariaDB makes a table of it and walks whole authors
NOBODY = -1

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


def newest_first(ids: ColumnElement[int], forward: bool) -> UnaryExpression[int]:
    """Order in the direction of paging."""
    return ids.desc() if forward else ids.asc()


def between() -> ColumnElement[bool]:
    """Bound the ids by the parameters `low` and `high`, both exclusive."""
    return (POSTS.c.id > bindparam("low")) & (POSTS.c.id < bindparam("high"))


def merged_by_list(authors: Collection[int], forward: bool) -> Select[Any]:
    """Merge for SQLite: it walks the index once for each author, and leaves each walk when no row can count.

    Unless told to, it walks the table for long lists, though it has to read all of it if they wrote little.
    """
    id, author = column("id", NUMBER), column("author", NUMBER)
    walks = select(id).select_from(text("fanline_posts INDEXED BY fanline_posts_author"))
    within = walks.where(author.in_(authors), id > bindparam("low"), id < bindparam("high"))
    return _rows(within.order_by(newest_first(id, forward)).limit(bindparam("count")), forward)


def merged_by_lateral(authors: Collection[int], forward: bool) -> Select[Any]:
    """Merge for PostgreSQL: a limited walk along the index for each author."""
    array = bindparam("authors", list(authors), postgresql.ARRAY(BigInteger))
    each = func.unnest(array).table_valued("author", name="asked").render_derived()
    order = newest_first(POSTS.c.id, forward)
    walk = select(POSTS.c.id).where(POSTS.c.author == each.c.author, between()).order_by(order)
    walks = walk.limit(bindparam("count")).lateral()
    first = select(walks.c.id).select_from(each.join(walks, true()))
    return _rows(first.order_by(newest_first(walks.c.id, forward)).limit(bindparam("count")), forward)


@lru_cache(maxsize=64)
def merged_by_union(terms: int, forward: bool) -> Select[Any]:
    """Merge for MySQL and MariaDB: a limited walk along the index for each author, all in one union."""
    ids = walks(terms, forward)
    return _rows(select(ids.c.id).order_by(newest_first(ids.c.id, forward)).limit(bindparam("count")), forward)


def _rows(ids: Select[Any], forward: bool) -> Select[Any]:
    """Fetch the rows of some ids, in the direction of paging."""
    chosen = ids.subquery()
    return select(POSTS).join(chosen, chosen.c.id == POSTS.c.id).order_by(newest_first(POSTS.c.id, forward))


def leading_authors(authors: Sequence[int], forward: bool) -> Select[Any]:
    """Choose `count` authors whose first post is first: nobody else's can be among the first `count` posts.

    For MySQL and MariaDB, which then skip through the index from author to author.
    """
    first = (func.max if forward else func.min)(POSTS.c.id).label("first")
    parts = [
        select(POSTS.c.author, first).where(POSTS.c.author.in_(authors[at : at + MEMBERS]), between())
        for at in range(0, len(authors), MEMBERS)
    ]
    every = union_all(*(part.group_by(POSTS.c.author) for part in parts)).subquery()
    return select(every.c.author).order_by(newest_first(every.c.first, forward)).limit(bindparam("count"))


@lru_cache(maxsize=64)
def slices(terms: int, forward: bool) -> Select[Any]:
    """Read limited walks, each row with the place of its walk; the parameters are those of `walk_parameters`."""
    ids = walks(terms, forward)
    return select(ids.c.place, POSTS).join(ids, ids.c.id == POSTS.c.id)


def walks(terms: int, forward: bool) -> Subquery:
    """Gather (place, id) of limited walks along the index, one a place."""
    parts = []
    for place in range(terms):
        within = (POSTS.c.id > bindparam(f"low{place}")) & (POSTS.c.id < bindparam(f"high{place}"))
        walk = select(POSTS.c.id).where(POSTS.c.author == bindparam(f"author{place}"), within)
        limited = walk.order_by(newest_first(POSTS.c.id, forward)).limit(bindparam(f"count{place}")).subquery()
        parts.append(select(literal_column(str(place)).label("place"), limited.c.id))
    return union_all(*parts).subquery()


def terms_for(reads: int) -> int:
    """Round a number of walks up, so that few different statements have to be prepared."""
    return min(TERMS, 1 << (reads - 1).bit_length())


def walk_parameters(reads: Sequence[tuple[int, int, int, int]], terms: int) -> dict[str, int]:
    """Give the parameters of walks: author, low, high and count of each; those too many find nothing."""
    padded = [*reads, *[(NOBODY, 0, 0, 0)] * (terms - len(reads))]
    names = ("author", "low", "high", "count")
    return {f"{name}{at}": value for at, read in enumerate(padded) for name, value in zip(names, read, strict=True)}


def insert_new(dialect: str, table: Table) -> Insert:
    """Insert rows, but leave those alone whose primary key is there."""
    if dialect == "mysql":  # INSERT IGNORE would also ignore what is wrong with a row
        [key] = table.primary_key.columns
        return mysql.insert(table).on_duplicate_key_update({key.name: key})
    new = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return new.on_conflict_do_nothing()
