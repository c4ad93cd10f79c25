"""Seeding: write generated or imported data into an unused archive in bulk, and rebuild an empty store from it.

The archive holds a note about the seeding. An interrupted seeding, when started again, resumes where it stopped. A
complete seeding is not repeated, and a store or archive that holds anything else is not changed.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import NamedTuple

from graph import Graph, keys
from graph.archive.event_rows import event_row
from graph.archive.rows import ArchiveChanged, ArchiveState, Credential, EventRow
from graph.errors import RebuildRefused
from graph.log.events import Event, UserCreated
from graph.model import number_at, time_of
from graph.rebuild.reservation import Reservation, reserve
from server.demo.people import PASSWORD, PEOPLE, POSTS, SEVEN, demo_world

BATCH = 5000
DEMO = "the demo world"

WRITING, FILLING = "Writing events", "Filling the store"

Advance = Callable[[str, int, int], None]
"""Called to report progress: with the step (WRITING events or FILLING the store with users), the number done and the
total.

The first call for WRITING reports the events that an earlier run wrote.
"""


class SeedRefused(Exception):
    """The store or the archive cannot be seeded. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """The data to seed: events for a base time, in the order of their numbers, and a password for some logins.

    `what` describes the data. An interrupted seeding resumes only if `what` and `version` are the same. `count` returns
    the number of events for a base time. The users with the logins `with_password` share the password `password`.
    """

    what: str
    version: str
    count: Callable[[datetime], int]
    events: Callable[[datetime], Iterable[Event]]
    with_password: frozenset[str] = frozenset()
    password: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """The archive's note about a seeding: the data, the base time as an event number, and whether it is complete."""

    what: str
    version: str
    base: int
    complete: bool = False

    def written(self) -> str:
        """Return the note as text, to be stored in the archive."""
        return json.dumps([self.what, self.version, self.base, self.complete], ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> "Note":
        """Parse a stored note."""
        what, version, base, complete = json.loads(text)
        return cls(what, version, base, complete)


class Batch(NamedTuple):
    """Events as rows of the archive, and the credentials of the users who sign up."""

    rows: list[EventRow]
    credentials: list[Credential]


def demo_source(people: int = PEOPLE, posts: int = POSTS) -> Source:
    """Return the demo world, or a small part of it, as a source."""
    return Source(
        f"{DEMO} of {people} users and {posts} posts",
        "3",
        lambda base: len(demo_world(base, people=people, posts=posts).events),
        lambda base: demo_world(base, people=people, posts=posts).events,
        frozenset(role.person.login for role in SEVEN),
        PASSWORD,
    )


async def holds_demo(graph: Graph) -> bool:
    """Return True if the archive holds the demo world, whose users have a public password. One query."""
    text = (await graph.archive.state()).note
    return text is not None and Note.read(text).what.startswith(DEMO)


async def check_complete(graph: Graph) -> None:
    """Raise SeedRefused if the archive holds an unfinished seeding. One query."""
    text = (await graph.archive.state()).note
    note = None if text is None else Note.read(text)
    if note and not note.complete:
        raise SeedRefused(
            f"The archive holds an incomplete seeding of {note.what}. Run the same `fanline seed` command again."
        )


async def load(graph: Graph, source: Source, advance: Advance | None = None, now: datetime | None = None) -> bool:
    """Seed an empty store and an unused archive. Return False if they already hold the same data.

    The base time is now, or the time at which the seeding first began. Memory holds three batches of 5,000 events, the
    data of the source, and the working memory of a rebuild. Raises SeedRefused if the store or the archive holds
    anything else, or if another process takes over, and WrongArchive if the store was lost after the seeding.
    """
    state = await graph.archive.state()
    note = check(state, source)
    if note and note.complete and await graph.store.run("GET", keys.REBUILD) is None:
        await graph.binding.check()
        return False
    if await graph.log.last():
        raise SeedRefused("The store already holds users; only an empty store can be seeded.")
    try:
        reservation = await reserve(graph.store, graph.archive, unused_only=note is None)
        if note is None:
            note = new_note(source, now or datetime.now(UTC))
            await graph.archive.set_note(note.written())
        if not note.complete:
            await write(graph, source, note, reservation, advance)
            await graph.archive.set_note(replace(note, complete=True).written())
        await graph.rebuild().fill(reservation, advance and partial(advance, FILLING))
    except (ArchiveChanged, RebuildRefused) as error:
        raise SeedRefused(f"{source.what[:1].upper()}{source.what[1:]} cannot be seeded: {error}") from error
    finally:
        graph.binding.forget()
    return True


def check(state: ArchiveState, source: Source) -> Note | None:
    """Return this seeding's note, or None if it has not begun. Raises SeedRefused if the archive holds other data."""
    if state.note is None:
        if state.watermark:
            raise SeedRefused("The archive already holds events; only an unused archive can be seeded.")
        return None
    note = Note.read(state.note)
    if (note.what, note.version) != (source.what, source.version):
        raise SeedRefused(
            f"The archive holds {'' if note.complete else 'an incomplete seeding of '}{note.what}; "
            "only an empty store can be seeded with other data."
        )
    return note


def new_note(source: Source, now: datetime) -> Note:
    """Return the note of a seeding that begins now. Its base time is rounded down to a millisecond."""
    base = (now - timedelta(microseconds=now.microsecond % 1000)).astimezone(UTC)
    return Note(source.what, source.version, number_at(base))


async def write(
    graph: Graph, source: Source, note: Note, reservation: Reservation, advance: Advance | None = None
) -> None:
    """Write the events that are not in the archive yet, with the password hashes. One transaction per 5,000 events.

    Raises ArchiveChanged if another process binds the archive to another store in the meantime.
    """
    secrets = {login: await graph.users.hash_password(source.password) for login in sorted(source.with_password)}
    total = await asyncio.to_thread(source.count, time_of(note.base)) if advance else 0
    watermark, done, started = (await graph.archive.state()).watermark, 0, False
    async with aclosing(prefetched(batches(source.events(time_of(note.base)), secrets))) as made:
        async for batch in made:
            up_to = batch.rows[-1].number
            if up_to > watermark:
                if advance and not started:
                    advance(WRITING, done, total)
                started = True
                await graph.archive.append(
                    batch.rows,
                    batch.credentials,
                    store=reservation.store_id,
                    watermark=watermark,
                    up_to=up_to,
                    indexes=False,
                )
                watermark = up_to
            done += len(batch.rows)
            if advance and started:
                advance(WRITING, done, total)


async def prefetched(batches: Iterator[Batch]) -> AsyncGenerator[Batch]:
    """Yield batches. A thread prepares the next one while the archive writes the previous one."""
    upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
    try:
        while batch := await upcoming:
            upcoming = asyncio.ensure_future(asyncio.to_thread(next, batches, None))
            yield batch
    finally:
        await asyncio.gather(upcoming, return_exceptions=True)


def batches(events: Iterable[Event], secrets: Mapping[str, str]) -> Iterator[Batch]:
    """Yield the events in batches. The same events always give the same batches, even when a seeding resumes."""
    iterator = iter(events)
    while part := list(islice(iterator, BATCH)):
        yield Batch(
            [event_row(event) for event in part],
            [
                Credential(event.number, event.body.login, secrets.get(event.body.login), event.number)
                for event in part
                if isinstance(event.body, UserCreated)
            ],
        )
