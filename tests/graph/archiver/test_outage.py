"""Tests of an outage of the archive: the log keeps the events, up to its limit."""

import asyncio
from datetime import timedelta

import pytest

from graph import Graph, keys
from graph.errors import ArchiveUnavailable, Overloaded
from graph.visibility.views import SYSTEM
from tests.graph.archiver.world import FULL, ArchiveWorld
from tests.support.graph_worlds import PATIENCE, background, ids, newest, oldest, posts
from tests.support.stores import Fault, sends

LIMIT = 20


def without_archive(world: ArchiveWorld) -> tuple[Graph, Fault]:
    """Open a process whose archive does not answer, with a small log."""
    graph = world.process(log_limit=LIMIT)
    return graph, Fault(graph.store, sends("ARCHIVE"), ArchiveUnavailable("injected fault"), times=10**6)


async def test_writes_go_on_until_the_log_is_almost_full(world: ArchiveWorld) -> None:
    """Then only deletions, unfollows and log-outs continue. After the outage, all events are archived and trimmed."""
    session = await world.graph.sessions.start(world.bob)
    await world.archive()
    await world.graph.housekeeping.tidy()
    assert await world.raw.xlen(keys.LOG) == 0
    before = await world.graph.log.trimmed()
    world.graph, fault = without_archive(world)

    await world.publish(world.bob, LIMIT * 9 // 10)
    for write in (
        posts(world.graph, world.carol, "refused"),
        world.graph.follows.follow(world.bob, [world.carol]),
        world.graph.users.update_profile(world.bob, name="refused"),
    ):
        with pytest.raises(Overloaded):
            await write
    await world.delete(world.bob, -1)
    await world.graph.sessions.end(world.bob, session.id)
    with pytest.raises(Overloaded):
        await world.graph.posts.delete(world.bob, world.posts[world.bob][-1])
    with pytest.raises(Overloaded):
        await world.graph.follows.unfollow(world.alice, [world.carol])

    await world.graph.worker().drain()
    with pytest.raises(ArchiveUnavailable):
        await world.graph.archiver.work()
    await world.graph.housekeeping.tidy()
    assert await world.raw.xlen(keys.LOG) == LIMIT, "an event that is not archived was removed"
    assert await world.graph.log.trimmed() == before

    fault.left = 0
    await world.archive()
    await world.graph.housekeeping.tidy()
    assert await world.raw.xlen(keys.LOG) == 0
    await world.publish(world.bob, 1)
    await world.check()


async def test_only_pages_that_need_the_archive_fail(world: ArchiveWorld) -> None:
    """Pages above the archive floor are served, in both directions, with and without a cache."""
    await world.archive()
    floor, hot = await world.floor_of(world.bob), (await world.hot_of(world.bob))[::-1]
    graph, fault = without_archive(world)

    for _ in range(2):
        page = await graph.timelines.home(world.alice, newest(2))
        assert (ids(page.items), page.has_next) == (hot[:2], True)
        page = await graph.timelines.home(world.alice, oldest(2, before=floor))
        assert ids(page.items) == hot[-2:]
        with pytest.raises(ArchiveUnavailable):
            await graph.timelines.home(world.alice, newest(5, after=hot[-1]))
        await world.raw.delete(keys.home(world.alice))
    [page] = await graph.timelines.user(SYSTEM, [world.bob], newest(2))
    assert (ids(page.items), page.has_next) == (hot[:2], True)
    [page] = await graph.timelines.user(SYSTEM, [world.carol], newest(10))
    assert ids(page.items) == world.posts[world.carol][::-1], "carol has no archived posts"
    with pytest.raises(ArchiveUnavailable):
        await graph.timelines.user(SYSTEM, [world.bob], newest(3))
    with pytest.raises(ArchiveUnavailable):
        await graph.timelines.user(SYSTEM, [world.bob], oldest(1))

    await graph.timelines.wait_for_rebuilds()
    fault.left = 0
    await world.check_pages(graph)


async def test_home_caches_do_not_change_during_an_outage(world: ArchiveWorld) -> None:
    """A look-up without a reply does not mean that the posts are deleted."""
    await world.archive()
    before = await world.raw.zrange(keys.home(world.alice), 0, -1)
    graph, _ = without_archive(world)

    for window in (newest(7), oldest(7)):
        with pytest.raises(ArchiveUnavailable):
            await graph.timelines.home(world.alice, window)

    assert await world.raw.zrange(keys.home(world.alice), 0, -1) == before


async def test_a_running_archiver_survives_an_outage(world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures are counted, and the log is archived after the outage."""
    monkeypatch.setattr("graph.archiver.archiver.INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr("graph.archiver.archiver.RETRY_SECONDS", 0.01)
    flaky = world.process()
    fault = Fault(flaky.store, sends("ARCHIVE"), ArchiveUnavailable("injected fault"), times=3)

    async with background(flaky.archiver.run()), asyncio.timeout(PATIENCE):
        await fault.done.wait()
        while not flaky.archiver.archived:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)

    assert flaky.archiver.failures == 3
    await world.check()


async def test_a_log_is_trimmed_only_as_far_as_it_is_projected_and_archived(world: ArchiveWorld) -> None:
    """The same limit applies to the scrubbing of deleted posts."""
    [post] = world.posts[world.carol][:1]
    await world.delete(world.carol, 0, drain=True)
    await world.graph.housekeeping.tidy()
    assert await world.graph.log.get(post) is not None

    await world.graph.archiver.work()
    later = await posts(world.graph, world.carol, "later")
    world.posts[world.carol] += later
    await world.process(log_retention=timedelta(hours=1)).housekeeping.tidy()
    assert await world.graph.log.get(post) is None
    await world.graph.housekeeping.tidy()

    assert [event.number async for event in world.graph.log.replay(0, later[-1])] == later
    await world.check()


async def test_a_process_that_starts_during_an_outage_writes_and_reads_hot_posts(world: ArchiveWorld) -> None:
    await world.publish(world.bob, FULL)
    await world.archive()
    await world.graph.housekeeping.tidy()
    graph, _ = without_archive(world)

    [post] = await posts(graph, world.bob, "hi")

    world.posts[world.bob].append(post)
    [page] = await graph.timelines.user(SYSTEM, [world.bob], newest(1))
    assert ids(page.items) == [post]
    await world.check()
