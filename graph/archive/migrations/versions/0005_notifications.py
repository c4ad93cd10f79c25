"""Create the table of notifications.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
INDEX = "notifications_by_recipient"


def upgrade() -> None:
    """Create the table and its index. Earlier events caused no notifications."""
    op.create_table(
        "notifications",
        sa.Column("subject", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("recipient", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("number", NUMBER, nullable=False),
        if_not_exists=True,
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    if INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("notifications")}:
        op.create_index(INDEX, "notifications", ["recipient", "number"])
