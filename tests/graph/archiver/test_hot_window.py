"""Tests of hot windows: which posts are removed from the store, with any concurrent change."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

import pytest

from graph import Graph, keys
from graph.log.events import PostDeleted, PostPublished
from graph.log.numbers import entry_id
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.graph.archiver.world import FULL, HOT, ArchiveWorld, Meanwhile, queries_of
from tests.support.graph_worlds import (
    append_events,
    cached,
    home,
    ids,
    newest,
    posts,
)
from tests.support.stores import Fault, Killed, Stop, runs, sends


@pytest.mark.parametrize("drain", [False, True], ids=["request", "worker"])
async def test_a_post_that_is_cut_during_its_deletion_is_deleted(
    world: ArchiveWorld, calls: Iterator[int], drain: bool
) -> None:
    """The cut happens between any two calls of the request or of the worker."""
    for call in calls:
        process = await world.restore()
        post = world.posts[world.bob].pop(0)
        world.deleted.add(post)
        if drain:
            await append_events(process, [PostDeleted(world.bob, post)])
        meanwhile = Meanwhile(process, call, world.graph.archiver.work)

        await (process.worker(timedelta(0)).drain() if drain else process.posts.delete(world.bob, post))

        await world.check_pages()
        await world.check()
        if not meanwhile.happened:
            break
    assert call > 3


async def author_with_two_followers(world: ArchiveWorld) -> tuple[int, int]:
    """Sign up an author whom alice and a new user follow, with home caches. Return the author and the new user."""
    fan = (await world.graph.users.sign_up("dave", "long enough")).id
    author = (await world.graph.users.sign_up("erin", "long enough")).id
    for viewer in (world.alice, fan):
        await world.graph.follows.follow(viewer, [author])
        await cached(world.graph, viewer)
    await world.archive()
    return author, fan


async def test_a_post_is_cut_only_after_its_fan_out(world: ArchiveWorld) -> None:
    """Followers whom fan-out has not reached yet would miss the post."""
    slow = world.process(sync_followers=1)
    author, fan = await author_with_two_followers(world)
    written = [event.number for event in await append_events(slow, [PostPublished(author, text) for text in "123456"])]
    await slow.projections.project([event async for event in slow.log.replay(0, written[-1])], Mode.REQUEST)

    await world.graph.archiver.work()
    await world.graph.scan.run_pass()

    assert await world.hot_of(author) == written
    await world.archive()
    assert await world.hot_of(author) == written[-HOT:]
    for viewer in (world.alice, fan):
        assert (await home(slow, viewer))[: len(written)] == written[::-1]


async def test_a_lost_post_is_pushed_to_followers_before_it_is_cut(world: ArchiveWorld) -> None:
    """A failover of the log's shard has lost the post after the request had pushed it to the first follower."""
    process = world.process(sync_followers=1)
    author, fan = await author_with_two_followers(world)
    [lost, *others] = await append_events(process, [PostPublished(author, text) for text in "123456"])
    await process.projections.project([lost], Mode.REQUEST)
    await world.raw.xdel(keys.LOG, entry_id(lost.number))
    await world.raw.delete(keys.FANOUTS, keys.OPEN_FANOUTS)
    pushed = [await world.raw.zscore(keys.home(viewer), lost.number) for viewer in (world.alice, fan)]
    assert pushed.count(None) == 1

    await world.archive()

    assert lost.number not in await world.hot_of(author)
    written = [event.number for event in (lost, *others)]
    for viewer in (world.alice, fan):
        assert (await home(process, viewer, 2))[: len(written)] == written[::-1]


async def test_a_deletion_of_an_archived_post_counts_once(world: ArchiveWorld) -> None:
    """The deletion is projected several times, after its tombstone was trimmed."""
    await world.archive()
    await world.delete(world.bob, 0)
    gone = await world.graph.log.last()
    await world.archive()
    await world.delete(world.bob, -1)
    await world.archive()

    for _ in range(3):
        for event in [await world.graph.log.get(gone), await world.graph.log.get(gone)]:
            assert event is not None
            await world.graph.projections.project([event], Mode.WORKER)
    tombstones = await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1)
    assert set(tombstones) == {"f", str(max(world.deleted))}
    await world.check()


async def test_a_deletion_projected_before_its_post_changes_no_count(world: ArchiveWorld) -> None:
    """The post is never listed, and its row has no content."""
    await world.archive()
    [published] = await append_events(world.graph, [PostPublished(world.bob, "hi")])
    [deleted] = await append_events(world.graph, [PostDeleted(world.bob, published.number)])

    await world.graph.projections.project([deleted], Mode.WORKER)
    await world.graph.projections.project([published], Mode.WORKER)

    world.deleted.add(published.number)
    await world.check()


async def test_a_post_deleted_during_a_late_projection_stays_deleted(world: ArchiveWorld) -> None:
    """The tombstone in its author's timeline was trimmed in the meantime."""
    slow = world.process()
    [published] = await append_events(slow, [PostPublished(world.bob, "hi")])
    stop = Stop(slow.store, runs("list_post"))
    projecting = asyncio.create_task(slow.projections.project([published], Mode.WORKER))
    await stop.reached.wait()
    world.posts[world.bob].append(published.number)
    await world.delete(world.bob, -1)
    await world.archive()
    await world.delete(world.bob, 0)
    await world.archive()
    await world.project_again()
    assert await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1) == ["f"]

    stop.resume()
    await projecting

    await world.check()


async def test_a_record_written_again_after_the_cut_is_removed(world: ArchiveWorld) -> None:
    """The projection that wrote the record removes it or, if its process died, the scan does."""
    await world.archive()
    [cut, *_] = world.posts[world.bob]
    event = (await world.graph.log.get(cut)) or pytest.fail("the log has lost the event")
    await world.graph.projections.project([event], Mode.WORKER)
    assert not await world.raw.exists(keys.post(cut))

    dying = world.process()
    Fault(dying.store, runs("list_post"), Killed())
    with pytest.raises(Killed):
        await dying.projections.project([event], Mode.WORKER)
    assert await world.raw.exists(keys.post(cut))

    await world.check()


async def test_a_record_written_again_during_the_cut_is_removed(world: ArchiveWorld) -> None:
    """The record is written between the two times at which the cut frees records."""
    process = world.process()
    stop = Stop(process.store, runs("cut_posts"))
    cutting = asyncio.create_task(process.archiver.work())
    await stop.reached.wait()
    await world.project_again()
    cut = world.posts[world.bob][:-HOT]
    assert all([await world.raw.exists(keys.post(post)) for post in cut])

    stop.resume()
    await cutting

    assert not any([await world.raw.exists(keys.post(post)) for post in cut])
    await world.check()


async def test_a_process_that_stops_during_a_cut_ends_it(world: ArchiveWorld) -> None:
    """Otherwise posts would stay in the list without records until the next cut."""
    process = world.process()
    stop = Stop(process.store, runs("free_post"))
    cutting = asyncio.create_task(process.archiver.work())
    await stop.reached.wait()

    cutting.cancel()
    await asyncio.sleep(0)
    stop.resume()
    with pytest.raises(asyncio.CancelledError):
        await cutting

    assert await world.hot_of(world.bob) == world.posts[world.bob][-HOT:]
    await world.check()


async def test_a_post_listed_during_the_cut_stops_it(world: ArchiveWorld) -> None:
    """The cut removes exactly the posts that it found in the archive."""
    process = world.process()
    stop = Stop(process.store, runs("cut_posts"))
    cutting = asyncio.create_task(process.archiver.work())
    await stop.reached.wait()
    other = 1
    await world.raw.zadd(keys.posts(world.bob), {str(other): other})
    stop.resume()
    await cutting

    assert other not in await world.hot_of(world.bob), "the next attempt has seen it"
    assert await world.raw.get(keys.cold(world.bob)) == str(FULL + 1 - HOT)
    await world.check_pages()


async def test_two_cuts_of_one_author_count_once(world: ArchiveWorld) -> None:
    """The slower cut notices the changed floor, before it reads the posts or before it removes them."""
    for wanted in (sends("ZRANGE", keys.posts(world.bob)), runs("cut_posts")):
        slow = await world.restore()
        stop = Stop(slow.store, wanted)
        cutting = asyncio.create_task(slow.archiver.work())
        await stop.reached.wait()
        await world.process(hot_age=timedelta(0), hot_newest=2).scan.run_pass()
        floor = await world.floor_of(world.bob)

        stop.resume()
        await cutting

        assert await world.floor_of(world.bob) == floor
        assert await world.hot_of(world.bob) == world.posts[world.bob][-2:]
        await world.check()


async def test_posts_without_rows_are_archived_before_they_are_cut(world: ArchiveWorld) -> None:
    """Rows were deleted from the database by hand, so the records are the last copies."""
    await world.graph.archiver.work()
    await world.publish(world.bob, FULL, drain=True)
    process = world.process()
    stop = Stop(process.store, sends("ARCHIVE", "post_ids"))
    cutting = asyncio.create_task(process.archiver.work())
    await stop.reached.wait()
    rows = {row.number: row for row in await world.rows()}
    lost = world.posts[world.bob][FULL - 1 : FULL + 1]
    for post in lost:
        await world.sql("DELETE FROM events WHERE number = :post", post=post)

    stop.resume()
    await cutting

    assert {row.number: row for row in await world.rows()} == rows
    assert max(lost) <= await world.floor_of(world.bob)
    await world.check()


async def test_a_damaged_record_does_not_keep_other_timelines_from_being_cut(world: ArchiveWorld) -> None:
    """The record's row is lost too, so the record is kept for a repair."""
    await world.graph.archiver.work()
    await world.publish(world.bob, FULL)
    await world.publish(world.carol, FULL)
    await world.graph.worker().drain()
    await world.graph.store.run("DEL", keys.ARCHIVER)
    process = world.process()
    stop = Stop(process.store, sends("ARCHIVE", "post_ids"))
    cutting = asyncio.create_task(process.archiver.work())
    await stop.reached.wait()
    broken = (await world.hot_of(world.bob))[0]
    await world.sql("DELETE FROM events WHERE number = :post", post=broken)
    await world.raw.hset(keys.post(broken), "details", "{")

    stop.resume()
    await cutting
    await world.graph.scan.run_pass()

    assert len(await world.hot_of(world.carol)) == HOT
    assert broken in await world.hot_of(world.bob)
    assert await world.raw.hget(keys.post(broken), "details") == "{"


async def test_many_posts_are_cut_in_steps(world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step removes a bounded number of posts."""
    monkeypatch.setattr("graph.archiver.hot_window_cutter.POSTS_PER_CUT", 4)
    await world.publish(world.bob, 15)

    await world.archive()

    assert len(await world.hot_of(world.bob)) == HOT
    assert world.graph.hot_window.trimmed == FULL + 1 + 15 - HOT
    await world.check()


@pytest.fixture
async def aged(world: ArchiveWorld) -> Callable[[], Awaitable[Graph]]:
    """Return a function that makes all posts old, and scans: an author's newest two stay."""

    async def scan() -> Graph:
        await world.archive()
        graph = world.process(hot_age=timedelta(0), hot_newest=2, hot_posts=100, hot_slack=100)
        await graph.scan.run_pass()
        return graph

    return scan


async def test_old_posts_are_cut_except_the_newest_of_each_author(
    world: ArchiveWorld, aged: Callable[[], Awaitable[Graph]]
) -> None:
    """The first pages of quiet authors need no query."""
    graph = await aged()

    for author in (world.bob, world.carol):
        assert await world.hot_of(author) == world.posts[author][-2:]
        with queries_of(graph) as queries:
            [page] = await graph.timelines.user(SYSTEM, [author], newest(1))
        assert (ids(page.items), page.has_next, queries) == (world.posts[author][:-2:-1], True, [])
    await world.check()


async def test_young_posts_are_not_cut(world: ArchiveWorld) -> None:
    await world.archive()
    before = await world.hot_of(world.carol)
    graph = world.process(hot_age=timedelta(hours=1), hot_newest=0)

    await graph.scan.run_pass()

    assert await world.hot_of(world.carol) == before


async def test_old_posts_that_are_not_archived_are_not_cut(world: ArchiveWorld) -> None:
    """Nor are posts whose projection is not finished."""
    graph = world.process(hot_age=timedelta(0), hot_newest=0)
    await graph.scan.run_pass()
    assert await world.hot_of(world.carol) == world.posts[world.carol]

    await world.graph.archiver.work()
    [post] = await posts(world.graph, world.carol, "new")
    world.posts[world.carol].append(post)
    await graph.scan.run_pass()
    assert await world.hot_of(world.carol) == [post]

    await world.graph.worker().drain()
    await graph.scan.run_pass()
    assert await world.hot_of(world.carol) == [post]
    await world.check()
    await graph.scan.run_pass()
    assert await world.hot_of(world.carol) == []
