"""A batch for the archive: projected events of the log, and the password hashes of the sign-ups among them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from graph import keys
from graph.archive.rows import POST, Credential, EventRow
from graph.errors import ArchiverStopped
from graph.log.events import Event, StreamEntry, UserCreated, decode, encoded_entry, unknown_kind
from graph.log.numbers import entry_id, number_of
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.store import Store


@dataclass(slots=True)
class Batch:
    """Consecutive events of the log as rows of the archive.

    `last` is the number of the last entry, 0 if there is none, and `words` are its fields and values. Damaged entries
    have no row. `is_full` is True if there may be more entries. `stop` is the reason not to read on, if any.
    """

    rows: list[EventRow] = field(default_factory=list)
    credentials: list[Credential] = field(default_factory=list)
    last: int = 0
    words: Sequence[str] = ()
    is_full: bool = False
    stop: ArchiverStopped | None = None

    @property
    def first(self) -> int:
        """The number of the first row; without rows, of the last entry."""
        return self.rows[0].number if self.rows else self.last

    @property
    def authors(self) -> list[int]:
        """The users who published posts."""
        return list({row.actor: None for row in self.rows if row.kind == POST})


async def read_batch(store: Store, projections: Projections, low: int, upto: int, count: int) -> Batch:
    """Return the first `count` events in (low, upto]. All of them must be projected. One or two round trips.

    The batch ends before an event of a kind that this version does not know.
    """
    batch = Batch()
    if upto <= low:
        return batch
    [entries] = await store.read([("XRANGE", keys.LOG, f"({entry_id(low)}", entry_id(upto), "COUNT", count)])
    batch.is_full = len(entries) == count
    for entry in entries:
        kind = unknown_kind(entry)
        if kind is not None:
            batch.stop = ArchiverStopped(
                f"The archiver does not know the kind {kind!r} of event {number_of(entry[0])}. Upgrade Fanline."
            )
            break
        batch.last, batch.words = number_of(entry[0]), entry[1] or ()
        row = row_of(entry)
        if row is not None:
            batch.rows.append(row)
    batch.credentials = await read_credentials(store, projections, batch.rows)
    return batch


def row_of(entry: StreamEntry) -> EventRow | None:
    """Return the row of a stream entry, without a body if it is damaged; None if even its fields are damaged.

    Damaged events are among the dead letters, because they are projected or given up before they are archived.
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
    """Return the credentials of the sign-ups among these events that won their login. One round trip, if any.

    A sign-up whose claim is still open, because a failover lost its projection, is projected again.
    """
    sign_ups: dict[int, UserCreated] = {}
    for row in rows:
        if row.kind == UserCreated.__name__ and row.body is not None:
            body = decode(*row).body
            if isinstance(body, UserCreated):
                sign_ups[row.number] = body
    if not sign_ups:
        return []
    reads = [("HMGET", keys.login(body.login), "secret", "nonce", "user") for body in sign_ups.values()]
    found = dict(zip(sign_ups, await store.read(reads), strict=True))
    pending = [n for n, (_, nonce, user) in found.items() if user is None and nonce == sign_ups[n].nonce]
    if pending:
        await projections.project([Event(number, sign_ups[number]) for number in pending], Mode.WORKER)
        found = dict(zip(sign_ups, await store.read(reads), strict=True))
    return [
        Credential(number, sign_ups[number].login, secret or None, number)
        for number, (secret, _, user) in found.items()
        if user == str(number)
    ]
