"""Who has to leave: those whose session has ended, or who have lost the permission they listen with."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from graph.errors import StoreUnavailable
from graph.log.events import Event, PermissionRevoked, SessionsEnded
from graph.model import Permission
from graph.sessions import Sessions
from graph.users import Users

CHECKED_AT_ONCE = 200
BREATHER_SECONDS = 0.01  # between two parts of a sweep, for everybody else

Claim: TypeAlias = tuple[int, str | Permission]
"""A person, and a session or permission of theirs."""

logger = logging.getLogger("fanline.feed")


class SessionWatch:
    """Watches the claims that streams and sockets rest on: by the events of the log, and by a sweep now and then.

    The sweep finds what no event tells: sessions that have expired, or made way for newer ones.
    """

    def __init__(self, sessions: Sessions, users: Users) -> None:
        self._sessions = sessions
        self._users = users
        self._watched: dict[Claim, list[Callable[[], None]]] = {}

    def watch(self, claim: Claim, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` once when the claim ends. Returns what stops watching."""
        self._watched.setdefault(claim, []).append(on_end)

        def stop() -> None:
            watchers = self._watched.get(claim, [])
            if on_end in watchers:
                watchers.remove(on_end)
                if not watchers:
                    del self._watched[claim]

        return stop

    def __len__(self) -> int:
        return len(self._watched)

    def apply(self, event: Event) -> None:
        """End what an event ends."""
        match event.body:
            case SessionsEnded(user, sessions):
                for session in sessions:
                    self._end((user, session))
            case PermissionRevoked(user, permission):
                self._end((user, permission))
            case _:
                pass

    async def check(self, claims: Sequence[Claim]) -> None:
        """End those of these claims that no longer hold. One or two round trips. Raises StoreUnavailable."""
        sessions = [(user, what) for user, what in claims if not isinstance(what, Permission)]
        for claim, live in zip(sessions, await self._sessions.are_live(sessions), strict=True):
            if not live:
                self._end(claim)
        for user, what in claims:
            if isinstance(what, Permission) and what not in await self._users.permissions(user):
                self._end((user, what))

    async def sweep(self, seconds: float) -> None:
        """Check everything that is watched, again and again, with so many seconds in between."""
        while True:
            await asyncio.sleep(seconds)
            claims = list(self._watched)
            try:
                for start in range(0, len(claims), CHECKED_AT_ONCE):
                    await self.check(claims[start : start + CHECKED_AT_ONCE])
                    await asyncio.sleep(BREATHER_SECONDS)
            except StoreUnavailable as outage:
                logger.warning("Sessions cannot be checked now: %s", outage.reason)
            except Exception:
                logger.exception("Sessions cannot be checked now")

    def _end(self, claim: Claim) -> None:
        for on_end in self._watched.pop(claim, ()):
            on_end()
