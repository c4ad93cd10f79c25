"""Sessions: each log-in has a record in the store, so that its tokens can be revoked at once.

Users see when each session was last used, to within an hour: a process records the use of a session at most once an
hour, in the background, after a check of the session.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from cachetools import LRUCache

from graph import keys
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected
from graph.log.events import SessionsEnded
from graph.model import MAX_NUMBER, Credentials, Session
from graph.passwords.attempts import wrong_credentials
from graph.store.commands import script
from graph.store.store import Store, unchanged

MAX_SESSIONS = 100
MAX_USER_AGENT = 200
USE_SECONDS = 3600
"""The accuracy, in seconds, of the time at which a session was last used."""
MAX_REMEMBERED_USES = 20_000
RENEWAL_SECONDS = 86_400
MAX_REMEMBERED_ENDED = 10_000
SUSPENDED = -1
"""The reply for a suspended user from the script that starts a session."""


class Sessions:
    """The sessions of users. A session expires `ttl` after its start or its last renewal."""

    def __init__(self, store: Store, commit: Commit, ttl: timedelta) -> None:
        self._store = store
        self._commit = commit
        self._ttl = ttl
        self._ended: LRUCache[tuple[int, str], None] = LRUCache(MAX_REMEMBERED_ENDED)
        self._noted: LRUCache[tuple[int, str], float] = LRUCache(MAX_REMEMBERED_USES)

    async def start(self, user: int, user_agent: str | None = None, password: int | None = None) -> Credentials:
        """Start and return a session. Beyond `MAX_SESSIONS`, end the sessions that expire first. One round trip.

        `user_agent` names the program that logs in. Users see it in the list of their sessions. If a password was
        checked, `password` is the number of the event that last changed it, or 0 if none has. Raises Rejected:
        WRONG_CREDENTIALS if the password was changed after it was checked or the user is deleted, and NOT_ALLOWED if
        the user is suspended.
        """
        now = int(time.time())
        expiry = now + int(self._ttl.total_seconds())
        session = secrets.token_urlsafe(16)
        agent, version = clean_user_agent(user_agent or ""), "" if password is None else password
        names = [*keys_of(user), keys.user(user)]
        [started] = await self._store.send(
            [script("start_session").call(names, session, expiry, now, MAX_SESSIONS, agent, version)]
        )
        if started == SUSPENDED:
            raise Rejected.because(ProblemCode.NOT_ALLOWED, "This account is suspended.")
        if not started:
            raise wrong_credentials()
        self._noted[user, session] = now
        return Credentials(session, user, datetime.fromtimestamp(expiry, UTC))

    async def renew(self, user: int, session: str, expires_at: datetime) -> Credentials | None:
        """Extend a session in use, and return it with its new expiry; None if it has ended or was extended recently.

        A session is extended at most once a day, or once per half of `ttl` if that is shorter. `expires_at` is the
        expiry in its token. One round trip if the session is extended.
        """
        now = int(time.time())
        expiry = now + int(self._ttl.total_seconds())
        if expiry - expires_at.timestamp() < min(RENEWAL_SECONDS, self._ttl.total_seconds() / 2):
            return None
        [live] = await self._store.send([script("renew_session").call(keys_of(user), session, expiry, now)])
        return Credentials(session, user, datetime.fromtimestamp(expiry, UTC)) if live else None

    def is_live(self, user: int, session: str) -> "asyncio.Future[bool]":
        """Return True if a session has neither ended nor expired. One round trip."""
        return self._store.ask([("HGET", keys.sessions(user), session)], partial(self._note_one, (user, session)))

    def has_ended(self, user: int, session: str) -> bool:
        """Return True if an earlier check in this process found the session ended or expired. No round trip."""
        return (user, session) in self._ended

    def are_live(self, sessions: Sequence[tuple[int, str]]) -> "asyncio.Future[list[bool]]":
        """Return whether each session, as (user, session), has neither ended nor expired. One round trip."""
        commands = [("HGET", keys.sessions(user), session) for user, session in sessions]
        return self._store.ask(commands, partial(self._note, sessions))

    def _note_one(self, session: tuple[int, str], expiries: Sequence[str | None]) -> bool:
        return self._note([session], expiries)[0]

    def _note(self, sessions: Sequence[tuple[int, str]], expiries: Sequence[str | None]) -> list[bool]:
        """Return which of the sessions are live, and remember those that have ended."""
        live = are_unexpired(expiries)
        for session, is_live in zip(sessions, live, strict=True):
            if not is_live:
                self._ended[session] = None
            elif session not in self._noted or self._noted[session] <= time.time() - USE_SECONDS:
                self._note_use(*session)
        return live

    def _note_use(self, user: int, session: str) -> None:
        """Record in the background that a session was used. If this fails, it is not retried within the hour."""
        now = int(time.time())
        self._noted[user, session] = now
        note = script("note_use").call(keys_of(user), session, now, USE_SECONDS)
        self._store.ask([note], unchanged).add_done_callback(retrieve)

    def live_sessions(self, user: int) -> "asyncio.Future[list[Session]]":
        """Return a user's live sessions, newest first, at most `MAX_SESSIONS`. One round trip."""
        return self._store.ask(
            [("HGETALL", key) for key in keys_of(user)], partial(as_sessions, int(self._ttl.total_seconds()))
        )

    async def end_by_id(self, user: int, number: int) -> str:
        """End the user's session with this `Session.id`, and return the id that its tokens contain.

        Three round trips. Raises Rejected (NOT_FOUND).
        """
        session = next((each.token_id for each in await self.live_sessions(user) if each.id == number), None)
        if session is None:
            raise no_session()
        await self.end(user, session)
        return session

    async def end(self, user: int, session: str | None = None) -> None:
        """End one session, or all sessions of the user. Their tokens stop working at once. Two or three round trips."""
        ended = [session] if session is not None else await self._store.run("HKEYS", keys.sessions(user))
        if ended:
            await self._commit([SessionsEnded(user, sorted(ended))])


def are_unexpired(expiries: Sequence[str | None]) -> list[bool]:
    """Return for each expiry, in seconds since 1970, whether it is in the future; False for None."""
    now = time.time()
    return [expiry is not None and int(expiry) > now for expiry in expiries]


def keys_of(user: int) -> list[str]:
    """Return the keys of a user's sessions: their expiries and their details."""
    return [keys.sessions(user), keys.session_details(user)]


def as_sessions(ttl: int, replies: Sequence[Mapping[str, str]]) -> list[Session]:
    """Return the live sessions in the hashes of expiries and details, newest first.

    A session started by an older version has no details: its creation is assumed to be `ttl` before its expiry.
    """
    expiries, details = replies
    found = []
    for session, is_live in zip(expiries, are_unexpired(list(expiries.values())), strict=True):
        created, used, agent, _ = map(details.get, keys.session_fields(session))
        if is_live:
            since = int(created or max(0, int(expiries[session]) - ttl))
            created_at, used_at = (datetime.fromtimestamp(at, UTC) for at in (since, max(since, int(used or 0))))
            found.append(Session(public_session_id(session), session, created_at, used_at, agent or None))
    return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)


def public_session_id(session: str) -> int:
    """Return a number that identifies a session without revealing its id: 53 bits of a hash."""
    digest = hashlib.blake2b(session.encode(), digest_size=8, person=b"session").digest()
    return int.from_bytes(digest) % MAX_NUMBER + 1


def clean_user_agent(text: str) -> str:
    """Return at most 200 printable ASCII characters of a `User-Agent` header."""
    printable = "".join(character if " " <= character <= "~" else " " for character in text[: 4 * MAX_USER_AGENT])
    return " ".join(printable.split())[:MAX_USER_AGENT].rstrip()


def no_session() -> Rejected:
    """Return the rejection of an id that does not identify a live session of the viewer."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This session does not exist, or it has ended.", "sessionId")


def retrieve(reply: "asyncio.Future[Any]") -> None:
    """Retrieve the exception, if any, of a reply that nobody awaits, so that asyncio does not log it."""
    if not reply.cancelled():
        reply.exception()
