"""Rename the archive watermark, so that running archivers of earlier versions can no longer write.

They would archive posts without their lists, and redact posts without removing them from lists: such posts would be
missing from pages, or break them. These archivers now fail and give up the lease to a newer process. Look-ups of
archived posts fail in processes of earlier versions until the processes are replaced.

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
