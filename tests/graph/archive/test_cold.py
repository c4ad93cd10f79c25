"""Tests of archived posts: a wrong archive, and reads across the archive floor."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable, WrongArchive
from graph.log.events import Followed, PostDeleted, PostPublished
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from resolvers.loaders import Loaders
from tests.conftest import CHEAP
from tests.support.graph_worlds import counted, counts_of, crowd, home, many_posts, newest, own
from tests.support.graphs import open_graph

Opened = Callable[[str], Awaitable[Graph]]


@pytest.fixture
async def archived_in(store_url: str, tmp_path: Path) -> AsyncIterator[Opened]:
    """Return a function that opens a graph with the archive of this name. At most 25 posts of an author are hot."""
    opened: list[Graph] = []

    async def open_(name: str) -> Graph:
        tuning = replace(CHEAP, hot_posts=15, hot_slack=10, home_size=40)
        archive = Archive(f"sqlite:///{tmp_path}/{name}.sqlite")
        opened.append(await open_graph(store_url, tuning, archive=archive))
        return opened[-1]

    yield open_
    for graph in opened:
        await graph.timelines.wait_for_rebuilds()
        await graph.close()


async def archive(graph: Graph) -> None:
    """Project and archive everything."""
    await graph.worker(timedelta(0)).drain()
    await graph.archiver.work()


async def test_a_wrong_archive_is_not_read(archived_in: Opened, raw: Redis) -> None:
    """Pages that need older posts fail, and home caches do not change."""
    right, wrong = await archived_in("archive"), await archived_in("another")
    await right.binding.check()
    viewer, author = await crowd(right, 2)
    await right.commit([Followed(viewer, author)])
    ids = await many_posts(right, author, 45)
    await home(right, viewer)
    await right.timelines.wait_for_rebuilds()
    await archive(right)
    before = await raw.zrange(f"home:{{{viewer}}}", 0, -1)

    with pytest.raises(ArchiveUnavailable):
        await home(wrong, viewer)
    with pytest.raises(ArchiveUnavailable):
        await own(wrong, author)
    with pytest.raises(ArchiveUnavailable):
        await wrong.posts.get_many(SYSTEM, ids)
    with pytest.raises(WrongArchive):
        await wrong.binding.check()
    assert await raw.zrange(f"home:{{{viewer}}}", 0, -1) == before
    assert await home(right, viewer) == await own(right, author) == ids[::-1]


async def test_an_unavailable_archive_fails_only_the_items_of_a_batch_that_need_it(archived_in: Opened) -> None:
    graph = await archived_in("archive")
    await graph.binding.check()
    quiet, busy = await crowd(graph, 2)
    [only] = await many_posts(graph, quiet, 1)
    ids = await many_posts(graph, busy, 40)
    await archive(graph)
    away = await archived_in("another")
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


async def test_first_pages_that_reach_the_archive_take_one_round_trip_more(archived_in: Opened) -> None:
    """Lists that do not reach the archive are read once."""
    graph = await archived_in("archive")
    await graph.binding.check()
    quiet, busy = await crowd(graph, 2)
    few, many = await many_posts(graph, quiet, 3), await many_posts(graph, busy, 40)
    await archive(graph)

    async with counted(graph) as hot:
        hot_pages = await graph.timelines.user(SYSTEM, [quiet, busy], newest(5))
    async with counted(graph) as cold:
        cold_pages = await graph.timelines.user(SYSTEM, [quiet, busy], newest(39))

    assert [[post.id for post in page.items] for page in hot_pages] == [few[::-1], many[:-6:-1]]
    assert [[post.id for post in page.items] for page in cold_pages] == [few[::-1], many[:0:-1]]
    assert [page.has_next for page in (*hot_pages, *cold_pages)] == [False, True, False, True]
    assert (hot.round_trips, cold.round_trips) == (2, 3)
    assert cold.commands == 2 + 1 + len(few) + len(many)


async def test_skipping_many_deleted_posts_takes_few_round_trips(archived_in: Opened) -> None:
    """Each further read is larger than the one before."""
    graph = await archived_in("archive")
    await graph.binding.check()
    [author] = await crowd(graph, 1)
    ids = await many_posts(graph, author, 1100)
    await archive(graph)
    await graph.commit([PostDeleted(author, post) for post in ids[50:]])
    trips = graph.store.round_trips

    [page] = await graph.timelines.user(SYSTEM, [author], newest(1))

    assert [post.id for post in page.items] == [ids[49]]
    assert page.has_next
    assert graph.store.round_trips - trips <= 26


async def test_repeating_the_event_of_an_archived_post_changes_nothing(archived_in: Opened) -> None:
    graph = await archived_in("archive")
    await graph.binding.check()
    [author] = await crowd(graph, 1)
    ids = await many_posts(graph, author, 40)
    await archive(graph)

    events = [event async for event in graph.log.replay(0, ids[-1]) if isinstance(event.body, PostPublished)]
    await graph.projections.project(events, Mode.WORKER)

    assert await own(graph, author) == ids[::-1]
    [counts] = await counts_of(graph, [author])
    assert counts.posts == 40


async def test_a_cache_of_one_busy_and_many_quiet_authors_misses_no_post(archived_in: Opened) -> None:
    """The quiet authors' posts are older than the busy author's hot posts."""
    graph = await archived_in("archive")
    await graph.binding.check()
    viewer, busy, *quiet = await crowd(graph, 32)
    await graph.commit([Followed(viewer, author) for author in (busy, *quiet)])
    ids = [post for author in quiet[:5] for post in await many_posts(graph, author, 1)]
    ids += await many_posts(graph, busy, 44)
    await archive(graph)

    for _ in range(2):
        assert await home(graph, viewer) == ids[::-1]
        await graph.timelines.wait_for_rebuilds()
