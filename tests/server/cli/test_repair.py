"""`fanline repair` in a real process: output, changes and exit codes."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.migrations import VERSION_TABLE
from tests.conftest import CHEAP
from tests.server.cli.test_commands import fanline
from tests.support.graph_worlds import befriend, cached, people, posts, state
from tests.support.graphs import archive_file, open_graph
from tests.support.raw import open_raw


@pytest.fixture
async def graph(store_url: str) -> AsyncIterator[Graph]:
    """Open a graph in an empty store."""
    graph = await open_graph(store_url, CHEAP)
    yield graph
    await graph.close()


@pytest.fixture
def environment(store_url: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a command that uses the graph's store and archive."""
    archive = f"sqlite:///{archive_file(store_url)}"
    return {"FANLINE_STORE_URL": store_url, "FANLINE_ARCHIVE_URL": archive, "FANLINE_DATA_DIR": str(tmp_path)}


async def break_three(graph: Graph) -> tuple[int, int]:
    """Remove a follower of carol, and posts from the home cache and the timeline of bob. Return alice and carol."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    one, two = await posts(graph, bob, "one", "two")
    await graph.worker().drain()
    await graph.archiver.work()
    await cached(graph, bob)
    async with open_raw(graph.store.url) as raw:
        await raw.zrem(keys.followers(carol), alice)
        await raw.zrem(keys.home(bob), two)
        await raw.zrem(keys.posts(bob), one)
    return alice, carol


async def test_a_repair_corrects_what_a_check_finds(graph: Graph, environment: dict[str, str]) -> None:
    """A check prints the differences with ids and exits with 1. After a repair, a check finds nothing."""
    alice, carol = await break_three(graph)

    async def stored() -> dict[str, Any]:
        async with open_raw(graph.store.url) as raw:
            return await state(raw, but=("{log}",))

    before = await stored()

    found = fanline("repair", "--check", **environment)

    assert found.returncode == 1
    assert "1 × a follow or an unfollow is missing or wrong" in found.stderr
    assert f"follower {alice} of user {carol}: nothing instead of follow" in found.stderr
    assert "1 × a post is missing or misplaced in a timeline or another list" in found.stderr
    assert "1 × a home cache is malformed, lacks a post" in found.stderr
    assert "3 differences. Nothing was changed. Run `fanline repair` to correct them." in found.stderr
    assert await stored() == before

    corrected = fanline("repair", **environment)
    again = fanline("repair", "--check", **environment)

    assert (corrected.returncode, again.returncode) == (0, 0)
    assert "3 differences, all corrected." in corrected.stderr
    assert "No differences." in again.stderr


async def test_a_repair_without_an_archive_fails(graph: Graph, environment: dict[str, str], tmp_path: Path) -> None:
    """Nothing is compared, and the message names the archive."""
    await break_three(graph)
    nowhere = tmp_path / "folder"
    nowhere.mkdir()

    done = fanline("repair", **environment | {"FANLINE_ARCHIVE_URL": f"sqlite:///{nowhere}"})

    assert done.returncode == 1
    assert "The archive does not answer" in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_repair_with_another_archive_fails(graph: Graph, environment: dict[str, str], tmp_path: Path) -> None:
    await break_three(graph)

    done = fanline("repair", **environment | {"FANLINE_ARCHIVE_URL": f"sqlite:///{tmp_path / 'another.sqlite'}"})

    assert done.returncode == 1
    assert "another archive" in done.stderr
    assert "Traceback" not in done.stderr


async def test_events_that_are_not_archived_are_reported(graph: Graph, environment: dict[str, str]) -> None:
    """Without a worker, the newest events are not compared, and the message says what to do."""
    await people(graph, "alice")

    done = fanline("repair", "--check", **environment)

    assert done.returncode == 0
    assert "have not been projected and archived yet, so they were not compared" in done.stderr.replace("\n", " ")
    assert "fanline worker --once" in done.stderr


async def test_a_check_does_not_create_an_archive(graph: Graph, environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "archive.sqlite"

    done = fanline("repair", "--check", **environment | {"FANLINE_ARCHIVE_URL": f"sqlite:///{file}"})

    assert (done.returncode, file.exists()) == (1, False)
    assert "Traceback" not in done.stderr


async def test_a_check_refuses_an_archive_of_another_version(environment: dict[str, str], tmp_path: Path) -> None:
    """The message says so, and nothing is changed."""
    file = tmp_path / "archive.sqlite"
    archive = Archive(f"sqlite:///{file}")
    await archive.migrate()
    await archive.close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")  # noqa: S608 - a constant
    before = file.read_bytes()

    done = fanline("repair", "--check", **environment | {"FANLINE_ARCHIVE_URL": f"sqlite:///{file}"})

    assert done.returncode == 1
    assert "upgrade" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == before
