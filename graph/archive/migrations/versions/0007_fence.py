"""Rename the archive watermark, so that archivers of version 0.1.0 that still run cannot write any more.

They would archive posts without their lists, and redact posts that stay in lists: such posts would be missing from
pages, or break them. Their archivers fail and give up the lease to a newer process, and their look-ups of archived
posts fail until they are replaced.

The step can be repeated, because MySQL commits each step by itself and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Rename the column."""
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("archive_state")}
    if "watermark" not in columns:
        return
    if op.get_bind().dialect.name == "mysql":  # MariaDB before 10.5 needs the type, too
        op.alter_column(
            "archive_state", "watermark", new_column_name="archived_upto", existing_type=NUMBER, existing_nullable=False
        )
    else:
        op.execute("ALTER TABLE archive_state RENAME COLUMN watermark TO archived_upto")
