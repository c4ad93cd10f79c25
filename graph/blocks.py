"""Mutes and blocks: who mutes or blocks whom, and the viewer's own lists of both.

A change that changes nothing appends no event. Whether it changes something depends on the last event, as for follows
(`graph.follows`): an event that is committed and not projected yet counts more than what the store holds.
"""

import asyncio
from collections.abc import Callable

from graph import keys
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected
from graph.log.events import Blocked, EventBody, Muted, Unblocked, Unmuted
from graph.log.log import Log
from graph.model import Follow, Page
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store
from graph.suspensions import existence, exists
from graph.user_lists import user_pages
from graph.visibility import Visibility


class Blocks:
    """The mutes and blocks of users. A user mutes at most `max_blocked` others, and blocks as many."""

    def __init__(self, store: Store, log: Log, commit: Commit, visibility: Visibility, max_blocked: int) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._visibility = visibility
        self._max_blocked = max_blocked

    async def mute(self, viewer: int, user: int) -> None:
        """Mute a user. Raises Rejected (NOT_FOUND, INVALID, TOO_MANY). Three round trips, more for a repetition.

        Concurrent calls may exceed the limit together.
        """
        await self._change(viewer, user, keys.muting, Muted, Unmuted, set_=True)

    async def unmute(self, viewer: int, user: int) -> None:
        """Unmute a user. Raises Rejected (NOT_FOUND, INVALID). Three round trips, more for a repetition."""
        await self._change(viewer, user, keys.muting, Muted, Unmuted, set_=False)

    async def block(self, viewer: int, user: int) -> None:
        """Block a user, which ends the follows between the two. Raises like `mute`. Five round trips."""
        await self._change(viewer, user, keys.blocking, Blocked, Unblocked, set_=True)

    async def unblock(self, viewer: int, user: int) -> None:
        """Unblock a user. No follow is restored. Raises like `mute`. Five round trips."""
        await self._change(viewer, user, keys.blocking, Blocked, Unblocked, set_=False)

    async def _change(
        self,
        viewer: int,
        user: int,
        key: Callable[[int], str],
        sets: Callable[[int, int], EventBody],
        unsets: Callable[[int, int], EventBody],
        *,
        set_: bool,
    ) -> None:
        """Commit an event, unless the last event of this pair has said the same."""
        if user == viewer:
            raise Rejected.because(ProblemCode.INVALID, "Users cannot mute or block themselves.", "userId")
        read: Command = ("ZSCORE", key(viewer), str(user))
        reads = [("GET", keys.WATERMARK), read, existence(user), ("ZCARD", key(viewer))]
        watermark, score, row, count = await self._store.read(reads)
        if not exists(row):
            raise Rejected.because(ProblemCode.NOT_FOUND, "This user does not exist.", "userId")
        wanted, opposite = (sets, unsets) if set_ else (unsets, sets)
        event, undone = wanted(viewer, user), opposite(viewer, user)
        if (score is not None) is set_:
            [[score], events] = await asyncio.gather(
                self._store.read([read]), self._log.unprojected(int(watermark or 0))
            )
            is_set = score is not None
            last = next((each.body for each in reversed(events or ()) if each.body in (event, undone)), None)
            if events is not None and (is_set is set_ if last is None else last == event):
                return
        elif set_ and count >= self._max_blocked:
            raise self._too_many()
        await self._commit([event])

    def _too_many(self) -> Rejected:
        most = self._max_blocked
        message = f"You may mute up to {most:,} users, and block as many. Take one back first."
        return Rejected.because(ProblemCode.TOO_MANY, message, "userId", max=most, length=most + 1)

    async def muted(self, viewer: int, window: Window) -> Page[Follow]:
        """Return a page of the users whom the viewer mutes, newest mute first. One round trip."""
        return (await user_pages(self._store, self._visibility.of(None), keys.muting, [viewer], window))[0]

    async def blocked(self, viewer: int, window: Window) -> Page[Follow]:
        """Return a page of the users whom the viewer blocks, newest block first. One round trip."""
        return (await user_pages(self._store, self._visibility.of(None), keys.blocking, [viewer], window))[0]
