"""Tests that page through timelines far longer than the hot posts."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable
from graph.log.events import Followed, PostDeleted, PostPublished
from graph.paging import Window
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.support.graph_worlds import append_events, counts_of, crowd
from tests.support.graphs import open_graph

pytestmark = pytest.mark.slow

HOT = 100
EVENTS_AT_ONCE = 2000


@pytest.fixture
async def graph(store_url: str) -> AsyncIterator[Graph]:
    """Open a graph with an archive and 100 to 200 hot posts per author."""
    tuning = replace(CHEAP, hot_posts=HOT, hot_slack=HOT, home_size=200)
    graph = await open_graph(store_url, tuning)
    yield graph
    await graph.timelines.wait_for_rebuilds()
    await graph.close()


async def publish_and_archive(graph: Graph, authors: Sequence[int]) -> list[int]:
    """Publish one post per item of `authors`, run the archiver, and return the ids."""
    ids: list[int] = []
    for start in range(0, len(authors), EVENTS_AT_ONCE):
        chunk = authors[start : start + EVENTS_AT_ONCE]
        ids += [event.number for event in await append_events(graph, [PostPublished(a, f"from {a}") for a in chunk])]
    await graph.worker().drain()
    await graph.archiver.work()
    return ids


async def read_all(graph: Graph, owner: int, size: int, *, home: bool, forward: bool = True) -> list[int]:
    """Return the ids of a whole timeline, page by page, and check that only the last page is short."""
    ids: list[int] = []
    window = Window(size, forward)
    while True:
        page = (
            await graph.timelines.home(owner, window)
            if home
            else (await graph.timelines.user(SYSTEM, [owner], window))[0]
        )
        found = [post.id for post in page.items]
        ids += found if forward else found[::-1]
        if not (page.has_next if forward else page.has_previous):
            return ids
        assert len(found) == size
        window = replace(window, high=ids[-1]) if forward else replace(window, low=ids[-1])


async def test_an_author_with_thousands_of_posts_is_read_completely(graph: Graph) -> None:
    """Hot and archived posts are one timeline in both directions, before and after deletions."""
    [author] = await crowd(graph, 1)
    ids = await publish_and_archive(graph, [author] * 3000)
    assert await graph.store.run("ZCARD", f"posts:{{{author}}}") == HOT + 1

    assert await read_all(graph, author, 100, home=False) == ids[::-1]
    assert await read_all(graph, author, 97, home=False, forward=False) == ids
    assert await read_all(graph, author, 100, home=True) == ids[::-1]
    gone = set(random.Random(5).sample(ids, 200))  # noqa: S311 - reproducible
    await graph.commit([PostDeleted(author, post) for post in sorted(gone)])
    left = [post for post in ids if post not in gone]
    assert await read_all(graph, author, 50, home=False) == left[::-1]
    [counts] = await counts_of(graph, [author])
    assert counts.posts == len(left)
    await graph.worker().drain()
    await graph.archiver.work()
    await graph.scan.run_pass()
    assert await read_all(graph, author, 100, home=False, forward=False) == left
    [counts] = await counts_of(graph, [author])
    assert counts.posts == len(left)


@pytest.mark.timeout(600)
async def test_a_home_timeline_of_a_hundred_thousand_posts_is_read_completely(graph: Graph, long_profile: bool) -> None:
    """The posts are by 40 authors with very different numbers of posts. The short profile has 5,000 posts."""
    viewer, *authors = await crowd(graph, 41)
    await graph.commit([Followed(viewer, author) for author in authors])
    rng = random.Random(9)  # noqa: S311 - reproducible
    weights = [1 / rank for rank in range(1, 41)]
    ids = await publish_and_archive(graph, rng.choices(authors, weights, k=100_000 if long_profile else 5000))

    assert await read_all(graph, viewer, 100, home=True) == ids[::-1]
    await graph.timelines.wait_for_rebuilds()
    assert await read_all(graph, viewer, 100, home=True) == ids[::-1]
    assert await read_all(graph, viewer, 100, home=True, forward=False) == ids


async def test_a_page_that_needs_an_unavailable_archive_fails(store_url: str, graph: Graph, tmp_path: Path) -> None:
    """Pages of hot posts are still served. The archive belongs to another store."""
    viewer, author = await crowd(graph, 2)
    await graph.commit([Followed(viewer, author)])
    ids = await publish_and_archive(graph, [author] * 1000)
    cut_off = await open_graph(store_url, graph.tuning, archive=Archive(f"sqlite:///{tmp_path}/another.sqlite"))
    [hot] = await cut_off.timelines.user(SYSTEM, [author], Window(90, forward=True))
    assert [post.id for post in hot.items] == ids[:-91:-1]
    assert hot.has_next

    with pytest.raises(ArchiveUnavailable):
        await read_all(cut_off, author, 90, home=False)
    with pytest.raises(ArchiveUnavailable):
        await read_all(cut_off, viewer, 90, home=True)
    await cut_off.timelines.wait_for_rebuilds()
    await cut_off.close()
