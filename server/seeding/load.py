"""Seeding: load generated or imported data into an empty store, through the same log and projections as the API.

An interrupted seeding resumes where it stopped when it is started again. A complete one is not repeated, and a store
that holds anything else is not changed.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from graph import Graph
from graph.errors import OutOfStep
from graph.log.events import Event, UserCreated
from graph.model import number_at, time_of
from server.demo.people import PASSWORD, PEOPLE, POSTS, SEVEN, demo_world

BATCH = 5000
DEMO = "the demo world"

Advance = Callable[[int, int], None]
"""Called with the number of loaded events and the total. The first call reports the events loaded by an earlier run."""


class SeedRefused(Exception):
    """The store cannot be seeded. The message gives the reason in one sentence."""


@dataclass(frozen=True, slots=True)
class Source:
    """The data to seed: events for a base time, in the order of their numbers, and the passwords of some logins.

    `what` describes the data. An interrupted seeding resumes only if `what` and `version` are the same. `count` returns
    the number of events.
    """

    what: str
    version: str
    count: Callable[[], int]
    events: Callable[[datetime], Iterable[Event]]
    with_password: frozenset[str] = frozenset()
    password: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """The store's note of a seeding: the data, the base time as a log number, and whether it is complete."""

    what: str
    version: str
    base: int
    complete: bool = False

    def written(self) -> str:
        """Return the note as it is stored."""
        return json.dumps([self.what, self.version, self.base, self.complete], ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> "Note":
        """Return the note in a stored text."""
        what, version, base, complete = json.loads(text)
        return cls(what, version, base, complete)


def demo_source(people: int = PEOPLE, posts: int = POSTS) -> Source:
    """Return the demo world, or a small part of it, as a source."""
    return Source(
        f"{DEMO} of {people} users and {posts} posts",
        "2",
        lambda: len(demo_world(datetime.now(UTC), people=people, posts=posts).events),
        lambda base: demo_world(base, people=people, posts=posts).events,
        frozenset(role.person.login for role in SEVEN),
        PASSWORD,
    )


async def holds_demo(graph: Graph) -> bool:
    """Return whether the store holds the demo world, whose users have a public password. One round trip."""
    text = await graph.imports.note()
    return text is not None and Note.read(text).what.startswith(DEMO)


async def load(graph: Graph, source: Source, advance: Advance | None = None, now: datetime | None = None) -> bool:
    """Seed a store, and project every event. Return False if the store already held the same data.

    The base time is now, or the time at which the seeding first began. Memory holds three batches of 5,000 events, and
    the data of the source. Raises SeedRefused if the store holds anything else, or if another client writes to it in
    the meantime.
    """
    note = await begin(graph, source, now or datetime.now(UTC))
    if note.complete:
        return False
    secrets = {login: await graph.users.hash_password(source.password) for login in sorted(source.with_password)}
    total = await asyncio.to_thread(source.count) if advance else 0
    last, done, started = await graph.log.last(), 0, False
    if last >= note.base:
        raise store_written_to(source)
    in_place = last == 0
    async with aclosing(prefetched(batches(source.events(time_of(note.base))))) as made:
        async for batch in made:
            if batch[-1].number >= last:
                if not in_place and batch[-1].number != last:
                    break
                if advance and not started:
                    advance(done, total)
                started = True
                last = await load_batch(graph, source, batch, secrets)
                in_place = last == batch[-1].number
            done += len(batch)
            if advance and in_place:
                advance(done, total)
            if last >= note.base:
                break
    if not in_place:
        raise store_written_to(source)
    await graph.imports.end(Note(note.what, note.version, note.base, complete=True).written())
    return True


async def begin(graph: Graph, source: Source, now: datetime) -> Note:
    """Return the note of this seeding, and write it if it is missing. Raises SeedRefused if the store is not empty."""
    text = await graph.imports.note()
    if text is None:
        if await graph.log.last():
            raise SeedRefused("The store already holds users; only an empty store can be seeded.")
        base = (now - timedelta(microseconds=now.microsecond % 1000)).astimezone(UTC)
        text = await graph.imports.begin(Note(source.what, source.version, number_at(base)).written())
    note = Note.read(text)
    if (note.what, note.version) != (source.what, source.version):
        raise SeedRefused(
            f"The store holds {note.what}{'' if note.complete else ', not yet complete'}; "
            "only an empty store can be seeded with other data."
        )
    return note


async def load_batch(graph: Graph, source: Source, batch: list[Event], secrets: dict[str, str]) -> int:
    """Claim the logins of a batch and load its events. Return the last number in the log.

    The number is beyond the batch if another process seeds the same data and is ahead, or if another client has
    written. Raises SeedRefused if a login is taken.
    """
    people = [(event.number, event.body) for event in batch if isinstance(event.body, UserCreated)]
    if people:
        claims = [(person.login, person.nonce, secrets.get(person.login)) for _, person in people]
        claimed = await graph.users.claim_many(claims)
        taken = [one for one, fresh in zip(people, claimed, strict=True) if not fresh]
        held = await graph.users.ids_of_logins([person.login for _, person in taken])
        if any(holder != id for holder, (id, _) in zip(held, taken, strict=True)):
            raise store_written_to(source)
    try:
        await graph.imports.add(batch)
    except OutOfStep:
        return await graph.log.last()
    return batch[-1].number


async def prefetched(batches: Iterator[list[Event]]) -> AsyncGenerator[list[Event]]:
    """Yield batches. A thread prepares the next one while the store processes the previous one."""
    upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
    try:
        while batch := await upcoming:
            upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
            yield batch
    finally:
        await asyncio.gather(upcoming, return_exceptions=True)


def batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Split events into batches, which depend only on the events, so a resumed seeding has the same batches."""
    iterator = iter(events)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def store_written_to(source: Source) -> SeedRefused:
    """Return the error for a store that another client has written to."""
    return SeedRefused(
        f"Another client wrote to the store before {source.what} was complete. Start over with an empty store."
    )
