"""The log: one append commits and numbers a change, which is then projected into the keys that reads use."""

import asyncio
import hashlib
import math
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from graph import keys
from graph.chunks import chunks
from graph.errors import (
    FULL_SECONDS,
    AccountDeleted,
    ClockAhead,
    FolloweesDeleted,
    Overloaded,
    ProblemCode,
    Rejected,
    StoreFull,
    StoreReplaced,
)
from graph.log.account_events import UserDeleted, UserErased
from graph.log.encoding import Encoded, decode_entry, encode
from graph.log.events import Blocked, Event, EventBody, PostDeleted, SessionsEnded, Unfollowed, Unliked, Unreposted
from graph.log.moderation_events import UserSuspended
from graph.log.numbers import entry_id, number_of
from graph.model import EPOCH_MS, MAX_NUMBER, number_at, time_of
from graph.store.commands import Word, script
from graph.store.store import Store

NONCE_SECONDS = 600
KEY_SECONDS = 24 * 3600
ANY_REQUEST = "*"
"""The hash of a request whose content is no longer known: see `claim_request.lua`."""
READ_CHUNK = 500
MOST_UNPROJECTED = 5_000
"""The maximum number of unprojected events that a request reads to find those that concern it."""
APPENDS_PER_TRIP = 500
REFRESH_SECONDS = 1.0
STALE_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 0.5
RESERVE = 10
"""One part in `RESERVE` of the log's limit is reserved for `ACCEPTED_WHEN_FULL` events."""
WATERMARKS = (keys.WATERMARK, keys.ARCHIVED)
ACCEPTED_WHEN_FULL = (
    *(PostDeleted, Unreposted, Unfollowed, Unliked, Blocked),
    *(SessionsEnded, UserSuspended, UserDeleted, UserErased),
)
"""Kinds of events that are accepted while the log or the store is too full for others: they withdraw something."""
MAX_AHEAD = timedelta(hours=1)
"""How far the number of a new event may be ahead of the clock of the process that appends it."""
LOG_FULL = "Changes are waiting to be archived, and no more can be accepted. Try again later."


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key of a user. Repeating it with the same events appends nothing; with others, it is rejected.

    `request` is a hash that is compared instead of the events, if a repeated request may lead to other events.
    """

    user: int | str
    key: str
    seconds: int = KEY_SECONDS
    request: str | None = None


class Appended(NamedTuple):
    """The events that a request, or an earlier request with the same idempotency key, has appended.

    `missing` are the numbers of earlier events that the log no longer holds. For these events, `events` has the bodies
    of the repeated request, which may differ from the original ones.
    """

    events: list[Event]
    is_new: bool
    missing: frozenset[int] = frozenset()


class Log:
    """Appends events, as long as the log holds at most `limit` of them, and reads them.

    `seen` is the highest number that this process knows. `known_watermark` is the watermark that it last read, and
    `known_archived` the archive watermark that it last read. `clock` is the clock of this process, with which the
    store's clock is compared.
    """

    def __init__(self, store: Store, limit: int, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self.limit = limit
        self.clock = clock
        self.seen = 0
        self.known_watermark = 0
        self.known_archived = 0
        self._read_at = self._asked_at = -math.inf
        self._answers = True
        self._refresh: asyncio.Future[int] | None = None

    async def append(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey | None = None,
        *,
        binding: str,
        refusal: str = "",
        erasing: bool = False,
    ) -> list[Event]:
        """Append events and return them with their numbers. One round trip, safe to repeat.

        Without an idempotency key, a random one makes the repetitions of the store's client safe. With a `refusal`,
        only events that withdraw something, and repetitions, are accepted. `erasing` states that the events only
        withdraw something, and accepts events of deleted users, too.

        Nothing is written if this raises Rejected (IDEMPOTENCY_MISMATCH: the key was used for other events),
        AccountDeleted (an acting user is deleted), FolloweesDeleted (no acting user is deleted, but a followed one is),
        StoreReplaced (the store has another binding or none), Overloaded (the log or the store is full, or there is a
        `refusal`, which is then the message) or ClockAhead (the store's clock, or the log, is more than an hour ahead
        of this process).
        """
        appended = await self.append_once(bodies, idempotency_key, binding=binding, refusal=refusal, erasing=erasing)
        return appended.events

    async def append_once(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey | None,
        *,
        binding: str,
        refusal: str = "",
        erasing: bool = False,
    ) -> Appended:
        """Append like `append`, and also return whether the events are new: False if the key was used before."""
        if not bodies:
            return Appended([], is_new=False)
        reserved = erasing or all(isinstance(body, ACCEPTED_WHEN_FULL) for body in bodies)
        limit = self.limit if reserved else 0 if refusal else self.limit - self.limit // RESERVE
        outcome, *numbers = await self._run_append(
            bodies, idempotency_key, binding, limit, reserved=reserved, erasing=erasing
        )
        if outcome == "overloaded":
            raise Overloaded(refusal or LOG_FULL, FULL_SECONDS)
        raise_refusal(outcome, numbers)
        events = [Event(int(number), body) for number, body in zip(numbers, bodies, strict=True)]
        self.seen = max(self.seen, events[-1].number)
        if outcome == "repeated" and idempotency_key is not None and idempotency_key.request is not None:
            held = [await self.get(event.number) for event in events]
            missing = frozenset(event.number for event, each in zip(events, held, strict=True) if each is None)
            return Appended([each or event for event, each in zip(events, held, strict=True)], False, missing)
        return Appended(events, outcome == "appended")

    async def append_each(self, appends: Sequence[tuple[EventBody, IdempotencyKey]], *, binding: str) -> list[Event]:
        """Append each event under its own key, however full the log and the store are, and return the events.

        Used for events that a projection adds: if they were refused, the watermark could not pass the event that caused
        them, and the log could not be trimmed. For the same reason, the acting users may be deleted. One round trip for
        every 500 events. Raises StoreReplaced, ClockAhead or Rejected (IDEMPOTENCY_MISMATCH) for the first refused
        event, which is not written; other events may be.
        """
        events = []
        for some in chunks(appends, APPENDS_PER_TRIP):
            words = [self._words([encode(body)], key, binding, MAX_NUMBER, erasing=True) for body, key in some]
            try:
                replies = await self._store.send([script("append").call(names, *rest) for names, rest in words])
            except StoreFull:
                append = script("append")
                replies = await self._store.send([append.call_with_source(names, *rest) for names, rest in words])
            for (body, _), (outcome, *numbers) in zip(some, replies, strict=True):
                raise_refusal(outcome, numbers)
                events.append(Event(int(numbers[0]), body))
                self.seen = max(self.seen, events[-1].number)
        return events

    async def repeated(self, key: IdempotencyKey) -> list[Event] | None:
        """Return the events that a request with this key has appended; None unless the log holds all of them.

        One round trip, and one per event. Raises Rejected (IDEMPOTENCY_MISMATCH) if the key was used for another
        request.
        """
        found = await self._store.run("GET", keys.idempotency(key.user, key.key))
        if found is None:
            return None
        digest, *numbers = found.split()
        if digest not in (key.request, ANY_REQUEST):
            raise mismatch()
        events = [await self.get(int(number)) for number in numbers]
        return [event for event in events if event is not None] if None not in events else None

    async def _run_append(
        self,
        bodies: Sequence[EventBody],
        key: IdempotencyKey | None,
        binding: str,
        limit: int,
        *,
        reserved: bool,
        erasing: bool,
    ) -> list[str]:
        """Return the reply of the script. On a full store, a second round trip accepts withdrawals and repetitions."""
        key = key or IdempotencyKey("-", secrets.token_hex(12), NONCE_SECONDS)
        encoded = [encode(body) for body in bodies]
        try:
            names, words = self._words(encoded, key, binding, limit, erasing=erasing)
            [reply] = await self._store.send([script("append").call(names, *words)])
        except StoreFull as full:
            names, words = self._words(encoded, key, binding, limit if reserved else 0, erasing=erasing)
            [reply] = await self._store.send([script("append").call_with_source(names, *words)])
            if reply[0] == "overloaded":
                raise Overloaded(str(full), FULL_SECONDS) from full
        return list(reply)

    def _words(
        self, encoded: Sequence[Encoded], key: IdempotencyKey, binding: str, limit: int, *, erasing: bool
    ) -> tuple[list[str], list[Word]]:
        """Return the keys and arguments of the script that appends events."""
        digest = key.request or hashlib.sha256(repr(encoded).encode()).hexdigest()[:32]
        names = [keys.LOG, keys.idempotency(key.user, key.key), keys.BINDING, keys.DELETED]
        highest = min(number_at(self.clock() + MAX_AHEAD), MAX_NUMBER)
        words: list[Word] = ["" if word is None else word for fields in encoded for word in fields]
        return names, [self.seen, digest, key.seconds, EPOCH_MS, binding, limit, highest, int(erasing), *words]

    async def replay(self, after: int, up_to: int) -> AsyncGenerator[Event]:
        """Yield the events in (after, up_to], oldest first. One round trip per 500 events.

        Events of unknown kinds and damaged entries are skipped.
        """
        while after < up_to:
            [entries] = await self._store.read(
                [("XRANGE", keys.LOG, f"({entry_id(after)}", entry_id(up_to), "COUNT", READ_CHUNK)]
            )
            for entry in entries:
                event = decode_entry(entry)
                if event is not None:
                    yield event
            if len(entries) < READ_CHUNK:
                return
            after = number_of(entries[-1][0])

    async def after(self, number: int, up_to: int, limit: int) -> tuple[list[Event], int, int]:
        """Return the first `limit` events in (number, up_to], the last number that they cover, and the trimmed number.

        The trimmed number is the highest that retention has removed, as read after the events. One round trip.
        """
        entries, trimmed = await self._store.read(
            [
                ("XRANGE", keys.LOG, f"({entry_id(number)}", entry_id(up_to), "COUNT", limit),
                ("GET", keys.TRIMMED),
            ]
        )
        reached = number_of(entries[-1][0]) if len(entries) == limit else up_to
        return [event for event in map(decode_entry, entries) if event is not None], reached, int(trimmed or 0)

    async def unprojected(self, watermark: int) -> list[Event] | None:
        """Return the events after a watermark, oldest first; None if there are more than about 5,000.

        One round trip per 500 events.
        """
        found: list[Event] = []
        reached = watermark
        while reached < MAX_NUMBER:
            if len(found) >= MOST_UNPROJECTED:
                return None
            events, reached, _ = await self.after(reached, MAX_NUMBER, READ_CHUNK)
            found += events
        return found

    async def newest(self, up_to: int, limit: int) -> list[Event]:
        """Return the last `limit` events up to a number, oldest first. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, entry_id(up_to), "-", "COUNT", limit)])
        return [event for event in map(decode_entry, reversed(entries)) if event is not None]

    async def get(self, number: int) -> Event | None:
        """Return the event with this number, or None if the log does not hold it. One round trip."""
        return next(iter(await self.get_many([number])), None)

    async def get_many(self, numbers: Sequence[int]) -> list[Event]:
        """Return the events with these numbers, except those that the log does not hold. One round trip."""
        ranges = [("XRANGE", keys.LOG, entry_id(number), entry_id(number)) for number in numbers]
        found = [decode_entry(entry) for entries in await self._store.read(ranges) for entry in entries]
        return [event for event in found if event is not None]

    async def last(self) -> int:
        """Return the highest number ever assigned, or 0 if there is none. One round trip."""
        [reply] = await self._store.read([script("last_number").call([keys.LOG], EPOCH_MS)])
        self.seen = max(self.seen, int(reply))
        return int(reply)

    async def end(self) -> int:
        """Return the number of the newest entry that the log holds, or 0 if it holds none. One round trip."""
        [entries] = await self._store.read([("XREVRANGE", keys.LOG, "+", "-", "COUNT", 1)])
        return number_of(entries[0][0]) if entries else 0

    def watermark(self) -> "asyncio.Future[int]":
        """Return the watermark: every event up to this number is projected. One round trip."""
        return self._store.ask([("GET", name) for name in WATERMARKS], self.note_watermark)

    def note_watermark(self, replies: Sequence[str | None]) -> int:
        """Record the watermark and the archive watermark, and return the watermark."""
        self.known_watermark, self.known_archived = (int(reply or 0) for reply in replies)  # lower after a failover
        self._store.advance()
        self._read_at = time.monotonic()
        self._answers = True
        return self.known_watermark

    async def recent_watermark(self) -> int:
        """Return a watermark that is at most a few seconds old, or older while the log's shard does not answer.

        An older watermark is safe wherever the current one is. No round trip: the watermark is in the memory of the
        process, and calls refresh it in the background, at most once a second. Only the first call, and the first one
        after an idle time, waits for the answer, for at most half a second. Returns 0 if the shard has never answered.
        """
        now = time.monotonic()
        watermark = self.recent_watermark_now()
        if watermark is None and self._refresh is not None:
            await asyncio.wait([self._refresh], timeout=FIRST_ANSWER_SECONDS)
            self._answers = self._read_at > now
        return self.known_watermark

    def recent_watermark_now(self) -> int | None:
        """Return what `recent_watermark` returns, or None if it would wait for the answer of the log's shard."""
        now = time.monotonic()
        if now - self._read_at > REFRESH_SECONDS and now - self._asked_at > REFRESH_SECONDS:
            self._asked_at = now
            self._refresh = self.watermark()
            self._refresh.add_done_callback(_retrieve_exception)
        waits = now - self._read_at > STALE_SECONDS and self._answers and self._refresh is not None
        return None if waits else self.known_watermark

    @property
    def discardable(self) -> int:
        """The number up to which every event is both projected and in the archive, as far as this process knows.

        Data that only events up to this number need may be discarded: the archive can restore their effects.
        """
        return min(self.known_watermark, self.known_archived)

    async def trimmed(self) -> int:
        """Return the highest number that retention has removed from the log, or 0. Also notes the watermark.

        One round trip.
        """
        trimmed, *watermarks = await self._store.read([("GET", name) for name in (keys.TRIMMED, *WATERMARKS)])
        self.note_watermark(watermarks)
        return int(trimmed or 0)


def raise_refusal(outcome: str, numbers: Sequence[str]) -> None:
    """Raise the error for the outcome of an append that was refused for a reason other than the limits."""
    if outcome == "replaced":
        raise StoreReplaced
    if outcome == "mismatch":
        raise mismatch()
    if outcome == "ahead":
        raise ClockAhead(ahead(int(numbers[0])))
    if outcome == "deleted":
        raise AccountDeleted
    if outcome == "followed":
        raise FolloweesDeleted(frozenset(map(int, numbers)))


def _retrieve_exception(done: "asyncio.Future[int]") -> None:
    """Mark an exception as retrieved: an outage only means that the watermark stays as it is."""
    if not done.cancelled():
        done.exception()


def ahead(number: int) -> str:
    """Return the message for operators about a number that is too far ahead of the clock."""
    return (
        f"The next event would have the time {time_of(number):%Y-%m-%d %H:%M} UTC, more than an hour ahead of this "
        "process. Correct the clocks of the store's host and of this one."
    )


def deleted_since(what: str) -> Rejected:
    """Return the rejection of a repeated request whose result has been deleted."""
    message = f"The {what} with this idempotency key was deleted. Use a new key."
    return Rejected.because(ProblemCode.NOT_FOUND, message, "idempotencyKey")


def mismatch() -> Rejected:
    """Return the rejection of an idempotency key that was used for another request."""
    message = "This idempotency key was used for another request. Use a new key for each request."
    return Rejected.because(ProblemCode.IDEMPOTENCY_MISMATCH, message, "idempotencyKey")
