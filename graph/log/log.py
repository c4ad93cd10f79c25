"""The log: one append commits and numbers a change, which is then projected into the keys that reads use."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime

from graph import keys
from graph.errors import NumbersExhausted, OutOfStep, ProblemCode, Rejected
from graph.log.events import Event, EventBody, decode_entry, encode_body
from graph.log.numbers import entry_id, milliseconds, number_of
from graph.model import EPOCH_MS
from graph.store.commands import Command, Word, script
from graph.store.store import Store

NONCE_SECONDS = 600
KEY_SECONDS = 24 * 3600
READ_CHUNK = 500


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key of a user: repeating it with the same events appends once, with others it is rejected."""

    user: int | str
    key: str
    seconds: int = KEY_SECONDS


class Log:
    """Appends events and reads them.

    `seen` is the highest number that this process knows, `known_watermark` the highest watermark that it has read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seen = 0
        self.known_watermark = 0

    async def append(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey | None = None,
        times: Sequence[datetime] | None = None,
        first: int | None = None,
    ) -> list[Event]:
        """Append events and return them with their numbers. One round trip, safe to repeat.

        Without an idempotency key, a random one makes redis-py's own retries safe. `times` date the events, for
        imports; numbers ascend regardless of the times. Raises Rejected (IDEMPOTENCY_MISMATCH) if the key was used for
        other events, OutOfStep if the first event cannot get the number `first`, and NumbersExhausted. Nothing is
        written then.
        """
        if not bodies:
            return []
        idempotency_key = idempotency_key or IdempotencyKey("-", secrets.token_hex(12), NONCE_SECONDS)
        [reply] = await self._store.send([self._append_command(bodies, idempotency_key, times, first)])
        outcome, *numbers = reply
        if outcome == "mismatch":
            message = "This idempotency key was used for another request. Use a new key for each request."
            raise Rejected.because(ProblemCode.IDEMPOTENCY_MISMATCH, message, "idempotencyKey")
        if outcome == "out of step":
            raise OutOfStep(f"The log already holds events after number {first}.")
        if outcome == "exhausted":
            raise NumbersExhausted("The log's next number would exceed 53 bits. Check the clock of the store's host.")
        events = [Event(int(number), body) for number, body in zip(numbers, bodies, strict=True)]
        self.seen = max(self.seen, events[-1].number)
        return events

    def _append_command(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey,
        times: Sequence[datetime] | None,
        first: int | None,
    ) -> Command:
        encoded = [encode_body(body) for body in bodies]
        stamps: list[Word] = [""] * len(bodies) if times is None else [*map(milliseconds, times)]
        digest = hashlib.sha256("\n".join(encoded).encode()).hexdigest()[:32]
        return script("append").call(
            [keys.LOG, keys.idempotency(idempotency_key.user, idempotency_key.key)],
            self.seen,
            digest,
            idempotency_key.seconds,
            EPOCH_MS,
            "" if first is None else first,
            *[word for pair in zip(stamps, encoded, strict=True) for word in pair],
        )

    async def replay(self, after: int, upto: int) -> AsyncGenerator[Event]:
        """Yield the events in (after, upto], oldest first. One round trip per 500 events.

        Entries that this version cannot decode are skipped; the worker keeps them as dead letters.
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
        return self._store.ask([("GET", keys.WATERMARK)], self._note_watermark)

    def _note_watermark(self, replies: Sequence[str | None]) -> int:
        watermark = int(replies[0] or 0)
        self.known_watermark = max(self.known_watermark, watermark)
        return watermark

    async def trimmed(self) -> int:
        """Return the highest number that retention has removed from the log, 0 if none. One round trip."""
        [reply] = await self._store.read([("GET", keys.TRIMMED)])
        return int(reply or 0)
