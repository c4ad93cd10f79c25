"""Create the tables of events and credentials, and the state of the archive.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
INDEXES = {
    "events_by_actor": ["actor", "kind", "number"],
    "events_by_subject": ["subject", "kind", "number"],
    "events_by_pair": ["subject", "actor", "number"],
    "events_by_kind": ["kind", "number"],
}


def upgrade() -> None:
    """Create the tables, their indexes and, unless it exists, the identity of the archive."""
    _create_tables()
    connection = op.get_bind()
    for name, columns in INDEXES.items():
        if name not in _indexes(connection, "events"):
            op.create_index(name, "events", columns)
    if "credentials_by_login" not in _indexes(connection, "credentials"):
        op.create_index("credentials_by_login", "credentials", ["login"], unique=True)
    state = sa.table("archive_state", sa.column("only"), sa.column("id"), sa.column("watermark"))
    if connection.scalar(sa.select(state.c.id)) is None:
        connection.execute(state.insert().values(only=1, id=secrets.token_hex(16), watermark=0))


def _create_tables() -> None:
    op.create_table(
        "events",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("actor", NUMBER, nullable=False),
        sa.Column("subject", NUMBER),
        sa.Column("body", TEXT),
        sa.Column("ended", NUMBER),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "credentials",
        sa.Column("user", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("login", sa.String(64), nullable=False),
        sa.Column("hash", sa.Text()),
        sa.Column("number", NUMBER, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "archive_state",
        sa.Column("only", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("store", sa.String(64)),
        sa.Column("watermark", NUMBER, nullable=False),
        sa.Column("note", sa.Text()),
        if_not_exists=True,
        **OPTIONS,
    )


def _indexes(connection: sa.Connection, table: str) -> set[str | None]:
    return {index["name"] for index in sa.inspect(connection).get_indexes(table)}
