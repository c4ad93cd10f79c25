"""Create the tables of the index of users by name. They are filled in the background.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    """Create the tables of users and of their codes."""
    op.create_table(
        "search_names",
        sa.Column("user", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("login", sa.String(64), nullable=False),
        sa.Column("codes", sa.LargeBinary(), nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "search_name_codes",
        sa.Column("code", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("user", NUMBER, primary_key=True, autoincrement=False),
        if_not_exists=True,
        sqlite_with_rowid=False,
        **OPTIONS,
    )
