"""Refused stores, interrupted rebuilds, and other processes that interfere."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from graph import Graph, keys
from graph.binding import binding_of
from graph.errors import RebuildRefused, StoreUnavailable
from graph.rebuild.rebuild import Rebuild
from graph.store.commands import Command
from tests.graph.rebuild.stores import SMALL, content, empty_store, opened, populate
from tests.support.graph_worlds import PATIENCE, background, cached, home, people, posts
from tests.support.raw import open_raw
from tests.support.stores import Fault, HookedStore, Stop


@pytest.fixture
async def world(store_url: str, url: str) -> AsyncIterator[tuple[Graph, dict[str, Any]]]:
    """Return a graph whose store was lost after every event was archived, and the content that the store had."""
    await empty_store(store_url)
    graph = await opened(store_url, url, store=HookedStore)
    try:
        await populate(graph)
        held = await content(store_url)
        await empty_store(store_url)
        graph.binding.forget()
        yield graph, held
    finally:
        await graph.close()


@pytest.fixture
def lost(world: tuple[Graph, dict[str, Any]]) -> Graph:
    return world[0]


@pytest.fixture
def before(world: tuple[Graph, dict[str, Any]]) -> dict[str, Any]:
    return world[1]


def writes_posts(command: Command) -> bool:
    return any(str(word).startswith("post:") for word in command)


async def test_a_store_with_events_is_refused_and_stays_as_it_is(store_url: str, url: str) -> None:
    await empty_store(store_url)
    graph = await opened(store_url, url)
    try:
        [alice, *_] = await populate(graph)
        held, state = await content(store_url), await graph.archive.state()
        with pytest.raises(RebuildRefused, match="holds events"):
            await graph.rebuild().run()
        assert (await content(store_url), await graph.archive.state()) == (held, state)
        assert await posts(graph, alice, "still accepted")
    finally:
        await graph.close()


async def test_a_store_that_has_lost_only_its_log_is_refused(lost: Graph) -> None:
    await lost.store.run("HSET", keys.user(1), "id", "1")
    with pytest.raises(RebuildRefused, match="holds the key user:"):
        await lost.rebuild().run()


async def test_an_archive_without_events_is_refused(store_url: str, url: str) -> None:
    await empty_store(store_url)
    graph = await opened(store_url, url)
    try:
        with pytest.raises(RebuildRefused, match="no events"):
            await graph.rebuild().run()
        assert await graph.store.run("DBSIZE") == 0
        assert (await graph.archive.state()).store is None
    finally:
        await graph.close()


async def test_an_unfinished_rebuild_from_another_archive_is_refused(
    lost: Graph, before: dict[str, Any], store_url: str, tmp_path: Path
) -> None:
    Fault(lost.store, writes_posts)
    with pytest.raises(StoreUnavailable):
        await lost.rebuild().run()
    other = await opened(store_url, f"sqlite:///{tmp_path}/other.sqlite")
    try:
        await other.archive.bind("x", replacing=None, unused_only=True)
        await other.archive.append([], [], store="x", watermark=0, up_to=9)
        with pytest.raises(RebuildRefused, match="from another archive"):
            await other.rebuild().run()
    finally:
        await other.close()
    await lost.rebuild().run()
    assert await content(store_url) == before


async def test_an_interrupted_rebuild_is_not_served_and_starts_over(
    lost: Graph, before: dict[str, Any], calls: Iterator[int], store_url: str, url: str
) -> None:
    """Each attempt fails at a later command, and leaves nothing behind for the next one."""
    for call in calls:
        seen = iter(range(call + 1))
        fault = Fault(lost.store, lambda command, seen=seen: next(seen, None) is None)  # type: ignore[misc]
        try:
            await lost.rebuild().run()
        except StoreUnavailable:
            if await lost.store.run("EXISTS", keys.REBUILD):
                with pytest.raises(StoreUnavailable):
                    await lost.users.sign_up("mallory", "correct horse")
                lost.binding.forget()
                await lost.store.run("ZADD", keys.posts(1 << 12), 5, "5")
        else:
            if fault.left:
                break
            await empty_store(store_url)
    assert call > 10
    assert await content(store_url) == before


KILLED = """
import asyncio, os, signal, sys
from tests.graph.rebuild.test_interruptions import HookedStore, opened, writes_posts

async def die(commands):
    if any(map(writes_posts, commands)):
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    graph = await opened(sys.argv[1], sys.argv[2], store=HookedStore)
    graph.store.after.append(die)
    await graph.rebuild().run()

asyncio.run(main())
"""


async def test_a_killed_rebuild_is_completed_by_the_next(
    lost: Graph, before: dict[str, Any], store_url: str, url: str
) -> None:
    """After SIGKILL during the first run, the second one restores everything."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, store_url, url)
    assert await process.wait() == -signal.SIGKILL
    assert await lost.store.run("EXISTS", keys.REBUILD)
    assert not await lost.store.run("EXISTS", keys.BINDING)
    assert await content(store_url) != before

    await lost.rebuild().run()

    assert await content(store_url) == before


async def test_a_rebuild_that_another_one_replaces_stops(
    lost: Graph, before: dict[str, Any], store_url: str, url: str
) -> None:
    """The replaced rebuild writes no further users."""
    stop = Stop(lost.store, writes_posts)
    other = await opened(store_url, url)
    steps: list[int] = []
    rebuild = Rebuild(lost.store, lost.archive, SMALL, users=1).run(lambda done, _: steps.append(done))
    try:
        async with background(rebuild) as first:
            await asyncio.wait_for(stop.reached.wait(), PATIENCE)
            await other.rebuild().run()
            stop.resume()
            with pytest.raises(RebuildRefused, match="Another process"):
                await first
        assert steps == [0]
        assert await content(store_url) == before
        assert await people(other, "mallory")
    finally:
        await other.close()


async def test_an_archive_that_another_process_binds_meanwhile_is_refused(lost: Graph) -> None:
    stop = Stop(lost.store, lambda command: keys.REBUILD in command and command[0] == "EVALSHA")
    former = (await lost.archive.state()).store
    async with background(lost.rebuild().run()) as rebuild:
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        assert await lost.archive.bind("another", replacing=former, unused_only=False)
        stop.resume()
        with pytest.raises(RebuildRefused, match="Another process"):
            await rebuild
    assert (await lost.archive.state()).store == "another"
    assert await content(lost.store.url) == {}
    assert not await lost.store.run("EXISTS", keys.BINDING)


async def test_a_store_that_receives_an_event_meanwhile_is_refused(lost: Graph) -> None:
    stop = Stop(lost.store, lambda command: keys.REBUILD in command and command[0] == "EVALSHA")
    former = (await lost.archive.state()).store
    async with background(lost.rebuild().run()) as rebuild:
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        async with open_raw(lost.store.url) as raw:
            await raw.xadd(keys.LOG, {"kind": "x"})
        stop.resume()
        with pytest.raises(RebuildRefused, match="Another process"):
            await rebuild
    assert (await lost.archive.state()).store == former
    assert not await lost.store.run("EXISTS", keys.REBUILD)


async def test_the_former_store_cannot_archive_anything_after_a_rebuild(lost: Graph, store_url: str, url: str) -> None:
    """Its process had bound the archive to the former store."""
    former = await lost.archive.state()
    await lost.rebuild().run()
    now = await lost.archive.state()
    assert (now.id, now.watermark) == (former.id, former.watermark)
    assert now.store != former.store
    assert await lost.store.run("GET", keys.BINDING) == binding_of(now.store or "", now.id)


async def test_home_caches_of_an_incomplete_store_do_not_survive(lost: Graph, store_url: str, url: str) -> None:
    reader = await opened(store_url, url)
    stop = Stop(lost.store, writes_posts)
    try:
        async with background(lost.rebuild().run()) as rebuild:
            await asyncio.wait_for(stop.reached.wait(), PATIENCE)
            [dave] = [user for user in await reader.users.ids_of_logins(["dave"]) if user]
            await cached(reader, dave)
            stop.resume()
            await rebuild
        assert len(await home(reader, dave)) == 11
    finally:
        await reader.close()


async def test_a_login_that_a_client_has_claimed_meanwhile_is_permanent(lost: Graph) -> None:
    """The claim of a sign-up expires, but the account does not."""
    stop = Stop(lost.store, lambda command: keys.login("alice") in command)
    async with background(lost.rebuild().run()) as rebuild:
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        await lost.store.run("HSET", keys.login("alice"), "secret", "wrong", "nonce", "wrong")
        await lost.store.run("EXPIRE", keys.login("alice"), 900)
        stop.resume()
        await rebuild
    assert await lost.store.run("TTL", keys.login("alice")) == -1
    assert (await lost.users.check_password("alice", "correct horse")).login == "alice"
