"""Ownership: which archive holds the older posts of a store.

Two machines that were each given an archive of their own would lose each other's posts without a word. So the store
remembers the archive that its first post went to, and no process reads from another one.
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
    """The archive of a store, or the lack of one, and whether it is the right one."""

    def __init__(self, store: Store, archive: "Archive | None") -> None:
        self._store = store
        self._archive = archive
        self._owned = False

    async def check(self) -> None:
        """See that the archive is the one that holds this store's older posts, if there are any yet.

        Raises ArchiveUnavailable, also if this process was given none, and WrongArchive. Two trips until it is known.
        """
        if self._owned:
            return
        owner = await self._store.run("GET", keys.ARCHIVE)
        if owner is None:
            return
        if self._archive is None:
            raise ArchiveUnavailable("This process was given no archive, and older posts are in one.")
        if owner != await self._archive.identity():
            raise WrongArchive
        self._owned = True

    async def claim(self) -> None:
        """Note in the store, before the first post goes there, which archive holds its posts. Raises like `check`."""
        if not self._owned and self._archive is not None:
            await self._store.run("SET", keys.ARCHIVE, await self._archive.identity(), "NX")
        await self.check()

    async def look_up(self, ids: Sequence[int]) -> list[Post | None]:
        """Look posts up that the store does not know; without an archive, and if the store has never had one, None.

        One query. Raises ArchiveUnavailable.
        """
        if self._archive is None:
            await self.check()
            return [None for _ in ids]
        return await (await self.archive()).get_many(ids)

    async def archive(self) -> "Archive":
        """Give the archive to read older posts from. Raises ArchiveUnavailable if there is none, or a wrong one."""
        try:
            await self.check()
        except WrongArchive as wrong:
            raise ArchiveUnavailable(wrong) from wrong
        if self._archive is None:
            raise ArchiveUnavailable("This process was given no archive.")
        return self._archive
