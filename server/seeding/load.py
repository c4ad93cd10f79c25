"""Seeding: made-up worlds, brought into an empty store through the same log and projections as what the API writes.

A seeding that breaks off goes on where it stopped when it is started again; one that is complete is never repeated;
and a store that holds anything else is left alone.
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
"""Is told how far a seeding has come: events done, events in total. The first call is what was there beforehand."""


class SeedRefused(Exception):
    """Seeding is not possible like this; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to seed: events for a base time, in order of number, and the password that some logins get.

    `what` says it to people; with `version` it tells whether a broken-off seeding was of the same events. `count` works
    out how many there are.
    """

    what: str
    version: str
    count: Callable[[], int]
    events: Callable[[datetime], Iterable[Event]]
    with_password: frozenset[str] = frozenset()
    password: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What the store remembers of a seeding: what, for which base time (a log number), and whether it is complete."""

    what: str
    version: str
    base: int
    complete: bool = False

    def written(self) -> str:
        """Give the note's form in the store."""
        return json.dumps([self.what, self.version, self.base, self.complete], ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> "Note":
        """Read a note from the store."""
        what, version, base, complete = json.loads(text)
        return cls(what, version, base, complete)


def demo_source(people: int = PEOPLE, posts: int = POSTS) -> Source:
    """Give the demo world, or a small cut of it, as something to seed."""
    return Source(
        f"{DEMO} of {people} people and {posts} posts",
        "2",
        lambda: len(demo_world(datetime.now(UTC), people=people, posts=posts).events),
        lambda base: demo_world(base, people=people, posts=posts).events,
        frozenset(role.person.login for role in SEVEN),
        PASSWORD,
    )


async def holds_demo(graph: Graph) -> bool:
    """Return whether the store was seeded with the demo world, whose users have a public password. One round trip."""
    text = await graph.imports.note()
    return text is not None and Note.read(text).what.startswith(DEMO)


async def load(graph: Graph, source: Source, advance: Advance | None = None, now: datetime | None = None) -> bool:
    """Seed a store; False if the same was complete already. Afterwards every event is projected.

    The events' base time is now, or when the seeding was first begun. Raises SeedRefused if the store holds anything
    else, or is written to meanwhile. Memory is bounded by three batches of 5,000 events, unless the source itself needs
    more.
    """
    note = await begin(graph, source, now or datetime.now(UTC))
    if note.complete:
        return False
    secrets = {login: await graph.users.hash_password(source.password) for login in sorted(source.with_password)}
    total = await asyncio.to_thread(source.count) if advance else 0
    last, done, started = await graph.log.last(), 0, False
    if last >= note.base:
        raise written_to(source)
    in_place = last == 0
    async with aclosing(made_ahead(batches(source.events(time_of(note.base))))) as made:
        async for batch in made:
            if batch[-1].number >= last:
                if not in_place and batch[-1].number != last:
                    break
                if advance and not started:
                    advance(done, total)
                started = True
                last = await bring(graph, source, batch, secrets)
                in_place = last == batch[-1].number
            done += len(batch)
            if advance and in_place:
                advance(done, total)
            if last >= note.base:
                break
    if not in_place:
        raise written_to(source)
    await graph.imports.end(Note(note.what, note.version, note.base, complete=True).written())
    return True


async def begin(graph: Graph, source: Source, now: datetime) -> Note:
    """Find the note of this very seeding, or leave one. Raises SeedRefused if the store holds anything else."""
    text = await graph.imports.note()
    if text is None:
        if await graph.log.last():
            raise SeedRefused("The store already holds people of its own; only an empty one can be seeded.")
        base = (now - timedelta(microseconds=now.microsecond % 1000)).astimezone(UTC)
        text = await graph.imports.begin(Note(source.what, source.version, number_at(base)).written())
    note = Note.read(text)
    if (note.what, note.version) != (source.what, source.version):
        raise SeedRefused(
            f"The store holds {note.what}{'' if note.complete else ', not yet complete'}; "
            "only an empty one can be seeded with anything else."
        )
    return note


async def bring(graph: Graph, source: Source, batch: list[Event], secrets: dict[str, str]) -> int:
    """Claim the logins of a batch and bring its events in; give the last number in the log.

    That is beyond the batch if another process that seeds the same is ahead, or if somebody else has written. Raises
    SeedRefused if somebody else has one of the logins.
    """
    people = [(event.number, event.body) for event in batch if isinstance(event.body, UserCreated)]
    if people:
        claims = [(person.login, person.nonce, secrets.get(person.login)) for _, person in people]
        claimed = await graph.users.claim_many(claims)
        taken = [one for one, fresh in zip(people, claimed, strict=True) if not fresh]
        held = await graph.users.ids_of_logins([person.login for _, person in taken])
        if any(holder != id for holder, (id, _) in zip(held, taken, strict=True)):
            raise written_to(source)
    try:
        await graph.imports.bring(batch)
    except OutOfStep:
        return await graph.log.last()
    return batch[-1].number


async def made_ahead(batches: Iterator[list[Event]]) -> AsyncGenerator[list[Event]]:
    """Yield batches; a thread makes the next one while the store works on the one before."""
    upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
    try:
        while batch := await upcoming:
            upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
            yield batch
    finally:
        await asyncio.gather(upcoming, return_exceptions=True)


def batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Cut events into batches. The cuts depend on the events alone, so that a resumed seeding finds them again."""
    iterator = iter(events)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def written_to(source: Source) -> SeedRefused:
    """Say that a seeding cannot go on."""
    return SeedRefused(
        f"Something else was written to the store before {source.what} was complete; begin again with an empty one."
    )
