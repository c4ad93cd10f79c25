"""Create the tables for the archive's identity, the authors' floors, and the posts.

Every step can be repeated, because MySQL commits each step by itself and a crash can leave some steps done.
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


def upgrade() -> None:
    """Create the tables and, unless it exists, the identity."""
    op.create_table(
        "fanline_identity",
        sa.Column("only", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(64), nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "fanline_floors",
        sa.Column("author", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("moved", NUMBER, nullable=False),
        sa.Column("freed", NUMBER, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "fanline_posts",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("author", NUMBER, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("platform", sa.String(255)),
        sa.Column("latitude", sa.Double()),
        sa.Column("longitude", sa.Double()),
        if_not_exists=True,
        **OPTIONS,
    )
    connection = op.get_bind()
    if "fanline_posts_author" not in {index["name"] for index in sa.inspect(connection).get_indexes("fanline_posts")}:
        op.create_index("fanline_posts_author", "fanline_posts", ["author", "id"])
    identity = sa.table("fanline_identity", sa.column("only"), sa.column("id"))
    if connection.scalar(sa.select(identity.c.id)) is None:
        connection.execute(identity.insert().values(only=1, id=secrets.token_hex(16)))
