"""First pages of searches, per database: `python -m benchmarks.searching [--quick] [--json FILE]`.

The words of the texts are distributed as in real texts: the frequency of a word falls with its rank (Zipf's law).
English posts have 12 words, Chinese posts have 20 words of two characters without spaces.
"""

import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from random import Random

import orjson

from benchmarks.command import Benchmark
from benchmarks.databases import SQLITE, databases
from benchmarks.report import Table
from graph.archive.archive import Archive
from graph.archive.index import SEGMENT_POSTS
from graph.archive.rows import POST, EventRow
from graph.feed.filters import EventFilter
from graph.pages.scanning import scanned_page
from graph.paging import Window
from graph.search.post_search import SEGMENTS, clauses_of, matches, post_filter

STORE = "benchmark"
PAGE = 30
RANKS = 30_000
WORDS = [f"word{rank}" for rank in range(RANKS)]
NOTE = (
    f"First pages of {PAGE} posts: the transactions of the archive and the comparison with the filter, without the "
    "store. Each search has a different word or phrase."
)
COLUMNS = ("database", "posts", "filter", "searches", "posts/page", "p50 ms", "p99 ms")
BUILD = ("database", "posts", "seconds", "posts/s")


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of posts, the number of searches of each kind, and the databases."""

    posts: int
    searches: int
    kinds: Sequence[str] = (SQLITE, "PostgreSQL")


def chinese_words(random: Random) -> list[str]:
    """Return words of two of the 1,500 most frequent characters."""
    return [chr(0x4E00 + random.randrange(1500)) + chr(0x4E00 + random.randrange(1500)) for _ in range(RANKS)]


def rows(count: int, random: Random, chinese: Sequence[str]) -> Iterator[EventRow]:
    """Yield posts, one third of them Chinese."""
    weights = list(accumulate(1 / (rank + 1) for rank in range(RANKS)))  # `choices` would sum them up for each post
    for number in range(1, count + 1):
        is_chinese = number % 3 == 0
        words = random.choices(chinese if is_chinese else WORDS, cum_weights=weights, k=20 if is_chinese else 12)
        text = ("" if is_chinese else " ").join(words)
        yield EventRow(number, POST, random.randrange(1, 10_000), None, orjson.dumps({"text": text}).decode())


async def fill(archive: Archive, posts: Iterator[EventRow]) -> float:
    """Archive the posts with a transaction for each segment of the index, and return the seconds."""
    await archive.bind(STORE, replacing=None, unused_only=True)
    watermark, start = 0, time.perf_counter()
    while some := list(islice(posts, SEGMENT_POSTS)):
        await archive.append(some, [], store=STORE, watermark=watermark, up_to=some[-1].number)
        watermark = some[-1].number
    return time.perf_counter() - start


async def first_page(archive: Archive, filter_: EventFilter) -> int:
    """Read the first page of a search, and return its number of posts."""
    clauses = clauses_of(filter_)

    async def read(rest: Window, turn: int) -> tuple[list[EventRow], Window | None]:
        return await archive.candidates(clauses, rest, SEGMENTS[min(turn, len(SEGMENTS) - 1)])

    async def show(found: Sequence[EventRow]) -> list[EventRow]:
        return [row for row in found if matches(filter_, row)]

    return len((await scanned_page(Window(PAGE, True), read, show)).items)


def filters(random: Random, chinese: Sequence[str], count: int) -> dict[str, list[EventFilter]]:
    """Return filters of each kind."""

    def each(*ranks: range, words: Sequence[str] = WORDS, join: str = " ") -> list[EventFilter]:
        return [post_filter(keywords=[join.join(words[random.choice(rank)] for rank in ranks)]) for _ in range(count)]

    frequent, rare = range(100), range(RANKS // 3, RANKS)
    return {
        "frequent word": each(frequent),
        "rare word": each(rare),
        "frequent and rare word": each(frequent, rare),
        "two rare words": each(rare, rare),
        "frequent Chinese word": each(frequent, words=chinese),
        "rare Chinese word": each(rare, words=chinese),
        "Chinese phrase of two words": each(frequent, range(1000), words=chinese, join=""),
        "author": [post_filter(users=[random.randrange(1, 10_000)]) for _ in range(count)],
    }


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Fill an archive in each database, and measure first pages."""
    built, searched = [], []
    with databases(sizes.kinds) as makers:
        for kind, make in makers.items():
            random = Random(1)
            chinese = chinese_words(random)
            archive = Archive(make(), timeout=60)
            try:
                seconds = await fill(archive, rows(sizes.posts, random, chinese))
                built.append((kind, sizes.posts, seconds, sizes.posts / seconds))
                for name, some in filters(random, chinese, sizes.searches).items():
                    times, found = [], 0
                    for filter_ in some:
                        start = time.perf_counter()
                        found += await first_page(archive, filter_)
                        times.append((time.perf_counter() - start) * 1000)
                    p50, p99 = statistics.median(times), sorted(times)[int(len(times) * 0.99)]
                    searched.append((kind, sizes.posts, name, len(times), found / len(times), p50, p99))
            finally:
                await archive.close()
    yield Table("archiving", "Archiving with the search index", BUILD, built, f"Batches of {SEGMENT_POSTS:,} posts.")
    yield Table("searches", "First pages of searches", COLUMNS, searched, NOTE)


BENCHMARK = Benchmark(
    "Measure first pages of searches.",
    {"full": Sizes(1_000_000, 300), "quick": Sizes(10_000, 50), "tiny": Sizes(1000, 3, (SQLITE,))},
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
