"""The reservation of a store for a rebuild.

The key `{log}:rebuild` holds `<store id>:<archive id>` from the beginning of a rebuild to its end. Meanwhile the store
has no binding, so that every append is refused. Each rebuild gives the store a new id and binds the archive to it, so
that archivers of the former store, and an earlier rebuild that is still running, cannot commit anything.
"""

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import ArchiveState
from graph.binding import archive_of, binding_of
from graph.errors import RebuildRefused
from graph.log.numbers import entry_id
from graph.model import EPOCH_MS
from graph.store.commands import script
from graph.store.store import Store
from graph.worker.consumer import GROUP

if TYPE_CHECKING:
    from graph.archive.archive import Archive

KEYS_PER_COMMAND = 1000
NOT_EMPTY = (
    "The store is not empty: it holds {}. A rebuild needs an empty store. Configure an empty store, or delete all keys "
    "of this one; the embedded store is the folder `store` in the data folder."
)
OTHER_ARCHIVE = (
    "The store holds an unfinished rebuild from another archive. Configure that archive, or delete all keys of this "
    "store."
)
REPLACED = "Another process has begun to rebuild the store, or has bound the archive to another store."


@dataclass(frozen=True, slots=True)
class Reservation:
    """A store that is reserved for a rebuild: its new id, and the id of the archive."""

    store_id: str
    archive_id: str

    @property
    def binding(self) -> str:
        """The value of `{log}:rebuild` and, in the end, of `{log}:binding`."""
        return binding_of(self.store_id, self.archive_id)


async def reserve(store: Store, archive: "Archive", *, unused_only: bool = False) -> Reservation:
    """Reserve an empty store, delete what an unfinished rebuild has written, and bind the archive to the store.

    With `unused_only`, the archive must not hold events. If this raises RebuildRefused, neither store nor archive has
    changed, unless another process has interfered. Four round trips, one more per 1,000 keys in the store, and two
    queries.
    """
    state = await archive.state()
    await check(store, state)
    reservation = Reservation(secrets.token_hex(16), state.id)
    begin = script("begin_fill").call([keys.LOG, keys.BINDING, keys.REBUILD], reservation.binding, state.id)
    if await store.run(*begin) in ("used", "other"):
        raise RebuildRefused(REPLACED)
    if not await archive.bind(reservation.store_id, replacing=state.store, unused_only=unused_only):
        raise RebuildRefused(REPLACED)
    await delete_derived(store)
    return reservation


async def check(store: Store, state: ArchiveState) -> None:
    """Raise RebuildRefused unless the store is empty or holds an unfinished rebuild from this archive."""
    unfinished, last = await store.send([("GET", keys.REBUILD), script("last_number").call([keys.LOG], EPOCH_MS)])
    if int(last):
        raise RebuildRefused(NOT_EMPTY.format("events"))
    if unfinished is None:
        async for found in store.scan("*"):
            if used := next((name for name in found if name.startswith(keys.CONTENT)), None):
                raise RebuildRefused(NOT_EMPTY.format(f"the key {used}"))
    elif archive_of(unfinished) != state.id:
        raise RebuildRefused(OTHER_ARCHIVE)


async def delete_derived(store: Store, prefixes: tuple[str, ...] = keys.DERIVED) -> None:
    """Delete the keys with these prefixes. One or two round trips for every 1,000 keys in the store."""
    async for found in store.scan("*"):
        names = [name for name in found if name.startswith(prefixes)]
        await store.send([("UNLINK", *group) for group in store.together(names, str, KEYS_PER_COMMAND)])


async def confirm(store: Store, archive: "Archive", reservation: Reservation) -> int:
    """Return the archive watermark, if the store is still reserved. Raises RebuildRefused otherwise."""
    if await store.run("GET", keys.REBUILD) != reservation.binding:
        raise RebuildRefused(REPLACED)
    state = await archive.state()
    if (state.store, state.id) != (reservation.store_id, reservation.archive_id):
        raise RebuildRefused(REPLACED)
    return state.watermark


async def complete(store: Store, archive: "Archive", reservation: Reservation) -> None:
    """Delete home caches that were built in the meantime, set the positions of the log, and bind the store.

    Raises RebuildRefused if another rebuild has taken over.
    """
    await delete_derived(store, (keys.HOMES,))
    watermark = await confirm(store, archive, reservation)
    end = script("end_fill").call(
        [keys.LOG, keys.BINDING, keys.REBUILD, keys.WATERMARK, keys.ARCHIVED, keys.TRIMMED],
        reservation.binding,
        watermark,
        entry_id(watermark),
        GROUP,
    )
    if not await store.run(*end):
        raise RebuildRefused(REPLACED)
