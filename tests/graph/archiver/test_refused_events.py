"""Tests of events that the archive refuses: each is kept without its content, and none blocks the others."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.rows import REDACTED, Credential, EventRow
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.support.graph_worlds import crowd, dead_letters, many_posts, newest
from tests.support.graphs import open_graph

POISON = "the text that the database refuses"
TRIGGER = f"""CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.body LIKE '%{POISON}%'
BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"""
CHECK = f"ALTER TABLE events ADD CONSTRAINT refuse CHECK (body NOT LIKE '%{POISON}%')"


@pytest.fixture
async def graph(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph with an archive of each kind that refuses rows with the text `POISON`."""
    archive = Archive(archive_url)
    graph = await open_graph(store_url, replace(CHEAP, hot_posts=3, hot_slack=2), archive=archive)
    await graph.binding.check()
    async with archive.database.engine.begin() as connection:
        await connection.execute(text(TRIGGER if archive.database.kind == "sqlite" else CHECK))
    yield graph
    await graph.close()


async def archive_all(graph: Graph) -> list[EventRow]:
    """Project and archive everything, and return the rows of the archive."""
    last = await graph.worker().drain()
    await graph.archiver.work()
    assert await graph.store.run("GET", keys.ARCHIVED) == str(last)
    return await graph.archive.range(0, MAX_NUMBER, 10_000)


async def test_refused_events_are_stored_without_their_bodies(graph: Graph) -> None:
    """They are reported as dead letters, with all their fields. All other events are archived."""
    [author] = await crowd(graph, 1)
    good = await many_posts(graph, author, 20)
    bad = [event.number for event in await graph.commit([PostPublished(author, POISON)] * 2)]
    good += await many_posts(graph, author, 20)
    bad += [event.number for event in await graph.commit([PostPublished(author, POISON)])]

    rows = await archive_all(graph)

    assert [row.number for row in rows if row.kind == "PostPublished"] == good
    assert [row for row in rows if row.kind == REDACTED] == [EventRow(n, REDACTED, author, None, None) for n in bad]
    letters = await dead_letters(graph)
    assert [letter["entry"] for letter in letters] == [entry_id(number) for number in bad]
    assert all(POISON in letter["body"] and "refused" in letter["reason"] for letter in letters)


async def test_later_batches_are_large_again(graph: Graph) -> None:
    """Finding one of 200 events takes a few attempts."""
    [author] = await crowd(graph, 1)
    await many_posts(graph, author, 100)
    await graph.commit([PostPublished(author, POISON)])
    await many_posts(graph, author, 99)
    attempts, append = 0, graph.archive.append

    async def counted(*args: object, **options: object) -> None:
        nonlocal attempts
        attempts += 1
        await append(*args, **options)  # type: ignore[arg-type]

    graph.archive.append = counted  # type: ignore[method-assign]
    await archive_all(graph)

    assert attempts < 40


async def test_the_author_of_a_refused_post_can_be_cut(graph: Graph) -> None:
    """The post is not shown once it has left the store."""
    [author] = await crowd(graph, 1)
    await graph.commit([PostPublished(author, POISON)])
    good = await many_posts(graph, author, 10)

    await archive_all(graph)
    await graph.scan.run_pass()

    [page] = await graph.timelines.user(SYSTEM, [author], newest(50))
    assert [post.id for post in page.items] == good[::-1]
    assert await graph.users.posts_counts([author]) == [10]


async def test_a_refused_sign_up_keeps_its_credentials(graph: Graph) -> None:
    """Therefore, its login stays taken after a rebuild."""
    [user] = await crowd(graph, 1, POISON)

    [row] = await archive_all(graph)

    assert row == EventRow(user, "UserCreated", user, None, None)
    assert await graph.archive.credentials([user]) == {user: Credential(user, f"{POISON}0", None, user)}


async def test_credentials_with_a_login_of_another_user_are_left_out(graph: Graph) -> None:
    """A failover has lost the account of the first user, so a second user could take the login."""
    [first] = await crowd(graph, 1)
    await archive_all(graph)
    await graph.store.run("DEL", keys.login("fan0"))
    [second] = await crowd(graph, 1)
    [third] = await crowd(graph, 1, "other")

    rows = await archive_all(graph)

    assert [row.number for row in rows] == [first, second, third]
    assert set(await graph.archive.credentials([first, second, third])) == {first, third}
    assert [letter["entry"] for letter in await dead_letters(graph)] == [entry_id(second)]
