"""Tests of cold posts: wrong, unavailable or damaged archives, and reads across the archive floor."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable, WrongArchive
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.projections.mode import Mode
from resolvers.loaders import Loaders
from tests.conftest import CHEAP
from tests.support.graph_worlds import counts_of, crowd, home, many_posts, newest, own

Opened = Callable[[str], Awaitable[Graph]]


@pytest.fixture
async def archived_in(store_url: str, tmp_path: Path) -> AsyncIterator[Opened]:
    """Return a function that opens a graph with the archive of this name, or without one if the name is empty."""
    opened: list[Graph] = []

    async def open_(name: str) -> Graph:
        archive = Archive(f"sqlite:///{tmp_path}/{name}.sqlite") if name else None
        tuning = replace(CHEAP, hot_posts=15, archive_batch=10, home_size=40)
        opened.append(await Graph.open(store_url, tuning, archive=archive))
        return opened[-1]

    yield open_
    for graph in opened:
        await graph.timelines.wait_for_rebuilds()
        await graph.close()


async def move(graph: Graph) -> None:
    """Run the worker and the archiver."""
    await graph.worker(timedelta(0)).drain()
    assert graph.archiver is not None
    await graph.archiver.work()


async def test_rows_of_posts_missing_in_the_store_are_kept(archived_in: Opened, raw: Redis) -> None:
    """The rows may be the last copies. The archiver skips the author until a repair."""
    graph = await archived_in("archive")
    [author] = await crowd(graph, 1)
    ids = await many_posts(graph, author, 40)
    await move(graph)
    assert graph.archive is not None
    before = await graph.archive.ids(author, 0, ids[-1])
    assert len(before) >= 20
    await raw.delete(f"posts:{{{author}}}")
    await many_posts(graph, author, 30)

    await move(graph)

    assert graph.archiver is not None
    assert graph.archiver.failures
    assert await graph.archive.ids(author, 0, ids[-1]) == before


@pytest.mark.parametrize("other", ["another", ""])
async def test_a_wrong_archive_or_none_is_not_read(archived_in: Opened, raw: Redis, other: str) -> None:
    """Pages that need older posts fail, even if both graphs were opened before the first move. Caches do not change."""
    right, wrong = await archived_in("archive"), await archived_in(other)
    viewer, author = await crowd(right, 2)
    await right.commit([Followed(viewer, author)])
    ids = await many_posts(right, author, 45)
    await wrong.binding.check()
    await home(right, viewer)
    await right.timelines.wait_for_rebuilds()
    await move(right)
    before = await raw.zrange(f"home:{{{viewer}}}", 0, -1)

    with pytest.raises(ArchiveUnavailable):
        await home(wrong, viewer)
    with pytest.raises(ArchiveUnavailable):
        await own(wrong, author)
    with pytest.raises(ArchiveUnavailable):
        await wrong.posts.get_many(ids)
    with pytest.raises(WrongArchive if other else ArchiveUnavailable):
        await wrong.binding.check()
    assert await raw.zrange(f"home:{{{viewer}}}", 0, -1) == before
    assert await home(right, viewer) == await own(right, author) == ids[::-1]


async def test_a_damaged_record_does_not_block_other_authors(archived_in: Opened, raw: Redis) -> None:
    """The failure is counted, and the posts of other authors move."""
    graph = await archived_in("archive")
    bad, good = await crowd(graph, 2)
    broken, *_ = await many_posts(graph, bad, 40)
    await many_posts(graph, good, 40)
    await graph.worker().drain()
    await raw.hdel(f"post:{{{broken}}}", "text")

    assert graph.archiver is not None
    await graph.archiver.work()

    assert graph.archiver.failures == 1
    assert await raw.zcard(f"posts:{{{good}}}") <= 25
    assert await raw.zrange("{log}:archivable", 0, -1) == [str(bad)]


async def test_an_unavailable_archive_fails_only_the_items_of_a_batch_that_need_it(archived_in: Opened) -> None:
    graph = await archived_in("archive")
    quiet, busy = await crowd(graph, 2)
    [only] = await many_posts(graph, quiet, 1)
    ids = await many_posts(graph, busy, 40)
    await move(graph)
    away = await archived_in("")
    loaders = Loaders(away, None)

    hot, cold = loaders.user_timelines.load((quiet, newest(30))), loaders.user_timelines.load((busy, newest(30)))
    assert [post.id for post in (await hot).items] == [only]
    with pytest.raises(ArchiveUnavailable):
        await cold
    known, unknown = loaders.posts.load(only), loaders.posts.load(ids[0])
    found = await known
    assert found is not None
    assert found.id == only
    with pytest.raises(ArchiveUnavailable):
        await unknown


async def test_skipping_many_deleted_posts_takes_few_round_trips(archived_in: Opened) -> None:
    """The size of each further read grows."""
    graph = await archived_in("archive")
    [author] = await crowd(graph, 1)
    ids = await many_posts(graph, author, 1100)
    await move(graph)
    for post in ids[50:]:
        await graph.posts.delete(author, post)
    trips = graph.store.round_trips

    [page] = await graph.timelines.user([author], newest(1))

    assert [post.id for post in page.items] == [ids[49]]
    assert page.has_next
    assert graph.store.round_trips - trips <= 26


async def test_interrupted_deliveries_do_not_make_a_dead_letter(archived_in: Opened, raw: Redis) -> None:
    """Only failed deliveries count."""
    graph = await archived_in("archive")
    alice, bob = await crowd(graph, 2)
    await graph.worker().drain()
    [event] = await graph.log.append([Followed(alice, bob)])
    for _ in range(8):
        worker = graph.worker(timedelta(milliseconds=1))
        entries = await worker._events.read(graph.store) or await worker._events.claim()
        with pytest.raises(InterruptedError):
            async with worker._events.lease([entry for entry, _ in entries]):
                raise InterruptedError
        await worker._events._release([entry_id(event.number)])

    assert await graph.worker(timedelta(0)).drain() == event.number
    assert await graph.dead_letters.oldest() == []
    assert bob in await graph.follows.followed_by(alice)
    assert await raw.xlen("{log}:dead") == 0


async def test_repeating_the_event_of_an_archived_post_changes_nothing(archived_in: Opened) -> None:
    graph = await archived_in("archive")
    [author] = await crowd(graph, 1)
    ids = await many_posts(graph, author, 40)
    await move(graph)

    events = [event async for event in graph.log.replay(0, ids[-1]) if isinstance(event.body, PostPublished)]
    await graph.projections.project(events, Mode.WORKER)

    assert await own(graph, author) == ids[::-1]
    [counts] = await counts_of(graph, [author])
    assert counts.posts == 40


async def test_a_cache_of_one_busy_and_many_quiet_authors_misses_no_post(archived_in: Opened) -> None:
    """The quiet authors' posts are older than the busy author's hot posts."""
    graph = await archived_in("archive")
    viewer, busy, *quiet = await crowd(graph, 32)
    await graph.commit([Followed(viewer, author) for author in (busy, *quiet)])
    ids = [post for author in quiet[:5] for post in await many_posts(graph, author, 1)]
    ids += await many_posts(graph, busy, 44)
    await move(graph)

    for _ in range(2):
        assert await home(graph, viewer) == ids[::-1]
        await graph.timelines.wait_for_rebuilds()
