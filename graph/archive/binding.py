"""The archive binding: the check that a process uses the archive that holds the older posts of its store.

If two processes moved posts of one store to different archives, each would miss the posts of the other. The store
keeps the identity of the archive that received its first post, and every process compares it with its own archive.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph import keys
from graph.errors import ArchiveUnavailable, WrongArchive
from graph.model import Post
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive


class ArchiveBinding:
    """The archive of this process, if any, and the check that it belongs to the store."""

    def __init__(self, store: Store, archive: "Archive | None") -> None:
        self._store = store
        self._archive = archive
        self._checked = False

    async def check(self) -> None:
        """Check that this process's archive holds the store's older posts, if there are any.

        Raises ArchiveUnavailable if the archive does not answer or none is configured, and WrongArchive. One round trip
        and one query until the first success, then none.
        """
        if self._checked:
            return
        identity = await self._store.run("GET", keys.ARCHIVE)
        if identity is None:
            return
        if self._archive is None:
            raise ArchiveUnavailable("The store's older posts are in an archive, but no archive is configured.")
        if identity != await self._archive.identity():
            raise WrongArchive
        self._checked = True

    async def claim(self) -> None:
        """Write the archive's identity to the store, unless it has one, then check it. Raises like `check`.

        Must be called before the first post is moved to the archive.
        """
        if not self._checked and self._archive is not None:
            await self._store.run("SET", keys.ARCHIVE, await self._archive.identity(), "NX")
        await self.check()

    async def look_up(self, ids: Sequence[int]) -> list[Post | None]:
        """Return the archived posts with these ids, None for each missing one. One query.

        Return only None if no archive is configured and the store has never had one. Raises ArchiveUnavailable.
        """
        if self._archive is None:
            await self.check()
            return [None for _ in ids]
        return await (await self.archive()).get_many(ids)

    async def archive(self) -> "Archive":
        """Return the archive. Raises ArchiveUnavailable if none is configured or it belongs to another store."""
        try:
            await self.check()
        except WrongArchive as wrong:
            raise ArchiveUnavailable(wrong) from wrong
        if self._archive is None:
            raise ArchiveUnavailable("No archive is configured.")
        return self._archive
