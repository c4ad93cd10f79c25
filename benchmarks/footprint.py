"""Memory of the store: home caches and lists of follows."""

from collections.abc import Sequence
from typing import Any

from benchmarks.report import Cell, Table
from benchmarks.stores import memory, private_store, raw
from benchmarks.worlds import FIRST_FOLLOW, FIRST_VIEWER, STEP, Authors, Crowd
from graph import keys

MARKED = 50


def bytes_of(client: Any, key: str) -> int:
    """Return the memory of a key with its name and all its elements."""
    return int(client.memory_usage(key, samples=0))


def caches(authors: Authors, posts: Sequence[int], viewers: int) -> Table:
    """Measure caches of different sizes, one by one and many at once."""
    rows: list[list[Cell]] = []
    for cached in posts:
        with private_store() as url, raw(url) as client:
            Crowd(viewers, 0, authors).build(client)  # follows only, without caches
            before = memory(client)
            Crowd(viewers, cached, authors).build(client)
            grown = (memory(client) - before) / viewers
            home = keys.home(FIRST_VIEWER)
            alone = bytes_of(client, home)
            encoding = client.object("encoding", home)
            marks = {f"a{authors.id(author)}": -1 for author in range(MARKED)}
            client.zadd(home, marks)
            rows.append([cached, encoding, alone, alone / cached, grown, bytes_of(client, home)])
    columns = ("posts", "encoding", "bytes", "bytes/post", f"mean of {viewers:,} caches", f"bytes with {MARKED} marks")
    note = "MEMORY USAGE of home:{v}. The mean is the growth of used_memory, including the key table of the store."
    return Table("memory", "Memory of a cached home timeline", columns, rows, note)


def follows(counts: Sequence[int]) -> Table:
    """Measure `following:{u}` by number of entries. `followers:{u}` has the same size."""
    rows: list[list[Cell]] = []
    with private_store() as url, raw(url) as client:
        for count in counts:
            key = keys.following(FIRST_VIEWER + count)
            for start in range(0, count, 10_000):
                some = range(start, min(count, start + 10_000))
                client.zadd(key, {FIRST_VIEWER + place * STEP: FIRST_FOLLOW + place * STEP for place in some})
            taken = bytes_of(client, key)
            rows.append([count, client.object("encoding", key), taken, taken / count])
    columns = ("entries", "encoding", "bytes", "bytes/entry")
    note = "A follow is one entry in following:{v} and one in followers:{a}."
    return Table("follows", "Memory of following and followers", columns, rows, note)
