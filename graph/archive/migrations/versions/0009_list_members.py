"""Create the table of list members, and fill it from list events.

The watermark is renamed, so that running archivers of earlier versions can no longer write: the members that they add
would be missing from the table. The rename comes first, so that no list event is archived after the migration has read
the list events.

Every step can be repeated, because MySQL commits each step separately and a crash can leave some steps done.
"""

from collections.abc import Iterator

import orjson
import sqlalchemy as sa
from alembic import op

from graph.archive.migrations.watermark import rename_watermark

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
MEMBERS = {"ListCreated": "members", "ListChanged": "added"}
EVENTS_AT_ONCE = 1000


def upgrade() -> None:
    """Rename the column, create the table, and fill it."""
    rename_watermark("public_upto", "members_upto")
    op.create_table(
        "list_members",
        sa.Column("member", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        if_not_exists=True,
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    op.execute("DELETE FROM list_members")
    for kind in MEMBERS:
        for rows in pages(kind):
            if rows:
                op.bulk_insert(sa.table("list_members", sa.column("member"), sa.column("number")), rows)


def pages(kind: str) -> Iterator[list[dict[str, int]]]:
    """Yield the rows of `list_members` for the events of a kind, 1,000 events at a time."""
    events = sa.table("events", sa.column("number"), sa.column("kind"), sa.column("body"))
    query = sa.select(events.c.number, events.c.body).where(events.c.kind == kind)
    after = 0
    while True:
        page = query.where(events.c.number > after).order_by(events.c.number).limit(EVENTS_AT_ONCE)
        found = op.get_bind().execute(page).all()
        if not found:
            return
        yield [{"member": user, "number": number} for number, body in found for user in members(kind, body)]
        after = found[-1].number


def members(kind: str, body: str | None) -> list[int]:
    """Return the users whom an event adds to a list. A damaged event adds nobody."""
    try:
        return [int(user) for user in dict.fromkeys(orjson.loads(body or "{}").get(MEMBERS[kind], ()))]
    except (AttributeError, TypeError, ValueError):
        return []
