"""Tests of the archiver: with any concurrent operation or crash, no post is lost, duplicated or restored."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from graph import Graph, keys
from graph.archive import archiver
from graph.errors import ArchiveUnavailable
from graph.log.events import PostDeleted, PostPublished
from graph.projections.mode import Mode
from tests.graph.archive.moves import BATCH, HOT, ArchiveWorld, Meanwhile, archive_of, archive_world
from tests.support.graph_worlds import (
    PATIENCE,
    background,
    cached,
    crowd,
    home,
    home_upwards,
    ids,
    many_posts,
    newest,
    oldest,
    own,
    posts,
)
from tests.support.stores import Crashed, Death, Fault, Killed, Stop, runs, sends

Action = Callable[[ArchiveWorld], Awaitable[Any]]


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncIterator[ArchiveWorld]:
    async with archive_world(store_url, tmp_path) as world:
        yield world


async def move(graph: Graph) -> None:
    """Run the archiver of a process."""
    assert graph.archiver is not None
    await graph.archiver.work()


async def test_the_oldest_posts_move_in_batches_and_stay_readable(world: ArchiveWorld) -> None:
    """The newest posts stay hot. Pages, look-ups and counts do not change."""
    moved = list(world.posts[world.bob][:BATCH])

    await move(world.graph)

    assert await world.rows_of(world.bob) == moved
    assert len(await world.hot_of(world.bob)) == HOT
    await world.check_final_state()
    await world.publish(world.bob, 2 * BATCH + 1, drain=True)
    await world.check_final_state()
    assert len(await world.hot_of(world.bob)) == HOT + 1


@pytest.mark.parametrize("cache", [False, True], ids=["merged", "cached"])
@pytest.mark.parametrize("forward", [True, False], ids=["newest first", "oldest first"])
async def test_a_home_page_misses_no_post_that_moves_meanwhile(world: ArchiveWorld, forward: bool, cache: bool) -> None:
    """The move happens between any two calls of the read."""
    for call in count():
        reader = await world.restore()
        if not cache:
            await world.raw.delete(keys.home(world.alice))
        window = newest(7) if forward else oldest(7)
        meanwhile = Meanwhile(reader, call, lambda: move(world.graph))

        page = await reader.timelines.home(world.alice, window)
        await reader.timelines.wait_for_rebuilds()

        assert ids(page.items) == (world.home()[:7] if forward else world.home()[-7:])
        if not meanwhile.happened:
            break
    assert call > 2


@pytest.mark.parametrize("forward", [True, False], ids=["newest first", "oldest first"])
async def test_a_users_timeline_misses_no_post_that_moves_meanwhile(world: ArchiveWorld, forward: bool) -> None:
    """The move happens between any two calls of the timeline or of a look-up."""
    for call in count():
        reader = await world.restore()
        written = world.posts[world.bob]
        meanwhile = Meanwhile(reader, call, lambda: move(world.graph))
        assert await own(reader, world.bob, 3, forward=forward) == written[::-1]
        if not meanwhile.happened:
            break
    for call in count():
        reader = await world.restore()
        meanwhile = Meanwhile(reader, call, lambda: move(world.graph))
        assert [post and post.id for post in await reader.posts.get_many(written)] == written
        if not meanwhile.happened:
            break


@pytest.mark.parametrize("drain", [False, True], ids=["request", "worker"])
async def test_a_post_that_moves_during_its_deletion_is_deleted(world: ArchiveWorld, drain: bool) -> None:
    """The move happens between any two calls of the request or of the worker."""
    for call in count():
        process = await world.restore()
        post = world.posts[world.bob].pop(0)
        if drain:
            await process.log.append([PostDeleted(world.bob, post)])
        meanwhile = Meanwhile(process, call, lambda: move(world.graph))

        await (process.worker().drain() if drain else process.posts.delete(world.bob, post))

        await world.check_pages()
        await world.check_final_state()
        if not meanwhile.happened:
            break
    assert call > 3


async def test_a_post_is_moved_only_after_its_fan_out(world: ArchiveWorld) -> None:
    """Followers whom fan-out has not reached yet would miss the post."""
    slow = world.process(sync_followers=1)
    fan = (await world.graph.users.sign_up("dave", "long enough")).id
    author = (await world.graph.users.sign_up("erin", "long enough")).id
    for viewer in (world.alice, fan):
        await world.graph.follows.follow(viewer, [author])
        await cached(world.graph, viewer)
    await world.graph.worker().drain()
    await move(world.graph)
    written = await posts(slow, author, *"123456")
    event = await slow.log.get(written[-1])
    assert event is not None
    await slow.projections.project([event], Mode.WORKER)
    assert await world.raw.zscore(keys.ARCHIVABLE, str(author)) == written[-1]

    await move(world.graph)

    assert await world.hot_of(author) == written
    await slow.worker().drain()
    await move(slow)
    assert await world.hot_of(author) == written[BATCH:]
    for viewer in (world.alice, fan):
        assert (await home(slow, viewer))[: len(written)] == written[::-1]


async def test_a_deletion_of_an_archived_post_counts_once(world: ArchiveWorld) -> None:
    """The deletion is projected several times, after its tombstone was trimmed."""
    await move(world.graph)
    await world.delete(world.bob, 0, drain=True)
    gone = await world.graph.log.last()
    await world.delete(world.bob, -1, drain=True)

    for _ in range(3):
        for event in [await world.graph.log.get(gone), await world.graph.log.get(gone)]:
            assert event is not None
            await world.graph.projections.project([event], Mode.WORKER)
    assert await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1) == ["f"]
    await world.check_final_state()


async def test_a_deletion_projected_before_its_post_changes_no_count(world: ArchiveWorld) -> None:
    """The post is never listed."""
    await move(world.graph)
    [published] = await world.graph.log.append([PostPublished(world.bob, "hi")])
    [deleted] = await world.graph.log.append([PostDeleted(world.bob, published.number)])

    await world.graph.projections.project([deleted], Mode.WORKER)
    await world.graph.projections.project([published], Mode.WORKER)

    await world.check_final_state()


async def test_a_post_deleted_during_a_late_projection_stays_deleted(world: ArchiveWorld) -> None:
    """The tombstone in its author's timeline was trimmed in the meantime."""
    slow = world.process()
    [published] = await slow.log.append([PostPublished(world.bob, "hi")])
    stop = Stop(slow.store, runs("list_post"))
    projecting = asyncio.create_task(slow.projections.project([published], Mode.WORKER))
    await stop.reached.wait()
    world.posts[world.bob].append(published.number)
    await world.delete(world.bob, -1, drain=True)
    await world.delete(world.bob, 0, drain=True)
    await world.project_again()
    assert await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1) == ["f"]

    stop.resume()
    await projecting

    await world.check_final_state()


async def test_pages_skip_rows_of_deleted_posts(world: ArchiveWorld) -> None:
    """Only the last page is short."""
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.graph)
    archived = await world.rows_of(world.bob)
    await world.delete(world.bob, *range(1, len(archived) - 1), drain=True)
    assert await world.rows_of(world.bob) == archived

    await world.check_pages()

    await world.check_final_state()


async def test_a_merge_reads_the_archived_posts_of_one_author_among_many(world: ArchiveWorld) -> None:
    """Only one author has archived posts. Its hot posts are newer and its archived posts older than the others'."""
    graph = world.process(home_size=2, single_slot=False)
    viewer, *others, busy = await crowd(graph, 10)
    await graph.follows.follow(viewer, [*others, busy])
    written = await many_posts(graph, busy, 1)
    for other in others:
        written += await many_posts(graph, other, 3)
    written += await many_posts(graph, busy, HOT + 2 * BATCH - 1)
    await graph.worker().drain()
    await move(graph)
    assert await world.hot_of(busy) == written[-HOT:]

    for size in (1, 4, 9):
        await world.raw.delete(keys.home(viewer))
        assert await home(graph, viewer, size) == written[::-1]
        assert await home_upwards(graph, viewer, size) == written[::-1]
        await graph.timelines.wait_for_rebuilds()


async def test_hot_posts_need_no_archive(world: ArchiveWorld) -> None:
    """While the archive is down, hot posts are read, published and deleted. Reads of older posts fail, moves wait."""
    await move(world.graph)
    down = world.process()
    fault = Fault(down.store, sends("ARCHIVE"), ArchiveUnavailable("injected fault"), times=10**6)
    for read in (
        home(down, world.alice),
        home_upwards(down, world.alice),
        own(down, world.bob, 3),
        down.posts.get_many(await world.rows_of(world.bob)),
    ):
        with pytest.raises(ArchiveUnavailable):
            await read

    world.graph = down
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await world.delete(world.bob, -1, drain=True)
    assert ids((await down.timelines.home(world.alice, newest(3))).items) == world.home()[:3]
    assert [post is None for post in await down.posts.get_many(world.posts[world.bob][-2:])] == [False, False]
    with pytest.raises(ArchiveUnavailable):
        await move(down)

    fault.left = 0
    await world.check_final_state()


async def test_a_running_archiver_survives_an_outage_of_the_archive(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failures are counted, and moves continue after the outage."""
    monkeypatch.setattr(archiver, "INTERVAL_SECONDS", 0.01)
    moved = world.posts[world.bob][:BATCH]
    flaky = world.process()
    fault = Fault(flaky.store, sends("ARCHIVE"), ArchiveUnavailable("injected fault"), times=3)
    assert flaky.archiver is not None

    async with background(flaky.archiver.run()):
        await asyncio.wait_for(fault.done.wait(), PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while not flaky.archiver.moved:  # noqa: ASYNC110 - the archiver sends no notification
                await asyncio.sleep(0.01)

    assert flaky.archiver.failures == 3
    assert await world.rows_of(world.bob) == moved
    await world.check_final_state()


async def test_posts_without_rows_stay_in_the_store(world: ArchiveWorld) -> None:
    """An unfinished move compares the posts with the rows again before it removes them."""
    mover = world.process()
    Fault(mover.store, runs("trim_posts"), Killed())
    with pytest.raises(Killed):
        await move(mover)
    await archive_of(mover).delete(world.posts[world.bob][:1])

    await move(world.graph)

    assert await world.hot_of(world.bob) == world.posts[world.bob]
    assert await world.raw.exists(keys.ARCHIVABLE)


async def test_nothing_is_moved_to_an_archive_with_missing_posts(world: ArchiveWorld) -> None:
    """The archive was replaced by an older copy. The failure is counted."""
    await move(world.graph)
    await world.publish(world.bob, BATCH, drain=True)
    await world.forget_rows()
    hot = await world.hot_of(world.bob)

    await move(world.graph)

    assert world.graph.archiver is not None
    assert world.graph.archiver.failures == 1
    assert await world.hot_of(world.bob) == hot
    assert await world.rows_of(world.bob) == []


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cold", [False, True], ids=["first", "later"])
async def test_a_move_that_crashes_at_any_step_is_finished_by_another_process(
    world: ArchiveWorld, cold: bool, late: bool
) -> None:
    """Pages are correct after the crash, for an author's first move and for a later one."""
    for step in count():
        mover = await world.restore()
        if cold:
            await move(world.graph)
            await world.delete(world.bob, 0, drain=True)
            await world.publish(world.bob, BATCH, drain=True)
            await world.project_again()
        death = Death(mover.store, step, after=late)
        try:
            await move(mover)
        except Crashed:
            await world.check_pages()
        await world.check_final_state()
        if not death.happened:
            break
    assert step > 15


async def delete_and_clear(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 1, drain=True)
    await move(world.process())


async def delete_and_publish(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0, -1, drain=True)
    await world.publish(world.bob, 3, drain=True)


async def delete_and_deliver_everything_again(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0)
    await world.project_again()


async def move_first(world: ArchiveWorld) -> None:
    await move(world.process())


async def move_twice(world: ArchiveWorld) -> None:
    await move(world.process())
    await world.delete(world.bob, 0, 2)
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.process())


async def delete_the_batch_and_move_the_next(world: ArchiveWorld) -> None:
    await world.delete(world.bob, *range(BATCH), drain=True)
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.process())


@pytest.mark.slow
@pytest.mark.parametrize(
    "action",
    [
        delete_and_clear,
        delete_and_publish,
        delete_and_deliver_everything_again,
        move_first,
        move_twice,
        delete_the_batch_and_move_the_next,
    ],
)
async def test_a_concurrent_action_at_any_step_of_a_move_is_applied(world: ArchiveWorld, action: Action) -> None:
    """Deletions, posts, repeated events and other archivers run between any two calls of the move."""
    for call in count():
        mover = await world.restore()
        meanwhile = Meanwhile(mover, call, lambda: action(world))

        await move(mover)

        assert mover.archiver is not None
        assert mover.archiver.failures == 0
        await world.check_pages()
        await world.check_final_state()
        if not meanwhile.happened:
            break
    assert call > 15
