"""The archive's tables. The migrations create them."""

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects import mysql

metadata = MetaData()
NUMBER = BigInteger().with_variant(Integer(), "sqlite")

EVENTS = Table(
    "events",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", String(32), nullable=False),
    Column("actor", NUMBER, nullable=False),
    Column("subject", NUMBER),
    Column("body", Text().with_variant(mysql.MEDIUMTEXT(), "mysql")),
    Column("ended", NUMBER),
    Index("events_by_actor", "actor", "kind", "number"),
    Index("events_by_subject", "subject", "kind", "number"),
    Index("events_by_pair", "subject", "actor", "number"),
    Index("events_by_kind", "kind", "number"),
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
    Column("watermark", NUMBER, nullable=False),
    Column("note", Text()),
)
