"""Lost events: events that the archive holds, but that a failover has removed from the log."""

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import CLOSED_REPORT, ENDED_LIKE, REDACTED, EventRow
from graph.commit import Commit
from graph.errors import ArchiverStopped
from graph.log.encoding import UnknownKind, decode
from graph.log.events import Event, EventBody, ListDeleted, PasswordChanged, PostPublished, UserCreated
from graph.log.log import NONCE_SECONDS, IdempotencyKey
from graph.log.numbers import entry_id, number_of
from graph.log.requests import CREATIONS, Creation, superseded
from graph.model import EPOCH_MS
from graph.posts.posts import deletion_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.records import published_post
from graph.store.commands import script
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

ROWS_AT_ONCE = 500

logger = logging.getLogger("fanline.archiver")


class LostEvents:
    """Projects lost events again, because the failover may have lost their projections in other shards too."""

    def __init__(self, store: Store, archive: "Archive", projections: Projections, commit: Commit) -> None:
        self._store = store
        self._archive = archive
        self._projections = projections
        self._commit = commit
        self._recovered: tuple[int, int, int] | None = None

    async def recover(self, archived: int, known: int, trimmed: int) -> int:
        """Repeat the projections of the events in (`archived`, `known`] that only the archive holds.

        Streams that have not passed these events report a gap, and new events get numbers above `known`. Return the
        number up to which streams report a gap; `trimmed` is this number as the caller last read it.

        A second failover can undo a projection and leave no trace in the log. The events are therefore projected twice:
        before and after the gap is recorded. If the record of the gap survives, the log's shard has kept one of the
        projections.

        A lost post or list whose request the client has since repeated is deleted instead.

        Four to eight round trips, four to eight queries and two projections for every 500 events. Lost posts and lists
        with idempotency keys are held in memory. Nothing is done if the same events were recovered before, unless a
        further failover has reset `trimmed`.
        """
        if self._recovered == (archived, known, trimmed):
            return trimmed
        highest, _ = await self._project_lost(archived, known)
        if not highest:
            return trimmed
        lose = script("lose_events").call([keys.LOG, keys.TRIMMED], highest, known, entry_id(known), EPOCH_MS)
        await self._store.run(*lose)
        _, repeated = await self._project_lost(archived, known)
        for number, body in repeated.items():
            key = IdempotencyKey("-", f"deletion:{number}:again", NONCE_SECONDS)
            await self._commit([withdrawal_of(number, body)], key, erasing=True)
        self._recovered = (archived, known, max(trimmed, highest))
        return max(trimmed, highest)

    async def _project_lost(self, archived: int, known: int) -> tuple[int, dict[int, Creation]]:
        """Project the lost events, except posts and lists whose requests were repeated.

        Return the highest of their numbers, or 0 if no event is lost, and the events that were left out.
        """
        created = [
            (event, event.body)
            async for lost in self._lost(archived, known)
            for event in events_of(lost)
            if isinstance(event.body, CREATIONS) and event.body.request
        ]
        repeated = await superseded(self._store, [event for event, _ in created])
        highest = 0
        async for lost in self._lost(archived, known):
            logger.warning(
                "A failover lost %d events up to %d, which are being projected again", len(lost), lost[-1].number
            )
            events = [event for event in events_of(lost) if event.number not in repeated]
            await self._restore_logins(events)
            await self._projections.project(events, Mode.WORKER)
            await self._restore_notifications(lost)
            highest = lost[-1].number
        return highest, {event.number: body for event, body in created if event.number in repeated}

    async def _lost(self, archived: int, known: int) -> AsyncGenerator[list[EventRow]]:
        """Yield the rows in (`archived`, `known`] that the log does not hold, up to 500 at a time."""
        after = archived
        while rows := await self._archive.range(after, known, ROWS_AT_ONCE):
            [entries] = await self._store.read([("XRANGE", keys.LOG, f"({entry_id(after)}", entry_id(rows[-1].number))])
            held = {number_of(entry) for entry, _ in entries}
            if lost := [row for row in rows if row.number not in held]:
                yield lost
            after = rows[-1].number

    async def _restore_notifications(self, lost: Sequence[EventRow]) -> None:
        """Restore the notifications of lost likes and reposts that were undone or replaced later.

        Such likes and reposts no longer affect posts, but undoing them does not withdraw the notification. One query
        and one round trip, if there are any.
        """
        posts = {row.subject for row in lost if row.kind in (ENDED_LIKE, REDACTED) and row.subject is not None}
        groups = await self._archive.notifications_about(posts)
        await self._projections.notify(groups)

    async def _restore_logins(self, events: Sequence[Event]) -> None:
        """Restore the logins of users who signed up or changed their passwords, with their password hashes.

        Another user may have signed up with the login since the failover; that sign-up becomes void. One query and one
        round trip, or none if there are no such users.
        """
        created = {event.number: event.body for event in events if isinstance(event.body, UserCreated)}
        changed = [event.body.user for event in events if isinstance(event.body, PasswordChanged)]
        login, secret = script("restore_login"), script("restore_secret")
        commands = []
        for user, held in (await self._archive.credentials([*created, *changed])).items():
            if user in created and held.login == created[user].login:  # otherwise the user is deleted
                words = (held.hash or "", created[user].nonce, user, held.number)
                commands.append(login.call([keys.login(held.login)], *words))
            if user in changed:
                commands.append(secret.call([keys.login(held.login)], held.hash or "", user, held.number))
        if commands:
            await self._store.send(commands)


def withdrawal_of(number: int, body: Creation) -> EventBody:
    """Return the event that deletes the post or list that a lost event with this number created."""
    if isinstance(body, PostPublished):
        return deletion_of(published_post(number, body))
    return ListDeleted(body.owner, number)


def events_of(rows: Sequence[EventRow]) -> list[Event]:
    """Return the events of rows that have content, except ended likes and closed reports, which have no effect.

    Raises ArchiverStopped for an unknown kind.
    """
    try:
        return [
            decode(*row)
            for row in rows
            if row.kind not in (REDACTED, ENDED_LIKE, CLOSED_REPORT) and row.body is not None
        ]
    except UnknownKind as unknown:
        raise ArchiverStopped(f"A failover lost an event of kind {unknown.kind!r}. Upgrade Fanline.") from unknown
