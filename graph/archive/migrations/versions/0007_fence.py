"""Rename the archive watermark, so that running archivers of earlier versions can no longer write.

Those archivers would archive posts without adding them to lists, and redact posts without removing them from lists: the
posts would be missing from pages, or break the pages. Instead, the archivers now fail and give up the lease to a newer
process. Until they are replaced, processes of earlier versions cannot look up archived posts.

The step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

from graph.archive.migrations.watermark import rename_watermark

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    rename_watermark("watermark", "archived_upto")
