"""The lease that makes one of several archivers the active one."""

import secrets

from graph import keys
from graph.store.commands import script
from graph.store.store import Store

LEASE_MS = 10_000


class Lease:
    """The lease of one process. The process renews the lease by taking it again.

    The lease only avoids duplicate work: two active archivers are safe, but the work of one would be wasted.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = secrets.token_hex(8)
        self.is_held = False

    async def take(self) -> bool:
        """Take or renew the lease. Return True if this process holds it. One round trip."""
        call = script("hold_lease").call([keys.ARCHIVER], self._holder, LEASE_MS)
        self.is_held = bool(await self._store.run(*call))
        return self.is_held

    async def give_up(self) -> None:
        """Give up the lease if this process holds it, so that another process can take it at once. One round trip."""
        if self.is_held:
            self.is_held = False
            await self._store.run(*script("delete_if_equal").call([keys.ARCHIVER], self._holder))
