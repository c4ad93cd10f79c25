"""The archive's tables, as the migrations create them."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text, text
from sqlalchemy.dialects import mysql

from graph.post_lists import LIST_COLUMNS

metadata = MetaData()
NUMBER = BigInteger().with_variant(Integer(), "sqlite")
BINARY = LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql")


def list_index(column: str) -> Index:
    """Return the index for the lists of one kind: a partial index of their posts if the database supports that."""
    live = text(f"{column} IS NOT NULL")
    return Index(f"events_by_{column}", column, "number", sqlite_where=live, postgresql_where=live)


EVENTS = Table(
    "events",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String(32), nullable=False),
    Column("actor", NUMBER, nullable=False),
    Column("subject", NUMBER),
    Column("body", Text().with_variant(mysql.MEDIUMTEXT(), "mysql")),
    Column("ended", NUMBER),
    Column("listed_by", NUMBER),
    Column("replied_by", NUMBER),
    Column("reply_to", NUMBER),
    Column("repost_of", NUMBER),
    Index("events_by_actor", "actor", "kind", "number"),
    Index("events_by_subject", "subject", "kind", "number"),
    Index("events_by_pair", "subject", "actor", "number"),
    Index("events_by_kind", "kind", "number"),
    *(list_index(name) for name in LIST_COLUMNS),
)
CREDENTIALS = Table(
    "credentials",
    metadata,
    Column("user", NUMBER, primary_key=True, autoincrement=False),
    Column("login", String(64), nullable=False),
    Column("hash", Text()),
    Column("number", NUMBER, nullable=False),
    Index("credentials_by_login", "login", unique=True),
)
STATE = Table(
    "archive_state",
    metadata,
    Column("only", Integer(), primary_key=True, autoincrement=False),
    Column("id", String(64), nullable=False),
    Column("store", String(64)),
    Column("quotes_upto", NUMBER, key="watermark", nullable=False),
    Column("note", Text()),
    Column("reposts_after", NUMBER),
)
"""Plain reposts with numbers above `reposts_after` may be in the column of quotes (`graph.archive.reposts`). Null means
that there are none."""
SEGMENTS = Table(
    "search_segments",
    metadata,
    Column("first", NUMBER, primary_key=True, autoincrement=False),
    Column("last", NUMBER, nullable=False),
    Column("posts", BINARY, nullable=False),
)
GAPS = Table(
    "search_gaps",
    metadata,
    Column("first", NUMBER, primary_key=True, autoincrement=False),
    Column("last", NUMBER, nullable=False),
)
TERMS = Table(
    "search_terms",
    metadata,
    Column("code", Integer(), primary_key=True, autoincrement=False),
    Column("segment", NUMBER, primary_key=True, autoincrement=False),
    Column("places", BINARY, nullable=False),
    sqlite_with_rowid=False,
)
NOTIFICATIONS = Table(
    "notifications",
    metadata,
    Column("subject", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", NUMBER, primary_key=True, autoincrement=False),
    Column("recipient", NUMBER, primary_key=True, autoincrement=False),
    Column("number", NUMBER, nullable=False),
    Index("notifications_by_recipient", "recipient", "number"),
    sqlite_with_rowid=False,
)
"""The groups of all users, each with the number of its newest event, for a rebuild: events have no index by recipient.
A row of kind 0 holds the number up to which a user has read the notifications."""
LIST_MEMBERS = Table(
    "list_members",
    metadata,
    Column("member", NUMBER, primary_key=True, autoincrement=False),
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
"""The events that added each user to a list, for the erasure of the user: events have no index by member."""
NAMES = Table(
    "search_names",
    metadata,
    Column("user", NUMBER, primary_key=True, autoincrement=False),
    Column("number", NUMBER, nullable=False),
    Column("login", String(64), nullable=False),
    Column("codes", LargeBinary(), nullable=False),
)
NAME_CODES = Table(
    "search_name_codes",
    metadata,
    Column("code", Integer(), primary_key=True, autoincrement=False),
    Column("user", NUMBER, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
PUBLIC_POSTS = Table(
    "public_posts",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("author", NUMBER, nullable=False),
    Index("public_posts_by_author", "author", "number"),
)
PUBLIC_MOVES = Table(
    "public_moves",
    metadata,
    Column("author", NUMBER, primary_key=True, autoincrement=False),
    Column("number", NUMBER, nullable=False),
    Column("suspended", Integer(), nullable=False),
    Column("rest", NUMBER, nullable=False),
    Index("public_moves_by_rest", "rest"),
)
"""The newest decision about the suspension of each author, with its number, and how far the author's posts have moved
out of `public_posts` or back: posts below `rest` have not been moved, and a finished move has `rest` 0. Author 0 stands
for all authors: the posts below its `rest` have not been filled in yet."""
