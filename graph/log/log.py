"""The log: every change is committed by one append, numbered, and only then projected into the keys of reads.

An event's number is 41 bits of milliseconds since 2020 and 12 bits of sequence. It is the position in the log, the id
of the post or user that the event creates, the version of the follow it changes, a sorted-set score, a cursor and a
time, all in one, and exact in a double. The stream entry's id is derived from it.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph import keys
from graph.errors import NumbersExhausted, OutOfStep, ProblemCode, Rejected
from graph.log.events import Event, EventBody, decode_body, encode_body
from graph.model import EPOCH, EPOCH_MS, SEQUENCE_BITS
from graph.store.commands import Word, script
from graph.store.store import Store

NONCE_SECONDS = 600
KEY_SECONDS = 24 * 3600
READ_CHUNK = 500
SEQUENCES = 1 << SEQUENCE_BITS


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's idempotency key: the same key with the same events appends once; with others it is refused."""

    user: int | str
    key: str
    seconds: int = KEY_SECONDS


class Log:
    """Appends events and reads them back.

    `seen` is the highest number that this process knows, `known_drained` the watermark as it last read it.
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
        """Commit events; give them back as events with their numbers. One round trip, safe to repeat.

        Without a key of the client's, a nonce makes the library's own retries safe. Times are for seeding a log
        with the past; a number never goes back, whatever the time. Raises Rejected (IDEMPOTENCY_MISMATCH) if the
        key was used for other events, and OutOfStep if the `first` event cannot get that number; both write nothing.
        """
        if not bodies:
            return []
        idempotency_key = idempotency_key or IdempotencyKey("-", secrets.token_hex(12), NONCE_SECONDS)
        encoded = [encode_body(body) for body in bodies]
        stamps: list[Word] = [""] * len(bodies) if times is None else [*map(milliseconds, times)]
        digest = hashlib.sha256("\n".join(encoded).encode()).hexdigest()[:32]
        words: list[Word] = [word for pair in zip(stamps, encoded, strict=True) for word in pair]
        [reply] = await self._store.send(
            [
                script("append").call(
                    [keys.LOG, keys.idempotency(idempotency_key.user, idempotency_key.key)],
                    self.seen,
                    digest,
                    idempotency_key.seconds,
                    EPOCH_MS,
                    "" if first is None else first,
                    *words,
                )
            ]
        )
        outcome, *numbers = reply
        if outcome == "mismatch":
            raise Rejected.because(
                ProblemCode.IDEMPOTENCY_MISMATCH,
                "This idempotency key was used before, for something else.",
                "idempotencyKey",
            )
        if outcome == "out of step":
            raise OutOfStep(f"The log has gone beyond {first} already.")
        if outcome == "exhausted":
            raise NumbersExhausted("The log's next number would not fit into 53 bits. Is a clock wrong?")
        events = [Event(int(number), body) for number, body in zip(numbers, bodies, strict=True)]
        self.seen = max(self.seen, events[-1].number)
        return events

    async def replay(self, after: int, upto: int) -> AsyncGenerator[Event]:
        """Yield the events in (after, upto], oldest first. One round trip for every 500.

        Entries that this version cannot read are left out; the worker keeps them as dead letters.
        """
        while after < upto:
            [entries] = await self._store.read(
                [("XRANGE", keys.LOG, f"({entry_id(after)}", entry_id(upto), "COUNT", READ_CHUNK)]
            )
            for entry in entries:
                event = readable(entry)
                if event is not None:
                    yield event
            if len(entries) < READ_CHUNK:
                return
            after = number_of(entries[-1][0])

    async def after(self, number: int, upto: int, most: int) -> tuple[list[Event], int, int]:
        """Read the next events in (number, upto]: the events, how far they reach, and what retention has removed.

        The last is the highest number removed, as it was after the events were read. One round trip.
        """
        entries, trimmed = await self._store.read(
            [
                ("XRANGE", keys.LOG, f"({entry_id(number)}", entry_id(upto), "COUNT", most),
                ("GET", keys.TRIMMED),
            ]
        )
        reached = number_of(entries[-1][0]) if len(entries) == most else upto
        return [event for event in map(readable, entries) if event is not None], reached, int(trimmed or 0)

    async def newest(self, upto: int, most: int) -> list[Event]:
        """Read the newest events up to a number, oldest first. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, entry_id(upto), "-", "COUNT", most)])
        return [event for event in map(readable, reversed(entries)) if event is not None]

    async def get(self, number: int) -> Event | None:
        """Read one event, or None if the log does not hold it. One round trip."""
        [entries] = await self._store.read([("XRANGE", keys.LOG, entry_id(number), entry_id(number))])
        return readable(entries[0]) if entries else None

    async def last(self) -> int:
        """Tell the highest number ever given. One round trip."""
        [reply] = await self._store.read([script("last_number").call([keys.LOG], EPOCH_MS)])
        self.seen = max(self.seen, int(reply))
        return int(reply)

    async def end(self) -> int:
        """Return the number of the newest entry that the log holds, 0 if it holds none. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, "+", "-", "COUNT", 1)])
        return number_of(entries[0][0]) if entries else 0

    def watermark(self) -> "asyncio.Future[int]":
        """Tell the watermark: everything up to it is projected. An older value is safe too. One round trip."""
        return self._store.ask([("GET", keys.WATERMARK)], self._note_watermark)

    def _note_watermark(self, replies: Sequence[str | None]) -> int:
        mark = int(replies[0] or 0)
        self.known_watermark = max(self.known_watermark, mark)
        return mark

    async def trimmed(self) -> int:
        """Tell the highest number that retention has removed from the log. One round trip."""
        [reply] = await self._store.read([("GET", keys.TRIMMED)])
        return int(reply or 0)


def milliseconds(time: datetime) -> int:
    """Give a time as the log numbers it: milliseconds since 2020."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def entry_id(number: int) -> str:
    """Give the stream entry id of a number."""
    return f"{number // SEQUENCES + EPOCH_MS}-{number % SEQUENCES}"


def number_of(entry: str) -> int:
    """Give the number of a stream entry id."""
    ms, _, sequence = entry.partition("-")
    return max(0, int(ms) - EPOCH_MS) * SEQUENCES + int(sequence)


def readable(entry: tuple[str, list[str] | None]) -> Event | None:
    """Read a stream entry, or None if this version cannot or the entry is no longer there."""
    try:
        [_, body] = entry[1] or []
        return Event(number_of(entry[0]), decode_body(body))
    except ValueError:
        return None
