"""The session watch: ends subscriptions and WebSockets whose session ends or whose permission is revoked."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TypeAlias

from graph.accounts.sessions import Sessions
from graph.accounts.users import Users
from graph.chunks import chunks
from graph.errors import StoreUnavailable
from graph.log.account_events import UserDeleted
from graph.log.events import Event, PermissionRevoked, SessionsEnded
from graph.log.moderation_events import UserSuspended
from graph.model import Permission
from graph.tasks import end

CHECK_BATCH = 200
PAUSE_SECONDS = 0.01  # between two batches of a sweep, to let other tasks run

Claim: TypeAlias = tuple[int, str | Permission]
"""A user's id, and a session or a permission of that user."""

logger = logging.getLogger("fanline.feed")


class SessionWatch:
    """Calls back when a watched claim ends.

    Log-outs and revocations are events of the log, which the feed passes to `apply`. Sessions that expire or are
    replaced by newer ones cause no event: a sweep every `sweep_seconds` finds them.
    """

    def __init__(self, sessions: Sessions, users: Users, sweep_seconds: float) -> None:
        self._sessions = sessions
        self._users = users
        self._sweep_seconds = sweep_seconds
        self._watched: dict[Claim, list[Callable[[], None]]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    def watch(self, claim: Claim, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` once when the claim ends. Return a function that stops watching."""
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep(), context=Context())
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
        """End the claims that an event of the log ends."""
        match event.body:
            case SessionsEnded(user, sessions):
                for session in sessions:
                    self._end((user, session))
            case PermissionRevoked(user, permission):
                self._end((user, permission))
            case UserSuspended(user) | UserDeleted(user):
                for claim in [claim for claim in self._watched if claim[0] == user]:
                    self._end(claim)
            case _:
                pass

    async def check(self, claims: Sequence[Claim]) -> None:
        """End the claims that are no longer valid. At most two round trips. Raises StoreUnavailable."""
        sessions = [(user, what) for user, what in claims if not isinstance(what, Permission)]
        if sessions:
            for claim, live in zip(sessions, await self._sessions.are_live(sessions), strict=True):
                if not live:
                    self._end(claim)
        for user, what in claims:
            if isinstance(what, Permission) and what not in await self._users.permissions(user):
                self._end((user, what))

    async def close(self) -> None:
        """Stop the sweep."""
        if self._sweeping is not None:
            await end([self._sweeping])

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_seconds)
            claims = list(self._watched)
            try:
                for some in chunks(claims, CHECK_BATCH):
                    await self.check(some)
                    await asyncio.sleep(PAUSE_SECONDS)
            except StoreUnavailable as outage:
                logger.warning("The sessions of live streams cannot be checked: %s", outage.reason)
            except Exception:
                logger.exception("The sessions of live streams cannot be checked")

    def _end(self, claim: Claim) -> None:
        for on_end in self._watched.pop(claim, ()):
            on_end()
