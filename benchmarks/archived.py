"""Reads below the archive floor: pages of posts in an archive, which is an SQLite file."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice

from benchmarks.reading import Library, by_depth, readers
from benchmarks.report import Table
from benchmarks.stores import open_graph, private_store, raw
from benchmarks.worlds import TEXT, Authors
from graph import Graph, Tuning
from graph.archive.event_rows import event_row
from graph.archive.rows import EventRow
from graph.log.events import Event, PostPublished
from graph.post_lists import TIMELINE

ROWS_AT_ONCE = 10_000


@asynccontextmanager
async def archived_library(authors: Authors, hot: int, each: int) -> AsyncIterator[Library]:
    """Build a library: all posts are in an archive, and each author's newest `hot` posts are also in the store."""
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url, Tuning(hot_posts=hot, hot_slack=0))
        try:
            library = Library(client, graph, authors, readers(authors, [authors.count], each))
            await library.build()
            await archive_posts(graph, authors)
            yield library
        finally:
            await graph.close()


async def archive_posts(graph: Graph, authors: Authors) -> None:
    """Write all posts into the archive, cut the authors' timelines, and check how many posts were removed."""
    rows, up_to, store = post_rows(authors), 0, await graph.binding.store_id()
    while some := list(islice(rows, ROWS_AT_ONCE)):
        low, up_to = up_to, some[-1].number
        await graph.archive.append(some, [], store=store, watermark=low, up_to=up_to)
    await graph.hot_window.cut_full([(TIMELINE, authors.id(index)) for index in range(authors.count)], up_to)
    hot = graph.tuning.hot_posts
    assert graph.hot_window.trimmed == authors.count * (authors.posts_each - hot), "not all posts were removed"


def post_rows(authors: Authors) -> Iterator[EventRow]:
    """Yield the posts of these authors as rows of the archive, oldest first."""
    for place in range(authors.count * authors.posts_each):
        author = authors.id(place % authors.count)
        yield event_row(Event(authors.first_post + place * authors.step, PostPublished(author, TEXT % place)))


async def by_archive(authors: Authors, hot: int, each: int, depths: Sequence[int], reads: int, budget: float) -> Table:
    """Measure pages from the cache down into the archive, for readers who follow all authors."""
    async with archived_library(authors, hot, each) as library:
        return await by_depth(library, authors.count, depths, reads, budget, hot=hot)
