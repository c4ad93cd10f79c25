"""Detects when the file of an SQLite archive is deleted, replaced or truncated while processes are using it.

An open connection continues to use a deleted or replaced file without an error, so everything that it writes would be
lost. It also keeps pages of a truncated file in memory, and does not notice the truncation until it needs another page.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class SqliteFile:
    """Compares a file with its state when the archive was opened."""

    path: Path
    _identity: tuple[int, int] | None = None
    _size: int = 0

    def remember(self) -> None:
        """Record the identity and the size of the file, for comparison."""
        state = self.path.stat()
        self._identity, self._size = (state.st_dev, state.st_ino), state.st_size

    def problem(self) -> str | None:
        """Return a description of what has happened to the file, or None if it is intact. One `stat` call."""
        if self._identity is None:
            return None
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return "its file was deleted. Restore a backup"
        except OSError as error:
            return f"its file cannot be read: {error.strerror}"
        if (state.st_dev, state.st_ino) != self._identity:
            return "its file was replaced. If the new one is not a backup, restore a backup"
        if state.st_size < self._size:
            return "its file has shrunk. Unless it was vacuumed, restore a backup"
        self._size = state.st_size
        return None
