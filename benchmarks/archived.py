"""Reads below the archive floor: pages of posts in an archive, which is an SQLite file."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.inserts import TEXT
from benchmarks.reading import Library, by_depth, readers
from benchmarks.report import Table
from benchmarks.stores import private_store, raw
from benchmarks.worlds import FIRST_LONER, Authors
from graph import Graph, Tuning
from graph.archive.archive import Archive
from graph.log.events import PostPublished


@asynccontextmanager
async def archived_library(authors: Authors, hot: int, each: int) -> AsyncIterator[Library]:
    """Build a library whose authors keep `hot` posts in the store and all older posts in an archive."""
    with private_store() as url, raw(url) as client, tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder:
        archive = Archive(f"sqlite:///{Path(folder) / 'archive.sqlite'}")
        await archive.migrate()
        graph = await Graph.open(url, Tuning(hot_posts=hot, archive_batch=hot), archive=archive)
        try:
            library = Library(client, graph, authors, readers(authors, [authors.count], each))
            await library.build()
            await graph.log.append([PostPublished(FIRST_LONER, TEXT)])
            await graph.worker().drain()  # the archiver moves only projected posts
            await move(library, hot)
            yield library
        finally:
            await graph.close()


async def move(library: Library, hot: int) -> None:
    """Run the graph's archiver for every author, and check how many posts it moved."""
    archiver, authors = library.graph.archiver, library.authors
    assert archiver is not None, "this graph has no archive"
    for index in range(authors.count):
        assert await archiver.archive_author(authors.id(index)), "not all posts could be moved"
    assert archiver.moved == authors.count * (authors.posts_each - hot)


async def by_archive(authors: Authors, hot: int, each: int, depths: Sequence[int], reads: int, budget: float) -> Table:
    """Measure pages from the cache down into the archive, for readers who follow all authors."""
    async with archived_library(authors, hot, each) as library:
        return await by_depth(library, authors.count, depths, reads, budget, hot=hot)
