"""Stalled readers: their effect on other readers, their cost, and what they receive when they continue."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.latencies import Latencies
from benchmarks.live_clients import Subscriber, leave_all, open_all, subscribe_all
from benchmarks.live_server import Resources
from benchmarks.live_stage import Stage, until
from benchmarks.report import Cell, Table

COLUMNS = (
    "round",
    "stalled",
    "others",
    "posts",
    "posts/s",
    "others' p50 ms",
    "others' p99 ms",
    "server CPU s",
    "cut off",
    "received a Gap",
    "additional server MB",
    "p99 ÷ none stalled",
)
NOTE = (
    "Every reader receives each post, of {size:,} characters. Stalled readers stop reading, are cut off while posts "
    "are published, and read again at the end. The two states alternate; the last rows are medians. 'additional server "
    "MB' is the growth of the server's memory at the end of the posts, without garbage. Goal: the p99 of the others "
    "changes by at most 20%."
)
MAX_LAG = 20  # posts
LARGE = ("今天下雨，路上的人很少，只有店里的灯还亮着。" * 50)[:960] + "☔😀"


@dataclass(frozen=True, slots=True)
class Readers:
    """The number of readers, how many of them stall, the rounds, and the number and rate of posts."""

    sockets: int
    stalling: int
    rounds: int
    posts: int
    rate: float


@dataclass(frozen=True, slots=True)
class Readings:
    """Measures steady readers, with and without other readers that stall."""

    stage: Stage
    readers: Readers
    steady: Sequence[Subscriber]
    noted: Latencies

    async def row(self, number: int, *, stall: bool) -> list[Cell]:
        """Publish to all readers. If `stall` is true, some of them stop reading, and continue afterwards.

        The readers are new in each round, because a kernel's buffers depend on the data that a socket has carried.
        """
        tokens = self.stage.tokens[len(self.steady) : self.readers.sockets]
        others = await open_all(self.stage.server.port, tokens, narrow=True)
        await subscribe_all(others)
        before = await self.stage.quiet(streams=self.readers.sockets)
        if stall:
            for one in others:
                one.transport.pause_reading()
        rate, after = await self._publish()
        for one in others:
            one.transport.resume_reading()
        told = len(others) if stall else 0
        await until(lambda: sum(one.slow for one in others) >= told)
        assert all(one.slow == stall for one in others), "only stalled readers must receive a gap, and at once"
        cut_off = (await self.stage.server.resources()).cut_off - before.cut_off
        await leave_all(others)
        grown = (after.rss - before.rss) / 2**20
        counts = told, len(self.steady), self.readers.posts, rate
        return [number, *counts, self.noted.p50, self.noted.p99, after.cpu - before.cpu, cut_off, told, grown]

    def _keep_up(self, posts: int) -> bool:
        """Return True if the steady readers keep up. On a busy machine, the server would otherwise cut them off too."""
        return self.noted.count >= (posts - MAX_LAG) * len(self.steady)

    async def _publish(self) -> tuple[float, Resources]:
        self.noted.durations.clear()
        author, posts = self.stage.audiences[-1].author, self.readers.posts
        rate = await self.stage.publish([author], self.readers.rate, posts, LARGE, keeping_up=self._keep_up)
        await until(lambda: self.noted.count >= posts * len(self.steady))
        return rate, await self.stage.server.resources(collect=True)


async def by_stalled(stage: Stage, readers: Readers) -> Table:
    """Measure rounds without and with stalled readers. All readers follow the author of the stage's last audience."""
    noted, steady = Latencies(), readers.sockets - readers.stalling
    subscribers = await open_all(stage.server.port, stage.tokens[:steady], noted.durations)
    await subscribe_all(subscribers)
    readings = Readings(stage, readers, subscribers, noted)
    await readings.row(0, stall=True)  # to warm up
    pairs = [
        (await readings.row(number, stall=False), await readings.row(number, stall=True))
        for number in range(1, readers.rounds + 1)
    ]
    await leave_all(subscribers)
    await stage.quiet()
    return Table("readers", "Stalled readers", COLUMNS, _with_ratios(pairs), NOTE.format(size=len(LARGE) + 30))


def _with_ratios(pairs: Sequence[tuple[list[Cell], list[Cell]]]) -> list[list[Cell]]:
    p99 = COLUMNS.index("others' p99 ms")
    rows, ratios = [], []
    for none, some in pairs:
        ratios.append(float(some[p99]) / float(none[p99]))
        rows += [[*none, 1.0], [*some, ratios[-1]]]
    for state in (0, 1):
        numbers = [[float(cell) for cell in pair[state]] for pair in pairs]
        middle: list[Cell] = [statistics.median(column) for column in zip(*numbers, strict=True)]
        middle[:4] = ["median", *pairs[0][state][1:4]]
        rows.append([*middle, statistics.median(ratios) if state else 1.0])
    return [[str(row[0]), *row[1:]] for row in rows]
