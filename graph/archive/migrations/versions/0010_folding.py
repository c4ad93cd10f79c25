"""Rebuild the search indexes: folding now strips accents from words and unifies all Turkish forms of I.

The index of posts is emptied and filled again in the background; meanwhile, searches read posts one by one. The names
of users stay in their index and are replaced in the background, so names without accents can still be found.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

POSTS = ("search_terms", "search_segments", "search_gaps")
NAMES = sa.table("search_names", sa.column("user"), sa.column("number"))
PROGRESS = 0


def upgrade() -> None:
    """Empty the index of posts, and reset the event number of each name and the progress of the index of names."""
    for table in POSTS:
        op.execute(sa.delete(sa.table(table)))
    op.execute(sa.update(NAMES).where(NAMES.c.user != PROGRESS).values(number=0))
    op.execute(sa.delete(NAMES).where(NAMES.c.user == PROGRESS))
