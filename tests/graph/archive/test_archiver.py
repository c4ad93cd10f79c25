"""The archiver: whatever comes between its steps, no post is lost, none is shown twice, and none comes back."""

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
from tests.graph.archive.moves import BATCH, HOT, Meanwhile, Moving, archive_of, moving
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

Deed = Callable[[Moving], Awaitable[Any]]


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncIterator[Moving]:
    async with moving(store_url, tmp_path) as world:
        yield world


async def move(graph: Graph) -> None:
    """Let a process move what is due."""
    assert graph.archiver is not None
    await graph.archiver.work()


async def test_the_oldest_posts_move_in_batches_and_stay_readable(world: Moving) -> None:
    """What is left hot is at least the newest few; pages, look-ups and counts do not show the difference."""
    moved = list(world.posts[world.bob][:BATCH])

    await move(world.graph)

    assert await world.rows_of(world.bob) == moved
    assert len(await world.hot_of(world.bob)) == HOT
    await world.check_rest()
    await world.publish(world.bob, 2 * BATCH + 1, drain=True)
    await world.check_rest()
    assert len(await world.hot_of(world.bob)) == HOT + 1


@pytest.mark.parametrize("cache", [False, True], ids=["merged", "cached"])
@pytest.mark.parametrize("forward", [True, False], ids=["newest first", "oldest first"])
async def test_readers_miss_nothing_that_moves_at_any_step(world: Moving, forward: bool, cache: bool) -> None:
    """A move comes between any two calls of a page, an author's own page, and a look-up."""
    for call in count():
        reader = await world.again()
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
async def test_readers_of_one_author_miss_nothing_that_moves_at_any_step(world: Moving, forward: bool) -> None:
    """A move comes between any two calls of an author's own timeline, and of a look-up."""
    for call in count():
        reader = await world.again()
        written = world.posts[world.bob]
        meanwhile = Meanwhile(reader, call, lambda: move(world.graph))
        assert await own(reader, world.bob, 3, forward=forward) == written[::-1]
        if not meanwhile.happened:
            break
    for call in count():
        reader = await world.again()
        meanwhile = Meanwhile(reader, call, lambda: move(world.graph))
        assert [post and post.id for post in await reader.posts.get_many(written)] == written
        if not meanwhile.happened:
            break


@pytest.mark.parametrize("drain", [False, True], ids=["request", "worker"])
async def test_a_move_at_any_step_of_a_deletion_leaves_nothing_of_it(world: Moving, drain: bool) -> None:
    """Neither the request that deletes nor the worker that repeats it is disturbed by the archiver, nor disturbs it."""
    for call in count():
        process = await world.again()
        post = world.posts[world.bob].pop(0)
        if drain:
            await process.log.append([PostDeleted(world.bob, post)])
        meanwhile = Meanwhile(process, call, lambda: move(world.graph))

        await (process.worker().drain() if drain else process.posts.delete(world.bob, post))

        await world.check_pages()
        await world.check_rest()
        if not meanwhile.happened:
            break
    assert call > 3


async def test_undrained_posts_wait(world: Moving) -> None:
    """A post is moved only when it has reached everyone; before, whoever is waited for would miss it."""
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


async def test_a_deletion_of_an_archived_post_counts_once(world: Moving) -> None:
    """However often it is repeated, and though its tombstone has made way for the floor long ago."""
    await move(world.graph)
    await world.delete(world.bob, 0, drain=True)
    gone = await world.graph.log.last()
    await world.delete(world.bob, -1, drain=True)

    for _ in range(3):
        for event in [await world.graph.log.get(gone), await world.graph.log.get(gone)]:
            assert event is not None
            await world.graph.projections.project([event], Mode.WORKER)
    assert await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1) == ["f"]
    await world.check_rest()


async def test_a_deletion_that_comes_before_its_post_counts_nothing(world: Moving) -> None:
    """The post was never listed, nor archived; when its publication comes late, it stays away."""
    await move(world.graph)
    [published] = await world.graph.log.append([PostPublished(world.bob, "hi")])
    [deleted] = await world.graph.log.append([PostDeleted(world.bob, published.number)])

    await world.graph.projections.project([deleted], Mode.WORKER)
    await world.graph.projections.project([published], Mode.WORKER)

    await world.check_rest()


async def test_a_post_deleted_between_two_steps_of_its_late_publication_stays_away(world: Moving) -> None:
    """Also when the tombstone in its author's timeline has made way for the floor by then."""
    slow = world.process()
    [published] = await slow.log.append([PostPublished(world.bob, "hi")])
    stop = Stop(slow.store, runs("list_post"))
    projecting = asyncio.create_task(slow.projections.project([published], Mode.WORKER))
    await stop.reached.wait()
    world.posts[world.bob].append(published.number)
    await world.delete(world.bob, -1, drain=True)
    await world.delete(world.bob, 0, drain=True)
    await world.deliver_again()
    assert await world.raw.zrange(keys.gone(keys.posts(world.bob)), 0, -1) == ["f"]

    stop.resume()
    await projecting

    await world.check_rest()


async def test_pages_are_refilled_where_archived_posts_were_deleted(world: Moving) -> None:
    """Until their rows are gone, deleted posts are passed over, and a page is short only at the end."""
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.graph)
    archived = await world.rows_of(world.bob)
    await world.delete(world.bob, *range(1, len(archived) - 1), drain=True)
    assert await world.rows_of(world.bob) == archived

    await world.check_pages()

    await world.check_rest()


async def test_one_author_among_many_is_read_to_the_archive_and_beyond(world: Moving) -> None:
    """Though most authors are read a little, and the posts of the others narrow a page before the last is looked at."""
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


async def test_while_the_archive_is_down_everything_else_goes_on(world: Moving) -> None:
    """Hot posts are read, published and deleted; what needs the archive says so; a move waits and is made later."""
    await move(world.graph)
    down = world.process()
    fault = Fault(down.store, sends("ARCHIVE"), ArchiveUnavailable("a fault of the test"), times=10**6)
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
    await world.check_rest()


async def test_a_running_archiver_survives_an_outage_of_the_archive(
    world: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts the failure, and goes on when the archive is back."""
    monkeypatch.setattr(archiver, "EVERY_SECONDS", 0.01)
    moved = world.posts[world.bob][:BATCH]
    flaky = world.process()
    fault = Fault(flaky.store, sends("ARCHIVE"), ArchiveUnavailable("a fault of the test"), times=3)
    assert flaky.archiver is not None

    async with background(flaky.archiver.run()):
        await asyncio.wait_for(fault.done.wait(), PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while not flaky.archiver.moved:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)

    assert flaky.archiver.failures == 3
    assert await world.rows_of(world.bob) == moved
    await world.check_rest()


async def test_posts_that_the_archive_lost_stay_in_the_store(world: Moving) -> None:
    """A move that broke off is not finished on trust: what is dropped from the store is what the archive holds."""
    mover = world.process()
    Fault(mover.store, runs("trim_posts"), Killed())
    with pytest.raises(Killed):
        await move(mover)
    await archive_of(mover).delete(world.posts[world.bob][:1])

    await move(world.graph)

    assert await world.hot_of(world.bob) == world.posts[world.bob]
    assert await world.raw.exists(keys.ARCHIVABLE)


async def test_a_record_that_was_written_again_stays_if_the_archive_lost_the_row(world: Moving) -> None:
    """A repeated publication has brought the text back from the log: it may be all there is."""
    post, kept = world.posts[world.bob][:BATCH]
    await move(world.graph)
    await archive_of(world.graph).delete([post])
    await world.deliver_again()

    await move(world.graph)

    assert await world.raw.exists(keys.post(post))
    assert not await world.raw.exists(keys.post(kept))


async def test_an_archive_that_lacks_posts_gets_no_more(world: Moving) -> None:
    """Somebody put an older archive in place: nothing is moved on top of the gap, and the failure is counted."""
    await move(world.graph)
    await world.publish(world.bob, BATCH, drain=True)
    await world.forget_rows()
    hot = await world.hot_of(world.bob)

    await move(world.graph)

    assert world.graph.archiver is not None
    assert world.graph.archiver.failures == 1
    assert await world.hot_of(world.bob) == hot
    assert await world.rows_of(world.bob) == []


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cold", [False, True], ids=["first", "later"])
async def test_a_move_that_dies_at_any_step_is_finished_by_another(world: Moving, cold: bool, late: bool) -> None:
    """Nothing is lost meanwhile, and nothing is left behind: of the first move, or of one with a past."""
    for step in count():
        mover = await world.again()
        if cold:
            await move(world.graph)
            await world.delete(world.bob, 0, drain=True)
            await world.publish(world.bob, BATCH, drain=True)
            await world.deliver_again()
        death = Death(mover.store, step, after=late)
        try:
            await move(mover)
        except Crashed:
            await world.check_pages()
        await world.check_rest()
        if not death.happened:
            break
    assert step > 15


async def delete_and_clear(world: Moving) -> None:
    await world.delete(world.bob, 1, drain=True)
    await move(world.process())


async def delete_and_publish(world: Moving) -> None:
    await world.delete(world.bob, 0, -1, drain=True)
    await world.publish(world.bob, 3, drain=True)


async def delete_and_deliver_everything_again(world: Moving) -> None:
    await world.delete(world.bob, 0)
    await world.deliver_again()


async def move_first(world: Moving) -> None:
    await move(world.process())


async def move_twice(world: Moving) -> None:
    await move(world.process())
    await world.delete(world.bob, 0, 2)
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.process())


async def delete_the_batch_and_move_the_next(world: Moving) -> None:
    await world.delete(world.bob, *range(BATCH), drain=True)
    await world.publish(world.bob, 2 * BATCH, drain=True)
    await move(world.process())


@pytest.mark.parametrize(
    "deed",
    [
        delete_and_clear,
        delete_and_publish,
        delete_and_deliver_everything_again,
        move_first,
        move_twice,
        delete_the_batch_and_move_the_next,
    ],
)
async def test_whatever_happens_at_any_step_of_a_move_is_right(world: Moving, deed: Deed) -> None:
    """Deletions, publications, late events and other archivers come between any two of its calls."""
    for call in count():
        mover = await world.again()
        meanwhile = Meanwhile(mover, call, lambda: deed(world))

        await move(mover)

        assert mover.archiver is not None
        assert mover.archiver.failures == 0
        await world.check_pages()
        await world.check_rest()
        if not meanwhile.happened:
            break
    assert call > 15
