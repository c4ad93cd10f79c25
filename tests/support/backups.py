"""Backups of an archive in use, with the tools of its database."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url

from tests.support.databases import Server


class Backup:
    """A copy of an archive as it was when the backup was made. `server` is None for SQLite."""

    def __init__(self, archive_url: str, server: Server | None, file: Path) -> None:
        self._database = str(make_url(archive_url).database)
        self._server = server
        self._file = file
        if server is None:
            copy(self._database, self._file)
        else:
            server.back_up(self._database, server.folder / file.name)

    def restore(self) -> None:
        """Replace the archive with the copy."""
        if self._server is None:
            copy(self._file, self._database)
        else:
            self._server.restore(self._database, self._server.folder / self._file.name)


def copy(source: str | Path, target: str | Path) -> None:
    """Copy an SQLite database in use over another one in use, as `.backup` and `.restore` do."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target, timeout=30)) as write:
        read.backup(write)
