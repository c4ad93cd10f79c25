"""Sessions: a record in the store for every log-in, so that a token can be revoked at once."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from cachetools import LRUCache

from graph import keys
from graph.commit import Commit
from graph.log.events import SessionsEnded
from graph.model import Session
from graph.store.commands import script
from graph.store.store import Store

MAX_SESSIONS = 100
REMEMBERED_ENDED = 10_000


class Sessions:
    """The live sessions of people; each lives for `ttl` at most."""

    def __init__(self, store: Store, commit: Commit, ttl: timedelta) -> None:
        self._store = store
        self._commit = commit
        self._ttl = ttl
        self._ended: LRUCache[tuple[int, str], None] = LRUCache(REMEMBERED_ENDED)

    async def start(self, user: int) -> Session:
        """Open a session and prune expired ones; beyond a hundred, those next to expire end. One round trip."""
        now = int(time.time())
        ends = now + int(self._ttl.total_seconds())
        session = secrets.token_urlsafe(16)
        await self._store.send([script("start_session").call([keys.sessions(user)], session, ends, now, MAX_SESSIONS)])
        return Session(session, user, datetime.fromtimestamp(ends, UTC))

    def is_live(self, user: int, session: str) -> "asyncio.Future[bool]":
        """Tell whether a session has neither ended nor expired. One round trip."""
        return self._store.ask([("HGET", keys.sessions(user), session)], partial(self._found, user, session))

    def has_ended(self, user: int, session: str) -> bool:
        """Return True if `is_live` has found here that the session has ended. No round trip."""
        return (user, session) in self._ended

    def _found(self, user: int, session: str, ends: Sequence[str | None]) -> bool:
        live = is_ahead(ends)
        if not live:
            self._ended[user, session] = None
        return live

    def are_live(self, sessions: Sequence[tuple[int, str]]) -> "asyncio.Future[list[bool]]":
        """Tell of each session, a person's id and its own, whether it has neither ended nor expired. One round trip."""
        return self._store.ask([("HGET", keys.sessions(user), session) for user, session in sessions], are_ahead)

    async def end(self, user: int, session: str | None = None) -> None:
        """Log one session out, or all that are open. Their tokens stop working at once. Two to three round trips."""
        ended = [session] if session is not None else await self._store.run("HKEYS", keys.sessions(user))
        if ended:
            await self._commit([SessionsEnded(user, sorted(ended))])


def is_ahead(ends: Sequence[str | None]) -> bool:
    """Tell of the one end of a session, in seconds since 1970, whether it is yet to come; there may be none."""
    return are_ahead(ends)[0]


def are_ahead(ends: Sequence[str | None]) -> list[bool]:
    """Tell of each end of a session whether it is yet to come."""
    now = time.time()
    return [end is not None and int(end) > now for end in ends]
