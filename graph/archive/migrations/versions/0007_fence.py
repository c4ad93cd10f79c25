"""Rename the archive watermark, so that archivers of earlier versions that still run cannot write any more.

They would archive posts without their lists, and redact posts that stay in lists: such posts would be missing from
pages, or break them. Their archivers fail and give up the lease to a newer process, and their look-ups of archived
posts fail until they are replaced.

The step can be repeated, because MySQL commits each step by itself and a crash can leave some steps done.
"""

from graph.archive.migrations.watermark import rename_watermark

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    rename_watermark("watermark", "archived_upto")
