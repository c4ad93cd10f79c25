"""The file of an SQLite archive while processes use it: it must stay the same file, and not become shorter.

An open connection keeps a deleted or replaced file, so it would go on without an error, and what it writes would be
lost. It also keeps pages of a truncated file in memory, and notices nothing until it needs another page.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class SqliteFile:
    """Compares a file with what it was when the archive was opened."""

    path: Path
    _identity: tuple[int, int] | None = None
    _size: int = 0

    def remember(self) -> None:
        """Begin to watch the file as it is now."""
        state = self.path.stat()
        self._identity, self._size = (state.st_dev, state.st_ino), state.st_size

    def problem(self) -> str | None:
        """Return what happened to the file that is watched, None if nothing did. One `stat`."""
        if self._identity is None:
            return None
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return "its file was deleted. Restore a backup"
        except OSError as error:
            return f"its file cannot be read: {error.strerror}"
        if (state.st_dev, state.st_ino) != self._identity:
            return "its file was replaced"
        if state.st_size < self._size:
            return "its file became shorter. If nobody vacuumed it, restore a backup"
        self._size = state.st_size
        return None
