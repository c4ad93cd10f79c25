"""Deliveries: the latency from publishing to receiving, and the server's CPU time, by number of open sockets."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.inserts import Audience
from benchmarks.latencies import Latencies
from benchmarks.live_clients import leave_all, open_all, subscribe_all
from benchmarks.live_stage import Stage, until
from benchmarks.report import Cell, Table

COLUMNS = (
    "sockets",
    "receivers per post",
    "posts/s",
    "deliveries/s",
    "deliveries",
    "p50 ms",
    "p99 ms",
    "server busy %",
    "server µs/delivery",
    "÷ first",
)
NOTE = (
    "Each socket belongs to a viewer who follows 21 authors and has a homeTimeline subscription (cursor, edge, entry, "
    "id, text, author, login). Posts are published at a constant rate, with the same number of deliveries per second "
    "in all rows. Latency is from the call of `publish` in the client process until the frame arrives. 'server' is CPU "
    "time of the API process, including its worker. Store: appendfsync always. Where all sockets receive each post, "
    "p99 is roughly the time of one delivery to all of them."
)
GROUP = 100


@dataclass(frozen=True, slots=True)
class Crowds:
    """The numbers of sockets, and for each row the deliveries per second and in total."""

    sockets: Sequence[int]
    rate: float
    deliveries: int
    group: int = GROUP

    def audiences(self) -> list[tuple[int, int]]:
        """Return the first viewer and the size of each audience: the first n viewers for each size, then each group."""
        groups = range(0, max(self.sockets), self.group)
        return [*((0, count) for count in self.sockets), *((start, self.group) for start in groups)]


async def by_sockets(stage: Stage, crowds: Crowds) -> Table:
    """Measure with a growing number of sockets: posts for all sockets, and posts for some of them."""
    rows: list[list[Cell]] = []
    for place, count in enumerate(crowds.sockets):
        everybody = stage.audiences[place]
        groups = stage.audiences[len(crowds.sockets) :][: count // crowds.group]  # followed by these viewers only
        rows += await _rows(stage, crowds, count, [[everybody], groups] if len(groups) > 1 else [[everybody]])
    return Table("latency", "Delivery latency by number of sockets", COLUMNS, with_ratios(rows), NOTE)


async def _rows(stage: Stage, crowds: Crowds, count: int, choices: Sequence[Sequence[Audience]]) -> list[list[Cell]]:
    noted = Latencies()
    subscribers = await open_all(stage.server.port, stage.tokens[:count], noted.durations)
    await subscribe_all(subscribers)
    await stage.quiet(streams=count)
    rows = [[count, *await _row(stage, crowds, noted, audiences)] for audiences in choices]
    await leave_all(subscribers)
    await stage.quiet()
    return rows


async def _row(stage: Stage, crowds: Crowds, noted: Latencies, audiences: Sequence[Audience]) -> list[Cell]:
    told = audiences[0].followers
    posts = max(2, round(crowds.deliveries / told))
    noted.durations.clear()
    before = await stage.server.resources()
    rate = await stage.publish([audience.author for audience in audiences], crowds.rate / told, posts)
    await until(lambda: noted.count >= posts * told)
    cpu = (await stage.server.resources()).cpu - before.cpu
    assert noted.count == posts * told, "a delivery was duplicated"
    each = 1e6 * cpu / noted.count
    return [told, rate, rate * told, noted.count, noted.p50, noted.p99, each * rate * told / 1e4, each]


def with_ratios(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Return the rows, each with its cost per delivery divided by that of the first row."""
    return [[*row, float(row[-1]) / float(rows[0][-1])] for row in rows]
