"""Mutes and blocks: who mutes or blocks whom, and the viewer's own lists of both."""

from graph import keys
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected
from graph.log.events import Blocked, Unblocked
from graph.log.log import Log
from graph.model import Follow, Page
from graph.pages.user_pages import user_pages
from graph.paging import Window
from graph.people.pair_changes import PairChanges
from graph.relations.mutes import MUTES
from graph.relations.pair_sets import PairSet
from graph.store.store import Store
from graph.visibility.suspensions import existence, exists
from graph.visibility.views import Visibility

BLOCKS = PairSet("block", Blocked, Unblocked, keys.blocking)
"""The pair set of the blocker. Requests need no other; `graph.relations.follows_and_blocks` has the sets of both users.
"""


class Blocks:
    """The mutes and blocks of users. A user can mute at most `max_blocked` others, and block at most as many."""

    def __init__(self, store: Store, log: Log, commit: Commit, visibility: Visibility, max_blocked: int) -> None:
        self._store = store
        self._visibility = visibility
        self._max_blocked = max_blocked
        self._mutes, self._blocks = (
            PairChanges(store, log, commit, pair_set, max_blocked, self._refuse) for pair_set in (MUTES, BLOCKS)
        )

    async def mute(self, viewer: int, user: int) -> None:
        """Mute a user. Raises Rejected (NOT_FOUND, INVALID, TOO_MANY). Three round trips, more for a repetition.

        Concurrent calls may exceed the limit together.
        """
        await self._change(self._mutes, viewer, user, begin=True)

    async def unmute(self, viewer: int, user: int) -> None:
        """Unmute a user. Raises Rejected (NOT_FOUND, INVALID). Three round trips, more for a repetition."""
        await self._change(self._mutes, viewer, user, begin=False)

    async def block(self, viewer: int, user: int) -> None:
        """Block a user, which ends the follows between the two. Raises the same errors as `mute`. Five round trips."""
        await self._change(self._blocks, viewer, user, begin=True)

    async def unblock(self, viewer: int, user: int) -> None:
        """Unblock a user. No follow is restored. Raises the same errors as `unmute`. Five round trips."""
        await self._change(self._blocks, viewer, user, begin=False)

    async def _change(self, changes: PairChanges, viewer: int, user: int, *, begin: bool) -> None:
        if user == viewer:
            raise Rejected.because(ProblemCode.INVALID, "Users cannot mute or block themselves.", "userId")
        *rows, row = await self._store.read([*changes.reads(viewer, str(user)), existence(user)])
        if not exists(row):
            raise Rejected.because(ProblemCode.NOT_FOUND, "This user does not exist.", "userId")
        await changes.change(viewer, str(user), rows, begin=begin)

    async def _refuse(self, _viewer: int) -> None:
        limit = self._max_blocked
        message = f"You can mute at most {limit:,} users and block at most {limit:,}. Unmute or unblock one first."
        raise Rejected.because(ProblemCode.TOO_MANY, message, "userId", max=limit, length=limit + 1)

    async def muted(self, viewer: int, window: Window) -> Page[Follow]:
        """Return a page of the users whom the viewer mutes, newest mute first. One round trip."""
        return (await user_pages(self._store, self._visibility.of(None), keys.muting, [viewer], window))[0]

    async def blocked(self, viewer: int, window: Window) -> Page[Follow]:
        """Return a page of the users whom the viewer blocks, newest block first. One round trip."""
        return (await user_pages(self._store, self._visibility.of(None), keys.blocking, [viewer], window))[0]
