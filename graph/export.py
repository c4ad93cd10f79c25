"""The export of a user's data: the profile, the sessions, and every event that the user caused or that names the user.

Archived events are read from the archive, kind by kind and in pages; all others are read from the log. A new kind of
event is exported without further code. At most one page of events is in memory.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from graph.accounts.sessions import Sessions
from graph.accounts.users import Users
from graph.archive.rows import CLOSED_REPORT, ENDED_LIKE, LIKE, REPORT, EventRow
from graph.binding import Binding
from graph.log.encoding import KINDS, encode
from graph.log.events import Event, Followed, Unfollowed
from graph.log.log import Log
from graph.model import Session, User, time_of

if TYPE_CHECKING:
    from graph.archive.archive import Archive

Line: TypeAlias = dict[str, Any]
"""A line of an export, to be written as a JSON object. Its field `kind` is `Profile`, `Session` or a kind of event."""

PAGE = 1000
ARCHIVE_KINDS = {ENDED_LIKE: LIKE, CLOSED_REPORT: REPORT}
"""Maps kinds of archive rows to the kinds of events in them, if the two differ. Rows of deleted posts hold no data."""
ROW_KINDS = {kind: [kind, *(row_kind for row_kind, event in ARCHIVE_KINDS.items() if event == kind)] for kind in KINDS}
"""Maps kinds of events to the kinds of archive rows that can hold them. These are read together, because a row can
change its kind during the export."""

ABOUT_USER = (Followed.__name__, Unfollowed.__name__)
"""Kinds of events that also belong to the data of their subject, because followers are visible to all users."""

WITHHELD = frozenset({"nonce", "terms", "sessions", "notified"})
"""Event fields that are not exported, because they are not the user's data: random numbers, terms of deleted posts,
session ids in tokens, and notified users."""


class Export:
    """Exports users' data."""

    def __init__(self, log: Log, archive: "Archive", binding: Binding, users: Users, sessions: Sessions) -> None:
        self._log = log
        self._archive = archive
        self._binding = binding
        self._users = users
        self._sessions = sessions

    async def lines(self, user: int) -> AsyncIterator[Line]:
        """Yield a user's data line by line: the profile, the sessions, then the events, each once.

        Archived events are ordered by kind and number, later ones by number. One query for every 1,000 events, at least
        one per kind, and one round trip for every 500 events of the log that are not archived. Raises
        ArchiveUnavailable, WrongArchive and StoreUnavailable.
        """
        await self._binding.check()
        [profile] = await self._users.get_many([user])
        if profile is None:
            return
        yield profile_line(profile)
        for session in await self._sessions.live_sessions(user):
            yield session_line(session)
        done = 0
        while True:  # the archiver continues, and the log may be trimmed up to its watermark
            up_to = (await self._archive.state()).watermark
            if up_to <= done:
                break
            async for line in self._archived(user, done, up_to):
                yield line
            done = up_to
        async for event in self._log.replay(done, await self._log.last()):
            if concerns(event, user):
                yield event_line(event)

    async def _archived(self, user: int, after: int, up_to: int) -> AsyncIterator[Line]:
        """Yield the lines of the archived events in (after, up_to]."""
        reads = [(self._archive.by_actor, kind) for kind in KINDS]
        for read, kind in [*reads, *((self._archive.by_subject, kind) for kind in ABOUT_USER)]:
            last = after
            while rows := await read([user], ROW_KINDS[kind], last, PAGE):
                for row in rows:
                    if row.number <= up_to:
                        yield row_line(row)
                last = rows[-1].number
                if len(rows) < PAGE or last >= up_to:
                    break


def concerns(event: Event, user: int) -> bool:
    """Return True if an event belongs to a user's data: the user acted, or was followed or unfollowed."""
    encoded = encode(event.body)
    actor = event.number if encoded.actor is None else encoded.actor
    return actor == user or (encoded.kind in ABOUT_USER and encoded.subject == user)


def event_line(event: Event) -> Line:
    """Return the line of an event."""
    encoded = encode(event.body)
    actor = event.number if encoded.actor is None else encoded.actor
    return row_line(EventRow(event.number, encoded.kind, actor, encoded.subject, encoded.body))


def row_line(row: EventRow) -> Line:
    """Return the line of an event in a row of the archive, without the fields that are withheld."""
    kind = ARCHIVE_KINDS.get(row.kind, row.kind)
    body = orjson.loads(row.body or "{}")
    fields = {name: value for name, value in body.items() if name not in WITHHELD}
    names = KINDS[kind]
    owners = {name: id_ for name, id_ in ((names.ACTOR, row.actor), (names.SUBJECT, row.subject)) if name is not None}
    return {"kind": kind, "id": row.number, "at": time_of(row.number).isoformat(), **owners, **fields}


def profile_line(user: User) -> Line:
    """Return the line of a user's profile."""
    return {"kind": "Profile", **user._asdict(), "joined_at": time_of(user.id).isoformat()}


def session_line(session: Session) -> Line:
    """Return the line of a live session, without the id that is in its token."""
    return {
        "kind": "Session",
        "created_at": session.created_at.isoformat(),
        "last_used_at": session.last_used_at.isoformat(),
        "user_agent": session.user_agent,
    }
