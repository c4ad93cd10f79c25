"""The log: every change is committed by one append, numbered, and only then projected into the keys of reads.

A fact's number is 41 bits of milliseconds since 2020 and 12 bits of sequence. It is the position in the log, the id
of the post or user that the fact creates, the version of the follow it changes, a sorted-set score, a cursor and a
time, all in one, and exact in a double. The stream entry's id is derived from it.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from graph import keys
from graph.errors import NumbersExhausted, OutOfStep, ProblemCode, Rejected
from graph.log.events import Event, Fact, decode_event, encode_event
from graph.model import EPOCH, EPOCH_MS, SEQUENCE_BITS
from graph.store.commands import Word, script
from graph.store.store import Store

NONCE_SECONDS = 600
KEY_SECONDS = 24 * 3600
READ_CHUNK = 500
SEQUENCES = 1 << SEQUENCE_BITS


@dataclass(frozen=True, slots=True)
class Once:
    """A client's idempotency key: the same key with the same facts appends once; with others it is refused."""

    user: int | str
    key: str
    seconds: int = KEY_SECONDS


Commit: TypeAlias = Callable[..., Awaitable[list[Fact]]]
"""Append events and project what must be seen at once: `commit(events, once=None) -> facts`."""


class Log:
    """Appends facts and reads them back.

    `seen` is the highest number that this process knows, `known_drained` the drained mark as it last read it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seen = 0
        self.known_drained = 0

    async def append(
        self,
        events: Sequence[Event],
        once: Once | None = None,
        times: Sequence[datetime] | None = None,
        first: int | None = None,
    ) -> list[Fact]:
        """Commit events; give them back as facts with their numbers. One round trip, safe to repeat.

        Without a key of the client's, a nonce makes the library's own retries safe. Times are for seeding a log
        with the past; a number never goes back, whatever the time. Raises Rejected (IDEMPOTENCY_MISMATCH) if the
        key was used for other facts, and OutOfStep if the `first` fact cannot get that number; both write nothing.
        """
        if not events:
            return []
        once = once or Once("-", secrets.token_hex(12), NONCE_SECONDS)
        bodies = [encode_event(event) for event in events]
        stamps = ["" if times is None else milliseconds(times[i]) for i in range(len(events))]
        digest = hashlib.sha256("\n".join(bodies).encode()).hexdigest()[:32]
        words: list[Word] = [word for pair in zip(stamps, bodies, strict=True) for word in pair]
        [reply] = await self._store.send(
            [
                script("append").call(
                    [keys.LOG, keys.once(once.user, once.key)],
                    self.seen,
                    digest,
                    once.seconds,
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
        facts = [Fact(int(number), event) for number, event in zip(numbers, events, strict=True)]
        self.seen = max(self.seen, facts[-1].number)
        return facts

    async def replay(self, after: int, upto: int) -> AsyncGenerator[Fact]:
        """Yield the facts in (after, upto], oldest first. One round trip for every 500.

        Entries that this version cannot read are left out; the worker keeps them as dead letters.
        """
        while after < upto:
            [entries] = await self._store.read(
                [("XRANGE", keys.LOG, f"({entry_id(after)}", entry_id(upto), "COUNT", READ_CHUNK)]
            )
            for entry in entries:
                fact = readable(entry)
                if fact is not None:
                    yield fact
            if len(entries) < READ_CHUNK:
                return
            after = number_of(entries[-1][0])

    async def after(self, number: int, upto: int, most: int) -> tuple[list[Fact], int, int]:
        """Read the next facts in (number, upto]: the facts, how far they reach, and what retention has removed.

        The last is the highest number removed, as it was after the facts were read. One round trip.
        """
        entries, trimmed = await self._store.read(
            [
                ("XRANGE", keys.LOG, f"({entry_id(number)}", entry_id(upto), "COUNT", most),
                ("GET", keys.TRIMMED),
            ]
        )
        reached = number_of(entries[-1][0]) if len(entries) == most else upto
        return [fact for fact in map(readable, entries) if fact is not None], reached, int(trimmed or 0)

    async def newest(self, upto: int, most: int) -> list[Fact]:
        """Read the newest facts up to a number, oldest first. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, entry_id(upto), "-", "COUNT", most)])
        return [fact for fact in map(readable, reversed(entries)) if fact is not None]

    async def get(self, number: int) -> Fact | None:
        """Read one fact, or None if the log does not hold it. One round trip."""
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

    def drained(self) -> "asyncio.Future[int]":
        """Tell the drained mark: everything up to it is projected. An older value is safe too. One round trip."""
        return self._store.ask([("GET", keys.DRAINED)], self._know_drained)

    def _know_drained(self, replies: Sequence[str | None]) -> int:
        mark = int(replies[0] or 0)
        self.known_drained = max(self.known_drained, mark)
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


def readable(entry: tuple[str, list[str] | None]) -> Fact | None:
    """Read a stream entry, or None if this version cannot or the entry is no longer there."""
    try:
        [_, body] = entry[1] or []
        return Fact(number_of(entry[0]), decode_event(body))
    except ValueError:
        return None
