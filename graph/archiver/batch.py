"""A batch for the archive: projected events of the log, and the password hashes that they set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from graph import keys
from graph.archive.rows import LIKE, POSTS, USER_DELETION, Credential, EventRow, post_of
from graph.errors import ArchiverStopped
from graph.log.account_events import UserDeleted
from graph.log.encoding import StreamEntry, decode, encoded_entry, unknown_kind
from graph.log.events import Event, PasswordChanged, UserCreated
from graph.log.numbers import entry_id, number_of
from graph.post_lists import PostList, lists_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.store import Store

Setter: TypeAlias = UserCreated | PasswordChanged
"""An event that sets a password hash."""

CREDENTIAL_KINDS = (UserCreated.__name__, PasswordChanged.__name__)


@dataclass(slots=True)
class LogBatch:
    """Consecutive events of the log as rows of the archive.

    `last` is the number of the last entry, or 0 if there is none, and `last_fields` has the fields and values of this
    entry. Entries with damaged fields have no row. `is_full` is True if there may be more entries. `stop` is the reason
    to stop reading, if any.
    """

    rows: list[EventRow] = field(default_factory=list)
    credentials: list[Credential] = field(default_factory=list)
    last: int = 0
    last_fields: Sequence[str] = ()
    is_full: bool = False
    stop: ArchiverStopped | None = None

    @property
    def first(self) -> int:
        """The number of the first row, or of the last entry if there are no rows."""
        return self.rows[0].number if self.rows else self.last

    @property
    def lists(self) -> list[tuple[PostList, int]]:
        """The lists that have new posts, with their owners."""
        posts = [post_of(row) for row in self.rows if row.kind in POSTS and row.body is not None]
        return list(dict.fromkeys(member for post in posts for member in lists_of(post)))

    @property
    def liked_posts(self) -> list[int]:
        """The posts that were liked."""
        return list({row.subject: None for row in self.rows if row.kind == LIKE and row.subject is not None})

    @property
    def likers(self) -> list[int]:
        """The users who liked posts."""
        return list({row.actor: None for row in self.rows if row.kind == LIKE})


async def read_batch(store: Store, projections: Projections, low: int, up_to: int, count: int) -> LogBatch:
    """Return the first `count` events in (low, up_to], all of which must be projected.

    One round trip, and those of `read_credentials`. The batch ends before an event of a kind that this version does not
    know.
    """
    batch = LogBatch()
    if up_to <= low:
        return batch
    [entries] = await store.read([("XRANGE", keys.LOG, f"({entry_id(low)}", entry_id(up_to), "COUNT", count)])
    batch.is_full = len(entries) == count
    for entry in entries:
        kind = unknown_kind(entry)
        if kind is not None:
            batch.stop = ArchiverStopped(
                f"The archiver does not know the kind {kind!r} of event {number_of(entry[0])}. Upgrade Fanline."
            )
            break
        batch.last, batch.last_fields = number_of(entry[0]), entry[1] or ()
        row = row_of(entry)
        if row is not None:
            batch.rows.append(row)
    batch.credentials = await read_credentials(store, projections, batch.rows)
    return batch


def row_of(entry: StreamEntry) -> EventRow | None:
    """Return the row of a stream entry, without the body if that is damaged; None if the entry's fields are damaged.

    Damaged events are already dead letters: events are archived only after they were projected or set aside.
    """
    try:
        encoded = encoded_entry(entry)
    except ValueError:
        return None
    number = number_of(entry[0])
    actor = number if encoded.actor is None else encoded.actor
    try:
        decode(number, *encoded)
    except ValueError:
        return EventRow(number, encoded.kind, actor, encoded.subject, None)
    return EventRow(number, encoded.kind, actor, encoded.subject, encoded.body)


async def read_credentials(store: Store, projections: Projections, rows: Sequence[EventRow]) -> list[Credential]:
    """Return the credentials that these events set: sign-ups that won their login, password changes and deletions.

    A password hash is the newest one in the store, even if a later event has set it. The credentials of a deleted user
    have the hash of the login instead of the login, because the login stays reserved.

    One round trip if events set password hashes. If a failover has lost projections, so that a sign-up has only claimed
    its login or a login lacks a password change, these events are projected again, followed by one more round trip.
    """
    setters: dict[int, Setter] = {}
    credentials: dict[int, Credential] = {}
    for row in rows:
        if row.kind == USER_DELETION and row.body is not None:
            deletion = decode(*row).body
            if isinstance(deletion, UserDeleted):
                credentials[row.actor] = Credential(row.actor, deletion.login_hash, None, row.number)
        if row.kind in CREDENTIAL_KINDS and row.body is not None:
            body = decode(*row).body
            if isinstance(body, UserCreated | PasswordChanged):
                setters[row.number] = body
    if not setters:
        return list(credentials.values())
    held = await _read_logins(store, setters)
    pending = [Event(number, body) for number, body in setters.items() if is_pending(number, body, held[number])]
    if pending:
        await projections.project(pending, Mode.WORKER)
        held = await _read_logins(store, setters)
    for number, body in setters.items():
        secret, _, owner, changed_at = held[number]
        user = body.user if isinstance(body, PasswordChanged) else number
        if owner == str(user) and user not in credentials:
            credentials[user] = Credential(user, body.login, secret or None, int(changed_at or user))
    return list(credentials.values())


async def _read_logins(store: Store, setters: Mapping[int, Setter]) -> dict[int, Sequence[str | None]]:
    """Return the stored password hash, nonce, user id and time of change of each event's login, by event number."""
    fields = ("secret", "nonce", "user", "secret:at")
    replies = await store.read([("HMGET", keys.login(body.login), *fields) for body in setters.values()])
    return dict(zip(setters, replies, strict=True))


def is_pending(number: int, body: Setter, login: Sequence[str | None]) -> bool:
    """Return True if a login lacks the change that an event makes, and projecting the event would make this change."""
    _, nonce, user, changed_at = login
    if isinstance(body, PasswordChanged):
        return user == str(body.user) and int(changed_at or 0) < number
    return user is None and nonce == body.nonce
