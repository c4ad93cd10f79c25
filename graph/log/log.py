"""The log: one append commits and numbers a change, which is then projected into the keys that reads use."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from graph import keys
from graph.errors import NumbersExhausted, Overloaded, ProblemCode, Rejected, StoreReplaced
from graph.log.events import Event, EventBody, PostDeleted, SessionsEnded, Unfollowed, decode_entry, encode
from graph.log.numbers import entry_id, number_of
from graph.model import EPOCH_MS
from graph.store.commands import Command, script
from graph.store.store import Store

NONCE_SECONDS = 600
KEY_SECONDS = 24 * 3600
READ_CHUNK = 500
RESERVE = 10
"""The divisor of the log's limit that gives the part reserved for `RESERVED` events."""
RESERVED = (PostDeleted, Unfollowed, SessionsEnded)
"""Events that withdraw something. They are still accepted while the log is too full for others."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key of a user: repeating it with the same events appends once, with others it is rejected."""

    user: int | str
    key: str
    seconds: int = KEY_SECONDS


class Log:
    """Appends events, as long as the log holds at most `limit` of them, and reads them.

    `seen` is the highest number that this process knows, `known_watermark` the highest watermark that it has read, and
    `known_archived` the number that it last read up to which every event is in the archive.
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._store = store
        self.limit = limit
        self.seen = 0
        self.known_watermark = 0
        self.known_archived = 0

    async def append(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey | None = None,
        *,
        binding: str,
    ) -> list[Event]:
        """Append events and return them with their numbers. One round trip, safe to repeat.

        Without an idempotency key, a random one makes redis-py's own retries safe. Nothing is written if this raises
        Rejected (IDEMPOTENCY_MISMATCH: the key was used for other events), StoreReplaced (the store has another binding
        or none), Overloaded (the log is full) or NumbersExhausted.
        """
        if not bodies:
            return []
        idempotency_key = idempotency_key or IdempotencyKey("-", secrets.token_hex(12), NONCE_SECONDS)
        [reply] = await self._store.send([self._append_command(bodies, idempotency_key, binding)])
        outcome, *numbers = reply
        if outcome == "replaced":
            raise StoreReplaced
        if outcome == "overloaded":
            raise Overloaded("Changes are waiting to be archived, and no more can be accepted. Try again later.")
        if outcome == "mismatch":
            message = "This idempotency key was used for another request. Use a new key for each request."
            raise Rejected.because(ProblemCode.IDEMPOTENCY_MISMATCH, message, "idempotencyKey")
        if outcome == "exhausted":
            raise NumbersExhausted("The log's next number would exceed 53 bits. Check the clock of the store's host.")
        events = [Event(int(number), body) for number, body in zip(numbers, bodies, strict=True)]
        self.seen = max(self.seen, events[-1].number)
        return events

    def _append_command(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey,
        binding: str,
    ) -> Command:
        encoded = [encode(body) for body in bodies]
        digest = hashlib.sha256(repr(encoded).encode()).hexdigest()[:32]
        reserved = all(isinstance(body, RESERVED) for body in bodies)
        return script("append").call(
            [keys.LOG, keys.idempotency(idempotency_key.user, idempotency_key.key), keys.BINDING],
            self.seen,
            digest,
            idempotency_key.seconds,
            EPOCH_MS,
            binding,
            self.limit if reserved else self.limit - self.limit // RESERVE,
            *["" if word is None else word for fields in encoded for word in fields],
        )

    async def replay(self, after: int, upto: int) -> AsyncGenerator[Event]:
        """Yield the events in (after, upto], oldest first. One round trip per 500 events.

        Events of unknown kinds and damaged entries are skipped.
        """
        while after < upto:
            [entries] = await self._store.read(
                [("XRANGE", keys.LOG, f"({entry_id(after)}", entry_id(upto), "COUNT", READ_CHUNK)]
            )
            for entry in entries:
                event = decode_entry(entry)
                if event is not None:
                    yield event
            if len(entries) < READ_CHUNK:
                return
            after = number_of(entries[-1][0])

    async def after(self, number: int, upto: int, most: int) -> tuple[list[Event], int, int]:
        """Return the first `most` events in (number, upto], how far they reach, and the trimmed number.

        The trimmed number is the highest that retention has removed, as read after the events. One round trip.
        """
        entries, trimmed = await self._store.read(
            [
                ("XRANGE", keys.LOG, f"({entry_id(number)}", entry_id(upto), "COUNT", most),
                ("GET", keys.TRIMMED),
            ]
        )
        reached = number_of(entries[-1][0]) if len(entries) == most else upto
        return [event for event in map(decode_entry, entries) if event is not None], reached, int(trimmed or 0)

    async def newest(self, upto: int, most: int) -> list[Event]:
        """Return the last `most` events up to a number, oldest first. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, entry_id(upto), "-", "COUNT", most)])
        return [event for event in map(decode_entry, reversed(entries)) if event is not None]

    async def get(self, number: int) -> Event | None:
        """Return the event with this number, or None if the log does not hold it. One round trip."""
        [entries] = await self._store.read([("XRANGE", keys.LOG, entry_id(number), entry_id(number))])
        return decode_entry(entries[0]) if entries else None

    async def last(self) -> int:
        """Return the highest number ever assigned, 0 if there is none. One round trip."""
        [reply] = await self._store.read([script("last_number").call([keys.LOG], EPOCH_MS)])
        self.seen = max(self.seen, int(reply))
        return int(reply)

    async def end(self) -> int:
        """Return the number of the newest entry that the log holds, 0 if it holds none. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, "+", "-", "COUNT", 1)])
        return number_of(entries[0][0]) if entries else 0

    def watermark(self) -> "asyncio.Future[int]":
        """Return the watermark: every event up to this number is projected. One round trip."""
        return self._store.ask([("GET", keys.WATERMARK), ("GET", keys.ARCHIVED)], self.note_watermark)

    def note_watermark(self, replies: Sequence[str | None]) -> int:
        """Note the watermark and the number up to which every event is in the archive, and return the watermark."""
        watermark, archived = (int(reply or 0) for reply in replies)
        self.known_watermark = max(self.known_watermark, watermark)
        self.known_archived = archived  # goes back after a failover that lost the end of the log
        return watermark

    @property
    def discardable(self) -> int:
        """The number up to which every event is both projected and in the archive, as far as this process knows.

        What only older events need may be discarded: the archive can restore their effects.
        """
        return min(self.known_watermark, self.known_archived)

    async def trimmed(self) -> int:
        """Return the highest number that retention has removed from the log, 0 if none. One round trip."""
        [reply] = await self._store.read([("GET", keys.TRIMMED)])
        return int(reply or 0)
