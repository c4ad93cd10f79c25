"""Schedule the removal of plain reposts from the column of quotes, which happens in the background.

Quotes have a list of their own. Plain reposts are found by their subject; earlier versions also recorded their original
in the column `repost_of`, which is now for quotes only.

The watermark is renamed, so that running archivers of earlier versions can no longer write: they would count quotes as
reposts. The rename comes first, so that no repost is archived in the old way after the removal is scheduled.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

from graph.archive.migrations.watermark import NUMBER, TABLE, rename_watermark

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMN = "reposts_after"


def upgrade() -> None:
    """Rename the watermark, add the column of the progress, and set it to 0 if there are events."""
    rename_watermark("members_upto", "quotes_upto")
    if COLUMN not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(TABLE)}:
        op.add_column(TABLE, sa.Column(COLUMN, NUMBER))
    state = sa.table(TABLE, sa.column("quotes_upto"), sa.column(COLUMN))
    op.execute(sa.update(state).where(state.c.quotes_upto > 0).values({COLUMN: 0}))
