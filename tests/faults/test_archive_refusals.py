"""Events that a real database refuses: by a trigger, by a constraint, and because of their size."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import text

from graph import Graph, keys
from graph.archive.rows import POST, REDACTED
from graph.errors import ArchiverStopped
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from tests.faults.archive_world import archive_all, opened, rows_of, settle, watermarks
from tests.support.graph_worlds import append_events, dead_letters

pytestmark = pytest.mark.slow

POISON = "poison"
LARGE = 100_000
GOOD = 120

TRIGGERS = {
    "sqlite": [
        f"CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.body LIKE '%{POISON}%' "
        "BEGIN SELECT RAISE(ABORT, 'refused'); END"
    ],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF NEW.body LIKE '%{POISON}%' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
    "mysql": [
        "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW "
        f"IF NEW.body LIKE '%{POISON}%' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF"
    ],
}
CONSTRAINT = f"ALTER TABLE events ADD CONSTRAINT refuse CHECK (body NOT LIKE '%{POISON}%')"
SIZES = {
    "sqlite": [
        f"CREATE TRIGGER refuse BEFORE INSERT ON events WHEN length(NEW.body) > {LARGE} "
        "BEGIN SELECT RAISE(ABORT, 'too large'); END"
    ],
    "postgresql": ["CREATE INDEX refuse ON events (body)"],
    "mysql": ["ALTER TABLE events MODIFY body TEXT"],
}


@pytest.fixture
async def graph(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph with each kind of archive, with users and posts."""
    async with opened(store_url, archive_url) as graph:
        await graph.store.run("FLUSHALL")
        await settle(graph)
        yield graph


async def execute(graph: Graph, *statements: str) -> None:
    """Execute statements in the database, each on its own connection."""
    async with graph.archive.database.engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))
    await graph.archive.database.engine.dispose()


async def by_trigger(graph: Graph) -> None:
    await execute(graph, *TRIGGERS[graph.archive.database.kind])


async def by_constraint(graph: Graph) -> None:
    if graph.archive.database.kind == "sqlite":
        pytest.skip("SQLite cannot add a constraint to a table")
    await execute(graph, CONSTRAINT)


async def by_size(graph: Graph) -> None:
    await execute(graph, *SIZES[graph.archive.database.kind])


@pytest.mark.parametrize("refuse", [by_trigger, by_constraint, by_size])
async def test_a_refused_event_is_kept_without_its_content(
    graph: Graph, refuse: Callable[[Graph], Awaitable[None]]
) -> None:
    """The event becomes a dead letter. Everything else is archived, and the watermark passes the event."""
    await refuse(graph)
    content = secrets.token_hex(LARGE) if refuse is by_size else POISON
    [bob] = await graph.users.ids_of_logins(["bob"])
    before = [row.number for row in await rows_of(graph)]
    posts = [PostPublished(bob or 0, f"post {n}") for n in range(GOOD)]
    posts[17] = posts[GOOD - 1] = PostPublished(bob or 0, content)
    events = await append_events(graph, posts)
    bad = {events[17].number, events[GOOD - 1].number}

    last = await archive_all(graph)

    rows = {row.number: row for row in await rows_of(graph)}
    assert sorted(rows) == [*before, *(event.number for event in events)]
    assert {number for number, row in rows.items() if row.kind == REDACTED} == bad
    assert all(rows[number].body is None for number in bad)
    assert {event.number for event in events if rows[event.number].kind != POST} == bad
    assert await watermarks(graph) == (last, last, last) == (events[-1].number,) * 3
    letters = await dead_letters(graph)
    assert sorted(letter["entry"] for letter in letters) == sorted(map(entry_id, bad))
    assert all(content in letter["body"] or refuse is by_size for letter in letters)
    assert await graph.store.run("GET", keys.ALARM) is None


async def test_an_event_that_is_refused_even_without_content_stops_the_archiver(graph: Graph) -> None:
    """The archiver raises an alarm but adds no dead letters, and continues once the database accepts the event."""
    kind = graph.archive.database.kind
    everything = {
        "sqlite": "CREATE TRIGGER refuse BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'refused'); END",
        "postgresql": "ALTER TABLE events ADD CONSTRAINT refuse CHECK (number < 1) NOT VALID",
        "mysql": "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'",
    }
    undo = {
        "sqlite": "DROP TRIGGER refuse",
        "postgresql": "ALTER TABLE events DROP CONSTRAINT refuse",
        "mysql": "DROP TRIGGER refuse",
    }
    await execute(graph, everything[kind])
    [bob] = await graph.users.ids_of_logins(["bob"])
    [event] = await append_events(graph, [PostPublished(bob or 0, "refused")])
    rows = await rows_of(graph)

    for _ in range(3):
        with pytest.raises(ArchiverStopped, match="even without its body"):
            await archive_all(graph)

    assert len(await dead_letters(graph)) == 1
    assert await rows_of(graph) == rows
    await execute(graph, undo[kind])
    await archive_all(graph)
    assert [row.number for row in await rows_of(graph)][-1] == event.number
