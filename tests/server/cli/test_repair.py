"""`fanline repair` in a real process: output, changes and exit codes."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.migrations import VERSION_TABLE
from tests.conftest import CHEAP
from tests.server.cli.test_commands import fanline
from tests.support.graph_worlds import befriend, cached, people, posts, state


@pytest.fixture
async def broken(store_url: str) -> AsyncIterator[dict[str, str]]:
    """Create a store in which carol lacks a follower, bob's home cache a post, and bob's timeline another post."""
    graph = await Graph.open(store_url, CHEAP)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    one, two = await posts(graph, bob, "one", "two")
    await graph.worker().drain()
    await cached(graph, bob)
    async with Redis.from_url(store_url) as raw:
        await raw.zrem(keys.followers(carol), alice)
        await raw.zrem(keys.home(bob), two)
        await raw.zrem(keys.posts(bob), one)
    yield {"FANLINE_STORE_URL": store_url, "alice": str(alice), "carol": str(carol)}
    await graph.close()


async def test_a_repair_corrects_what_a_check_finds(broken: dict[str, str], tmp_path: Path) -> None:
    """A check prints the differences with ids and exits with 1. After a repair, a check finds nothing."""
    environment = {"FANLINE_STORE_URL": broken["FANLINE_STORE_URL"], "FANLINE_DATA_DIR": str(tmp_path)}

    async def stored() -> dict[str, Any]:
        async with Redis.from_url(broken["FANLINE_STORE_URL"], decode_responses=True) as raw:
            return await state(raw, but=("{log}",))

    before = await stored()

    found = fanline("repair", "--check", **environment)

    assert found.returncode == 1
    assert "1 × a follower is missing in the followee's list of followers" in found.stderr
    assert f"user {broken['alice']} follows user {broken['carol']} since" in found.stderr
    assert "1 × a post is missing in its author's timeline" in found.stderr
    assert "1 × a post is missing in a home cache" in found.stderr
    assert "3 differences. Nothing was changed. Run `fanline repair` to correct them." in found.stderr
    assert await stored() == before

    corrected = fanline("repair", **environment)
    again = fanline("repair", "--check", **environment)

    assert (corrected.returncode, again.returncode) == (0, 0)
    assert "3 differences, all corrected." in corrected.stderr
    assert "No differences." in again.stderr


async def test_a_repair_without_its_archive_says_so(broken: dict[str, str], tmp_path: Path) -> None:
    """The repair corrects the other differences and exits with 1."""
    environment = {"FANLINE_STORE_URL": broken["FANLINE_STORE_URL"], "FANLINE_DATA_DIR": str(tmp_path)}
    nowhere = tmp_path / "folder"
    nowhere.mkdir()

    done = fanline("repair", FANLINE_ARCHIVE_URL=f"sqlite:///{nowhere}", **environment)

    assert done.returncode == 1
    assert "Archived posts were not compared" in done.stderr
    assert "3 differences, all corrected." in done.stderr
    assert "Traceback" not in done.stderr


async def test_unprojected_events_are_reported(store_url: str, tmp_path: Path) -> None:
    """Without a worker, the newest events are not compared, and the message says what to do."""
    graph = await Graph.open(store_url, CHEAP)
    await people(graph, "alice")
    await graph.close()

    done = fanline("repair", "--check", FANLINE_STORE_URL=store_url, FANLINE_DATA_DIR=str(tmp_path))

    assert done.returncode == 0
    assert "are not projected yet and were not compared" in done.stderr
    assert "fanline worker --once" in done.stderr


async def test_a_check_neither_creates_nor_migrates_an_archive(store_url: str, tmp_path: Path) -> None:
    """A store that never had an archive is compared without one."""
    graph = await Graph.open(store_url, CHEAP)
    await people(graph, "alice")
    await graph.worker().drain()
    await graph.close()
    file = tmp_path / "archive.sqlite"

    done = fanline("repair", "--check", FANLINE_STORE_URL=store_url, FANLINE_ARCHIVE_URL=f"sqlite:///{file}")

    assert (done.returncode, file.exists()) == (0, False)
    assert "No differences." in done.stderr


async def test_a_check_refuses_an_archive_of_another_version(store_url: str, tmp_path: Path) -> None:
    """The message says so, and nothing is changed."""
    file = tmp_path / "archive.sqlite"
    archive = Archive(f"sqlite:///{file}")
    await archive.migrate()
    await archive.close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")  # noqa: S608 - a constant
    before = file.read_bytes()

    done = fanline("repair", "--check", FANLINE_STORE_URL=store_url, FANLINE_ARCHIVE_URL=f"sqlite:///{file}")

    assert done.returncode == 1
    assert "upgrade" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == before
