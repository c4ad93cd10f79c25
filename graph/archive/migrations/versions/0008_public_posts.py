"""Create the tables of the public timeline, which are filled in the background, and record who is suspended.

The watermark is renamed, so that running archivers of earlier versions can no longer write: their posts would be
missing from the table. The rename comes first, so that no suspension is archived after the migration has read the
earlier ones.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

from graph.archive.migrations.watermark import rename_watermark

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
INDEXES = (
    ("public_posts", "public_posts_by_author", ["author", "number"]),
    ("public_moves", "public_moves_by_rest", ["rest"]),
)
SUSPENDED, UNSUSPENDED = "UserSuspended", "UserUnsuspended"


def upgrade() -> None:
    """Rename the column, create the tables, and record the newest decision about each user and the range to fill."""
    rename_watermark("archived_upto", "public_upto")
    op.create_table(
        "public_posts",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("author", NUMBER, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    op.create_table(
        "public_moves",
        sa.Column("author", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("suspended", sa.Integer(), nullable=False),
        sa.Column("rest", NUMBER, nullable=False),
        if_not_exists=True,
        **OPTIONS,
    )
    for table, name, columns in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns)
    note_progress()


def note_progress() -> None:
    """Record the newest decision about each user's suspension, and the range that is to be filled."""
    op.execute("DELETE FROM public_moves")
    newest = f"""
        SELECT actor, max(number) AS number FROM events
        WHERE kind IN ('{SUSPENDED}', '{UNSUSPENDED}') AND body IS NOT NULL GROUP BY actor
    """  # noqa: S608 - no part comes from outside
    op.execute(
        f"""
        INSERT INTO public_moves (author, number, suspended, rest)
        SELECT events.actor, events.number, CASE WHEN events.kind = '{SUSPENDED}' THEN 1 ELSE 0 END, 0
        FROM ({newest}) AS newest JOIN events ON events.number = newest.number
        """  # noqa: S608 - no part comes from outside
    )
    held = "CASE WHEN EXISTS (SELECT 1 FROM events) THEN public_upto + 1 ELSE 0 END"
    op.execute(
        "INSERT INTO public_moves (author, number, suspended, rest) "  # noqa: S608 - no part comes from outside
        f"SELECT 0, 0, 0, {held} FROM archive_state"
    )
