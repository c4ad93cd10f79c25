"""The file of an SQLite archive is deleted, replaced or truncated while a process uses it."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from graph.archive.archive import Archive
from tests.graph.archive.events import append, post
from tests.graph.archive.test_database import eventually, unavailable


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("deleted", "its file was deleted"),
        ("emptied", "its file has shrunk"),
        ("cut", "its file has shrunk"),
        ("replaced by another file", "its file was replaced"),
    ],
)
async def test_a_file_that_vanishes_is_noticed(
    tmp_path: Path, opened: Callable[..., Archive], how: str, reason: str
) -> None:
    """The file is not created again, and nothing is written to the former one. A restored backup is used at once."""
    file = tmp_path / "archive.sqlite"
    archive = opened(f"sqlite:///{file}")
    await append(archive, *(post(number, 1, "text" * 200) for number in range(1, 100)))
    with closing(sqlite3.connect(file)) as backup, closing(sqlite3.connect(tmp_path / "backup.sqlite")) as copy:
        backup.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        backup.backup(copy)
    state = await archive.state()

    match how:
        case "deleted":
            file.unlink()
        case "emptied":
            os.truncate(file, 0)
        case "cut":
            os.truncate(file, file.stat().st_size // 2)
        case _:
            (tmp_path / "empty").touch()
            (tmp_path / "empty").rename(file)

    assert reason in await unavailable(archive)
    for _ in range(3):
        assert await unavailable(archive)
    assert not file.exists() or not tables_of(file) or how == "cut"

    for name in ("archive.sqlite", "archive.sqlite-wal", "archive.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "backup.sqlite").rename(file)
    await eventually(archive.state)
    assert await archive.state() == state
    await append(archive, post(200))
    assert await archive.post_ids(1, 0, 300) == {*range(1, 100), 200}


def tables_of(file: Path) -> list[str]:
    """Return the names of the tables in an SQLite file; none if it cannot be read."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as other, suppress(sqlite3.DatabaseError):
        return [name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return []
