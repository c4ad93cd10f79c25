"""Add columns to the events table for the owners of post lists: timelines, replies and reposts.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LIST_COLUMNS = ("listed_by", "replied_by", "reply_to", "repost_of")


def upgrade() -> None:
    """Add the columns, list the existing posts (none of which are replies or reposts), and create indexes."""
    connection = op.get_bind()
    held = {column["name"] for column in sa.inspect(connection).get_columns("events")}
    for name in LIST_COLUMNS:
        if name not in held:
            op.add_column("events", sa.Column(name, NUMBER))
    connection.execute(
        sa.text("UPDATE events SET listed_by = actor WHERE kind = 'PostPublished' AND listed_by IS NULL")
    )
    indexes = {index["name"] for index in sa.inspect(connection).get_indexes("events")}
    for name in LIST_COLUMNS:
        if f"events_by_{name}" not in indexes:
            live = sa.text(f"{name} IS NOT NULL")
            op.create_index(f"events_by_{name}", "events", [name, "number"], sqlite_where=live, postgresql_where=live)
