"""Size of the store and the archive: `python -m benchmarks.store_size [--quick] [--json FILE]`.

Seeds users, follows and the posts of 90 days, and measures the sizes of the store and the archive, with the default hot
window, with a smaller one, and without the rule for old posts.
"""

import math
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.command import Benchmark
from benchmarks.report import Cell, Table
from benchmarks.stores import SCAN_COUNT, memory, private_store, raw
from graph import Graph, Tuning
from graph.archive.archive import Archive
from graph.log.events import Event
from graph.rebuild.rebuild import RebuildReport
from graph.rebuild.reservation import reserve
from server.demo.characters import following_count
from server.demo.world import random_numbers
from server.seeding.load import Source, new_note, write
from server.seeding.sources import (
    MONTH_MS,
    SEED,
    Month,
    generated_follows,
    generated_posts,
    generated_profiles,
)

MONTHS = 3
FOREVER = timedelta(days=36_500)
RULES = {
    "hot window": Tuning(),
    "newest 10": Tuning(hot_newest=10),
    "no age": Tuning(hot_posts=2000, hot_age=FOREVER),
}
SAMPLE = 20  # one key in 20 is measured
POST_KINDS = ("post", "posts", "cold")
MB = 1e6
PARTS = ("rule", "keys", "number", "bytes/key", "MB", "share %")
PARTS_NOTE = f"MEMORY USAGE of one key in {SAMPLE}, without the store's key table."
COLUMNS = (
    "rule",
    "users",
    "follows",
    "posts",
    "posts in the store",
    "store MB",
    "bytes/user",
    "bytes/post",
    "archive MB",
    "bytes/event",
    "rebuild events/s",
)
NOTE = (
    f"Posts of {MONTHS} months; popular users post more. 'hot window': the default, posts of the last 30 days and an "
    "author's newest 50. 'newest 10': the newest 10 instead of 50. 'no age': the newest 2,000, however old. 'store MB' "
    "is the growth of used_memory. 'bytes/post' is what posts take in the store, divided by all posts; 'bytes/user' is "
    "the rest, follows included, divided by all users. 'archive MB' is an SQLite file with its indexes."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of users and posts, and the average number of follows."""

    users: int
    posts: int
    following: int = 5


def source(sizes: Sizes) -> Source:
    """Return the source of the events: users join, then follow, then post for three months."""
    limit = min(sizes.users, MONTH_MS // sizes.users) - 1

    def counts() -> Iterator[int]:
        random = random_numbers("appetites", SEED)
        return (following_count(random, sizes.following, limit) for _ in range(sizes.users))

    def events(base: datetime) -> Iterator[Event]:
        joins = Month.before(base, MONTHS + 2, sizes.users)
        for index, person in enumerate(generated_profiles(sizes.users)):
            yield Event(joins.number(index), person.joins())
        yield from generated_follows(joins, Month.before(base, MONTHS + 1, sizes.users), counts())
        posts = math.ceil(sizes.posts / MONTHS)
        for month in range(MONTHS, 0, -1):
            yield from generated_posts(joins, Month.before(base, month, posts), posts, None)

    return Source("posts of some months", "1", lambda _: 0, events)


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Write the archive once, and rebuild the store from it with each rule."""
    rows: list[list[Cell]] = []
    parts: list[list[Cell]] = []
    with tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder:
        file = Path(folder) / "archive.sqlite"
        for rule, tuning in RULES.items():
            with private_store() as url, raw(url) as client:
                before = memory(client)
                graph = await Graph.open(url, Archive(f"sqlite:///{file}"), tuning)
                try:
                    report = await filled(graph, source(sizes))
                finally:
                    await graph.close()
                kinds = by_kind(client)
                parts += part_rows(rule, kinds)
                rows.append(size_row(rule, report, kinds, memory(client) - before, file.stat().st_size))
    yield Table("size", "Size of the store and the archive", COLUMNS, rows, NOTE)
    yield Table("parts", "What the store holds", PARTS, parts, PARTS_NOTE)


async def filled(graph: Graph, what: Source) -> RebuildReport:
    """Fill an empty store from the archive. If the archive is unused, write it first."""
    if (await graph.archive.state()).watermark:
        return await graph.rebuild().run()
    reservation = await reserve(graph.store, graph.archive, unused_only=True)
    await write(graph, what, new_note(what, datetime.now(UTC)), reservation)
    return await graph.rebuild().fill(reservation)


@dataclass(slots=True)
class Keys:
    """The number of keys of one kind, and the bytes that a sample of them takes."""

    number: int = 0
    sampled: int = 0
    sample_bytes: int = 0

    @property
    def bytes_each(self) -> float:
        """The mean bytes of a key in the sample."""
        return self.sample_bytes / max(1, self.sampled)

    @property
    def bytes(self) -> float:
        """The estimated bytes of all keys."""
        return self.number * self.bytes_each


def by_kind(client: Any) -> dict[str, Keys]:
    """Return the keys of each kind. A kind is the part of the name before the owner."""
    kinds: dict[str, Keys] = {}
    sample: list[tuple[str, str]] = []
    for name in client.scan_iter(count=SCAN_COUNT):
        kind = name.partition(":")[0]
        found = kinds.setdefault(kind, Keys())
        found.number += 1
        if found.number % SAMPLE == 1:
            sample.append((kind, name))
    for start in range(0, len(sample), SCAN_COUNT):
        some = sample[start : start + SCAN_COUNT]
        with client.pipeline(transaction=False) as pipeline:
            for _, name in some:
                pipeline.memory_usage(name, samples=0)
            for (kind, _), size in zip(some, pipeline.execute(), strict=True):
                kinds[kind].sampled += 1
                kinds[kind].sample_bytes += size
    return kinds


def part_rows(rule: str, kinds: Mapping[str, Keys]) -> list[list[Cell]]:
    """Return a row for each kind of keys."""
    whole = sum(found.bytes for found in kinds.values())
    return [
        [rule, kind, found.number, found.bytes_each, found.bytes / MB, 100 * found.bytes / whole]
        for kind, found in sorted(kinds.items())
    ]


def size_row(rule: str, report: RebuildReport, kinds: Mapping[str, Keys], grown: int, archive: int) -> list[Cell]:
    """Return the sizes with one rule."""
    whole = sum(found.bytes for found in kinds.values())
    share = sum(kinds[kind].bytes for kind in POST_KINDS if kind in kinds) / whole
    counts = (report.users, report.follows, report.posts, kinds["post"].number)
    each = ((1 - share) * grown / report.users, share * grown / report.posts)
    return [rule, *counts, grown / MB, *each, archive / MB, archive / report.events, report.events / report.seconds]


def benchmark() -> Benchmark[Sizes]:
    """Return the command."""
    sizes = {"full": Sizes(200_000, 2_000_000), "quick": Sizes(2_000, 20_000), "tiny": Sizes(50, 600)}
    return Benchmark("Measure the size of the store and the archive.", sizes, measure)


if __name__ == "__main__":
    benchmark().main()
