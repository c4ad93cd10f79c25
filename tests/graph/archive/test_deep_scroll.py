"""Deep scrolls: timelines far longer than the store keeps, to their ends and back, on every kind of archive."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable
from graph.log.events import Followed, PostPublished
from graph.paging import Window
from tests.conftest import CHEAP
from tests.support.graph_worlds import counts_of, crowd

HOT = 100
FACTS_AT_ONCE = 2000


@pytest.fixture
async def graph(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph that keeps a hundred posts of an author in the store, with an archive of each kind in turn."""
    tuning = replace(CHEAP, hot_posts=HOT, archive_batch=500, home_size=200)
    graph = await Graph.open(store_url, tuning, archive=Archive(archive_url))
    yield graph
    await graph.timelines.wait_for_rebuilds()
    await graph.close()


async def published(graph: Graph, authors: Sequence[int]) -> list[int]:
    """Let authors publish, one post for each time an author is named; archive what is too much; give the ids."""
    ids: list[int] = []
    for start in range(0, len(authors), FACTS_AT_ONCE):
        some = authors[start : start + FACTS_AT_ONCE]
        ids += [event.number for event in await graph.log.append([PostPublished(a, f"from {a}") for a in some])]
    await graph.worker().drain()
    assert graph.archiver is not None
    await graph.archiver.work()
    return ids


async def scrolled(graph: Graph, owner: int, size: int, *, home: bool, forward: bool = True) -> list[int]:
    """Read a timeline to its end, page by page; give the ids as they came, and check that no page is short."""
    ids: list[int] = []
    window = Window(size, forward)
    while True:
        page = await graph.timelines.home(owner, window) if home else (await graph.timelines.user([owner], window))[0]
        found = [post.id for post in page.items]
        ids += found if forward else found[::-1]
        if not (page.has_next if forward else page.has_previous):
            return ids
        assert len(found) == size
        window = replace(window, high=ids[-1]) if forward else replace(window, low=ids[-1])


async def test_five_thousand_posts_of_one_author_come_once_each(graph: Graph) -> None:
    """Hot and archived ones as one timeline, from either end, and after deletions, hot or not."""
    [author] = await crowd(graph, 1)
    ids = await published(graph, [author] * 5000)
    assert await graph.store.run("ZCARD", f"posts:{{{author}}}") <= HOT + 500

    assert await scrolled(graph, author, 100, home=False) == ids[::-1]
    assert await scrolled(graph, author, 97, home=False, forward=False) == ids
    assert await scrolled(graph, author, 100, home=True) == ids[::-1]
    gone = set(random.Random(5).sample(ids, 300))  # noqa: S311 - reproducible
    for post in sorted(gone):
        await graph.posts.delete(author, post)
    left = [post for post in ids if post not in gone]
    assert await scrolled(graph, author, 50, home=False) == left[::-1]
    [counts] = await counts_of(graph, [author])
    assert counts.posts == len(left)
    await graph.worker().drain()
    assert graph.archiver is not None
    await graph.archiver.work()
    assert await scrolled(graph, author, 100, home=False, forward=False) == left


@pytest.mark.timeout(600)
async def test_a_home_timeline_of_a_hundred_thousand_posts_comes_once_each(graph: Graph, long_profile: bool) -> None:
    """Of forty authors who write very differently much; ten thousand posts where there is no time for more."""
    viewer, *authors = await crowd(graph, 41)
    await graph.commit([Followed(viewer, author) for author in authors])
    rng = random.Random(9)  # noqa: S311 - reproducible
    weights = [1 / rank for rank in range(1, 41)]
    ids = await published(graph, rng.choices(authors, weights, k=100_000 if long_profile else 10_000))

    assert await scrolled(graph, viewer, 100, home=True) == ids[::-1]
    await graph.timelines.wait_for_rebuilds()
    assert await scrolled(graph, viewer, 100, home=True) == ids[::-1]
    assert await scrolled(graph, viewer, 100, home=True, forward=False) == ids


async def test_without_its_archive_a_timeline_says_so_instead_of_ending_early(store_url: str, graph: Graph) -> None:
    """What is hot is served as before, up to the page that needs more."""
    viewer, author = await crowd(graph, 2)
    await graph.commit([Followed(viewer, author)])
    ids = await published(graph, [author] * 1000)
    cut_off = await Graph.open(store_url, graph.tuning)
    [hot] = await cut_off.timelines.user([author], Window(90, forward=True))
    assert [post.id for post in hot.items] == ids[:-91:-1]
    assert hot.has_next

    with pytest.raises(ArchiveUnavailable):
        await scrolled(cut_off, author, 90, home=False)
    with pytest.raises(ArchiveUnavailable):
        await scrolled(cut_off, viewer, 90, home=True)
    await cut_off.timelines.wait_for_rebuilds()
    await cut_off.close()
