"""Sessions: each log-in has a record in the store, so that its tokens can be revoked at once."""

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
RENEWAL_SECONDS = 86_400
MAX_REMEMBERED_ENDED = 10_000


class Sessions:
    """The sessions of users. A session expires `ttl` after its start or its last renewal."""

    def __init__(self, store: Store, commit: Commit, ttl: timedelta) -> None:
        self._store = store
        self._commit = commit
        self._ttl = ttl
        self._ended: LRUCache[tuple[int, str], None] = LRUCache(MAX_REMEMBERED_ENDED)

    async def start(self, user: int) -> Session:
        """Start and return a session. Beyond `MAX_SESSIONS`, the first to expire are ended. One round trip."""
        now = int(time.time())
        expiry = now + int(self._ttl.total_seconds())
        session = secrets.token_urlsafe(16)
        await self._store.send(
            [script("start_session").call([keys.sessions(user)], session, expiry, now, MAX_SESSIONS)]
        )
        return Session(session, user, datetime.fromtimestamp(expiry, UTC))

    async def renew(self, user: int, session: str, expires_at: datetime) -> Session | None:
        """Extend a session that has been used, and return it with its new expiry; None if it has ended or is recent.

        A session is extended at most once a day. `expires_at` is its expiry as its token says. One round trip if the
        session is extended.
        """
        now = int(time.time())
        expiry = now + int(self._ttl.total_seconds())
        if expiry - expires_at.timestamp() < min(RENEWAL_SECONDS, self._ttl.total_seconds() / 2):
            return None
        [live] = await self._store.send([script("renew_session").call([keys.sessions(user)], session, expiry, now)])
        return Session(session, user, datetime.fromtimestamp(expiry, UTC)) if live else None

    def is_live(self, user: int, session: str) -> "asyncio.Future[bool]":
        """Return True if a session has neither ended nor expired. One round trip."""
        return self._store.ask([("HGET", keys.sessions(user), session)], partial(self._note_one, (user, session)))

    def has_ended(self, user: int, session: str) -> bool:
        """Return True if a read of this process has found that the session has ended. No round trip."""
        return (user, session) in self._ended

    def are_live(self, sessions: Sequence[tuple[int, str]]) -> "asyncio.Future[list[bool]]":
        """Return whether each session, as (user, session), has neither ended nor expired. One round trip."""
        commands = [("HGET", keys.sessions(user), session) for user, session in sessions]
        return self._store.ask(commands, partial(self._note, sessions))

    def _note_one(self, session: tuple[int, str], expiries: Sequence[str | None]) -> bool:
        return self._note([session], expiries)[0]

    def _note(self, sessions: Sequence[tuple[int, str]], expiries: Sequence[str | None]) -> list[bool]:
        """Return which of the sessions are live, and remember those that have ended."""
        live = are_future(expiries)
        for session, is_live in zip(sessions, live, strict=True):
            if not is_live:
                self._ended[session] = None
        return live

    async def end(self, user: int, session: str | None = None) -> None:
        """End one session, or all of the user. Their tokens stop working at once. Two to three round trips."""
        ended = [session] if session is not None else await self._store.run("HKEYS", keys.sessions(user))
        if ended:
            await self._commit([SessionsEnded(user, sorted(ended))])


def are_future(expiries: Sequence[str | None]) -> list[bool]:
    """Return for each expiry, in seconds since 1970, whether it is in the future; False for None."""
    now = time.time()
    return [expiry is not None and int(expiry) > now for expiry in expiries]
