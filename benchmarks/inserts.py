"""Inserts per second: the speed of inserting one post into the home caches of all followers."""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import Cell, Table
from benchmarks.stores import Meter, Spent, forget_log
from benchmarks.workers import workers
from benchmarks.worlds import Crowd
from graph import Graph, keys
from graph.log.events import PostPublished
from tests.support.graph_worlds import append_events

GOAL = 100_000
POLL_SECONDS = 0.002
TEXT = "A post for everybody."
COLUMNS = (
    "followers",
    "caches",
    "workers",
    "runs",
    "seconds",
    "inserts/s",
    "store busy %",
    "store µs/insert",
    "workers µs/insert",
)
NOTE = (
    f"One post of one author, from the append of the event until it is projected; medians. Goal: {GOAL:,} inserts/s on "
    "one store. With caches 'none' (hibernated), an 'insert' is a follower who is skipped."
)


@dataclass(frozen=True, slots=True)
class Audience:
    """An author and the range of the crowd that follows them."""

    author: int
    start: int
    followers: int


@dataclass(frozen=True, slots=True)
class Fans:
    """A crowd, the authors whom parts of it follow, and the store."""

    url: str
    client: Any
    graph: Graph
    crowd: Crowd
    audiences: Sequence[Audience]

    def build(self) -> None:
        """Write the crowd and the follows."""
        self.crowd.authors.build(self.client)
        self.crowd.build(self.client)
        for audience in self.audiences:
            if audience.followers:
                self.crowd.follow(self.client, audience.author, audience.start, audience.followers)

    async def check(self, sample: int = 20) -> None:
        """Check a sample through the public interface of the graph."""
        indexes = random.Random(1).sample(range(self.crowd.viewers), min(sample, self.crowd.viewers))
        await self.crowd.check(self.graph, indexes)
        counts = await self.graph.users.followers_counts([audience.author for audience in self.audiences])
        assert counts == [audience.followers for audience in self.audiences]

    def all_served(self, audience: Audience, post: int) -> bool:
        """Return True if every follower's cache holds a post."""
        served = self.crowd.served(self.client, post, audience.start, audience.followers)
        return served == audience.followers


async def insert_in_process(fans: Fans, audience: Audience) -> tuple[int, Spent]:
    """Publish an event and project it in this process."""
    [event] = await append_events(fans.graph, [PostPublished(audience.author, TEXT)])
    meter = Meter(fans.client)
    meter.start()
    await fans.graph.worker().drain()
    spent = meter.stop()
    return event.number, Spent(spent.seconds, spent.store, spent.here, spent.here)


async def insert_by_processes(fans: Fans, audience: Audience, processes: Sequence[int]) -> tuple[int, Spent]:
    """Publish an event and wait until the workers have projected it."""
    meter = Meter(fans.client, processes)
    meter.start()
    [event] = await append_events(fans.graph, [PostPublished(audience.author, TEXT)])
    await watermark(fans.graph, event.number)
    return event.number, meter.stop()


async def watermark(graph: Graph, number: int) -> float:
    """Wait until the watermark has reached an event. Return the value of `time.perf_counter()` then."""
    while await graph.log.watermark() < number:  # noqa: ASYNC110 - the store sends no notification
        await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter()


async def measure(fans: Fans, audience: Audience, processes: Sequence[int], runs: int, caches: str) -> list[Cell]:
    """Return one row: `runs` runs by these worker processes, or by this process if there are none."""
    spent = []
    for _ in range(runs):
        if processes:
            spent.append(await insert_by_processes(fans, audience, processes))
        else:
            spent.append(await insert_in_process(fans, audience))
    if caches != "none":
        assert all(fans.all_served(audience, post) for post, _ in spent), "a follower's cache does not hold the post"
    return as_row(audience.followers, caches, len(processes), [one for _, one in spent])


async def measure_all(
    fans: Fans, audiences: Sequence[Audience], processes: int, runs: Sequence[int], caches: str
) -> list[list[Cell]]:
    """Return the rows of several authors with this number of worker processes, 0 for this process."""
    with workers(fans.url, processes) as ids:
        rows = [await measure(fans, one, ids, times, caches) for one, times in zip(audiences, runs, strict=True)]
    forget_log(fans.client)
    return rows


def as_row(followers: int, caches: str, processes: int, spent: Sequence[Spent]) -> list[Cell]:
    """Return the row of several runs, with medians."""
    seconds = statistics.median(one.seconds for one in spent)
    store = statistics.median(one.store for one in spent)
    working = statistics.median(one.workers for one in spent)
    each = 1e6 / followers
    name = f"{processes} process{'es' if processes > 1 else ''}" if processes else "in this process"
    rates = (seconds, round(followers / seconds), round(100 * store / seconds), store * each, working * each)
    return [followers, caches, name, len(spent), *rates]


def inserts_table(rows: Sequence[Sequence[Cell]]) -> Table:
    """Return the table of inserts."""
    return Table("inserts", "Fan-out: inserts per second on one store", COLUMNS, rows, NOTE)


async def last_served(fans: Fans, audience: Audience, post: int, sample: int) -> str:
    """Check the caches of a random sample and of the first and last followers, and count all caches with the post.

    Return a description of the result.
    """
    chosen = random.Random(post).sample(range(audience.followers), min(sample, audience.followers))
    viewers = [fans.crowd.viewer(audience.start + index) for index in chosen]
    followers = keys.followers(audience.author)
    ends = [fans.client.zrange(followers, 0, sample - 1), fans.client.zrange(followers, -sample, -1)]
    viewers += [int(viewer) for end in ends for viewer in end]
    with fans.client.pipeline(transaction=False) as pipeline:
        for viewer in viewers:
            pipeline.zscore(keys.home(viewer), post)
        found = sum(score is not None for score in pipeline.execute())
    assert found == len(viewers), f"{len(viewers) - found} of {len(viewers)} caches do not hold the post"
    assert fans.all_served(audience, post), "a follower's cache does not hold the post"
    return f"{found:,} sampled caches and a count of all {audience.followers:,}: complete"
