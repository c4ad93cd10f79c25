"""Empty the search indexes, because words are folded in another way: without accents, and with one letter I of Turkish.

They are filled again in the background, as after the upgrade from a version without them; searches are right meanwhile.

Every step can be repeated, because MySQL commits each step by itself and a crash can leave some steps done.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLES = ("search_terms", "search_segments", "search_gaps", "search_name_codes", "search_names")


def upgrade() -> None:
    """Empty the tables."""
    for table in TABLES:
        op.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
