"""The statements of the documentation run on an archive."""

from pathlib import Path

from sqlalchemy import text

from graph.archive.archive import Archive
from graph.archive.rows import SUSPENSION, EventRow
from graph.model import MAX_NUMBER
from tests.docs.blocks import claim
from tests.graph.archive.events import append

[LEFT_TO_MOVE] = claim(__name__, "sql", page="docs/operations.md")


async def test_the_moves_that_are_left_are_listed(tmp_path: Path) -> None:
    """After a suspension has just been archived, all posts of the author have to be moved."""
    archive = Archive(f"sqlite:///{tmp_path}/archive.sqlite")
    try:
        await archive.migrate()
        await append(archive, EventRow(7, SUSPENSION, 1, None, "{}"))
        async with archive.database.engine.connect() as connection:
            rows = [tuple(row) for row in await connection.execute(text(LEFT_TO_MOVE.text.strip().rstrip(";")))]
    finally:
        await archive.close()
    assert rows == [(1, 1, MAX_NUMBER + 1)]
