"""Create the tables of the search index of posts. They are filled in the background.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BINARY = sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    """Create the tables of segments, of gaps between them, and of terms."""
    op.create_table(
        "search_segments",
        sa.Column("first", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("last", NUMBER, nullable=False),
        sa.Column("posts", BINARY, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "search_gaps",
        sa.Column("first", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("last", NUMBER, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "search_terms",
        sa.Column("code", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("segment", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("places", BINARY, nullable=False),
        if_not_exists=True,
        sqlite_with_rowid=False,
        **OPTIONS,
    )
