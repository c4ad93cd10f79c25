"""The binding of a store and an archive: each stores the id of the other.

The store holds `<store id>:<archive id>` in `{log}:binding`, and the archive holds the store's id. A process refuses to
use an empty store whose archive holds events, or a used store with a different archive. Every append names the binding
that the process has read, so a store that was emptied or rebuilt in the meantime refuses the appends of this process.

A version that changes the format of keys increments `FORMAT`, which is part of the binding: `<store id>:<archive
id>:2`. Its workers write the new binding, and then convert the keys (`graph.worker.conversion`). Processes of earlier
versions refuse to use such a store and cannot append to it, and their workers stop.
"""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import ArchiveState, FoundPosts
from graph.errors import ArchiveUnavailable, StoreNotReady, StoreTooNew, WrongArchive
from graph.model import EPOCH_MS
from graph.pages.shared_reads import SharedReads
from graph.store.commands import script
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

ATTEMPTS = 5
FORMAT = 2
"""The version number of the format of all keys (`graph.keys`). A binding without a format number has format 1."""
EMPTY_STORE = (
    "The store is empty, but the archive belongs to another store and may hold its events. Run `fanline rebuild` to "
    "fill this store from the archive, or configure the store that was used before."
)
OTHER_ARCHIVE = "The store belongs to another archive. Configure the archive that was used before."
OTHER_STORE = (
    "The archive belongs to another store. Configure the store that was used before, or another archive, or fill an "
    "empty store with `fanline rebuild`."
)
UNBOUND_STORE = (
    "The store holds events but names no archive: the key `{log}:binding` was lost. If the archive holds the events, "
    "empty the store and run `fanline rebuild`."
)
REBUILDING = "The store is being rebuilt from the archive. If no `fanline rebuild` is running, run it again."


class Binding:
    """The archive of this process, and the check that it and the store belong together.

    `shared_reads` runs the archive reads whose results several callers share.
    """

    def __init__(self, store: Store, archive: "Archive") -> None:
        self.shared_reads = SharedReads()
        self._store = store
        self._archive = archive
        self._token: str | None = None
        self._archive_id: str | None = None
        self._is_checked = False

    async def token(self) -> str:
        """Return the binding of the store, which every append must name.

        Binds an empty store to an unused archive. One round trip the first time, then none. If the store is bound, the
        archive is not read. Raises StoreNotReady if the store and the archive do not belong together, or the store is
        being rebuilt, StoreUnavailable and ArchiveUnavailable.
        """
        if self._token is None:
            try:
                token = await self._read()
                if token is not None and self._archive_id not in (None, archive_of(token)):
                    raise StoreNotReady(OTHER_ARCHIVE)
                self._token = token or await self.check()
            except WrongArchive as wrong:
                raise StoreNotReady(wrong) from wrong
        return self._token

    async def _read(self) -> str | None:
        token: str | None = await self._store.run("GET", keys.BINDING)
        check_format(token)
        return token

    async def check_format(self) -> None:
        """Raise StoreTooNew if a later version has changed the keys of the store. One round trip."""
        await self._read()

    async def raise_format(self) -> None:
        """Raise the format of the store to that of this version, and record that the store needs a conversion.

        Processes of earlier versions then cannot append. One round trip, or two. Raises StoreTooNew.
        """
        while (token := await self._read()) is not None and format_of(token) < FORMAT:
            new = binding_of(token.partition(":")[0], archive_of(token))
            names = [keys.BINDING, keys.CONVERTING]
            await self._store.run(*script("raise_format").call(names, token, new, format_of(token)))
        if token != self._token:
            self.forget()

    async def store_id(self) -> str:
        """Return the id of the store, after checking the binding. Raises the same errors as `check`."""
        return (await self.check()).partition(":")[0]

    def forget(self) -> None:
        """Forget the binding, because the store has refused it."""
        self._token = None
        self._is_checked = False

    async def check(self, *, again: bool = False) -> str:
        """Check that the store and the archive belong together, and return the binding. Bind them if both are unused.

        Raises WrongArchive, StoreNotReady while the store is being rebuilt, StoreUnavailable and ArchiveUnavailable.
        One round trip and one query until the first success, then none, unless `again` is True.
        """
        if self._is_checked and self._token is not None and not again:
            return self._token
        for _ in range(ATTEMPTS):
            token, rebuild, last = await self._store.send(
                [
                    ("GET", keys.BINDING),
                    ("GET", keys.REBUILD),
                    script("last_number").call([keys.LOG], EPOCH_MS),
                ]
            )
            if rebuild is not None:
                raise StoreNotReady(REBUILDING)
            state = await self._archive.state()
            try:
                check_format(token)
                bound = await self._match(token, int(last), state)
            except WrongArchive:
                self.forget()
                raise
            if bound is not None:
                self._token, self._archive_id, self._is_checked = bound, state.id, True
                return bound
        raise StoreNotReady("The binding of the store keeps changing.")

    async def _match(self, token: str | None, last: int, state: ArchiveState) -> str | None:
        """Return the binding if it is valid, after binding the store and the archive if they are unused.

        Return None if another process has changed the binding in the meantime. Raises WrongArchive.
        """
        if token is None or archive_of(token) != state.id:
            if last:
                raise WrongArchive(UNBOUND_STORE if token is None else OTHER_ARCHIVE)
            if state.store is not None:
                if await self._store.run("GET", keys.BINDING) != token:
                    return None
                raise WrongArchive(EMPTY_STORE)
            new = binding_of(secrets.token_hex(16), state.id)
            bind = script("bind").call([keys.LOG, keys.BINDING, keys.REBUILD], token or "", new)
            if not await self._store.run(*bind):
                return None
            token = new
        store = token.partition(":")[0]
        if state.store is None:
            return token if await self._archive.bind(store, replacing=None, unused_only=False) else None
        if state.store != store:
            raise WrongArchive(OTHER_STORE)
        return token

    async def archive(self) -> "Archive":
        """Return the archive. Raises ArchiveUnavailable if it does not answer or belongs to another store."""
        try:
            await self.check()
        except WrongArchive as wrong:
            raise ArchiveUnavailable(wrong) from wrong
        return self._archive

    async def archived_up_to(self) -> int:
        """Return the archive watermark. One query, which callers share while it runs. Raises ArchiveUnavailable."""
        archive = await self.archive()
        return (await self.shared_reads.read(archive, archive.state)).watermark

    async def look_up(self, ids: Sequence[int]) -> FoundPosts:
        """Return archived posts by id, with the archive watermark. One query. Raises ArchiveUnavailable."""
        return await (await self.archive()).look_up(ids)


def binding_of(store_id: str, archive_id: str) -> str:
    """Return the binding of a store, in the format of this version, and an archive."""
    return ":".join((store_id, archive_id, *([] if FORMAT == 1 else [str(FORMAT)])))


def archive_of(token: str) -> str:
    """Return the id of the archive in a binding."""
    return token.split(":")[1]


def check_format(token: str | None) -> None:
    """Raise StoreTooNew if a binding names a later format than this version knows."""
    if token is not None and format_of(token) > FORMAT:
        raise StoreTooNew(format_of(token), FORMAT)


def format_of(token: str) -> int:
    """Return the format in a binding."""
    _, _, *number = token.split(":")
    return int(number[0]) if number else 1
