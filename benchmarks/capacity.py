"""The limits of growth: `python -m benchmarks.capacity [--quick] [--json FILE]`.

Measures what each operation costs the store's thread, an API process and a worker on this machine. Then it simulates
the busiest hour of networks of up to 100 million users on a cluster: posts and the follower counts of their authors are
drawn at random, and the work is divided evenly among the shards. It reports how busy the log's shard, the other shards
and the processes are.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

from benchmarks.command import Benchmark
from benchmarks.fanout import audiences
from benchmarks.inserts import Fans
from benchmarks.report import Cell, Table
from benchmarks.stores import Meter, open_graph, private_store, raw
from benchmarks.worlds import FIRST_AUTHOR, PAGE, Authors, Crowd
from graph import keys
from graph.home.fan_out import FanOut
from graph.log.events import PostPublished
from graph.paging import Window
from graph.worker.consumer import GROUP
from tests.support.graph_worlds import append_events

TEXT = "A post of about as many words as people write when they tell what they saw on the way to the market today."

COST_COLUMNS = ("operation", "times", "store µs", "process µs")
COST_NOTE = "CPU time of one store thread and of one Python process, on a unix socket, one operation after the other."

COLUMNS = (
    "users",
    "layout",
    "shards",
    "API processes",
    "events/s",
    "pages/s",
    "inserts/s",
    "busiest shard %",
    "log's thread: appends, worker %",
    "log's thread: readers %",
    "API process: log %",
    "at its limit",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one operation, on the store's thread and in this process."""

    store: float
    here: float


@dataclass(frozen=True, slots=True)
class Habits:
    """Assumptions about what users do and how much memory they take, which the note of the table repeats.

    `others_a_month` counts follows, likes and similar events. `request` is the CPU time of a served home page. `cached`
    is the share of users with a home cache, among all users and among an author's followers.
    """

    posts_a_month: float = 3.3
    others_a_month: float = 10
    daily: float = 0.2
    pages_a_day: float = 50
    peak: float = 3
    cached: float = 0.3
    most_pushed: int = 10_000
    request: float = 0.0007
    user_bytes: int = 17_000
    cache_bytes: int = 61_000


@dataclass(frozen=True, slots=True)
class Layout:
    """A process's maximum log reads per second, and the number of logs, among which events are divided by actor."""

    name: str
    reads: float = math.inf
    logs: int = 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """How often each operation is measured, the followers of the fan-out, and the simulated users and seconds."""

    times: int
    followers: int
    users: tuple[int, ...]
    seconds: int


HABITS = Habits()
LAYOUTS = (Layout("one log"), Layout("one log, 100 reads/s", 100), Layout("4 logs by actor", logs=4))
BUSY = 0.6
"""The part of its time that a thread or a process may be busy in the busiest hour."""
SHARD_BYTES = 64e9
MONTH, DAY = 30.4 * 86_400, 86_400
NOTE = (
    f"Assumed: {HABITS.posts_a_month:g} posts and {HABITS.others_a_month:g} other events per user and month, "
    f"{HABITS.daily:.0%} of the users read {HABITS.pages_a_day:g} pages a day, {HABITS.peak:g} times as much in a "
    f"second of the busiest hour; {HABITS.cached:.0%} of the users have a home cache; authors have 100 followers on "
    f"average, by a power law. A shard holds {SHARD_BYTES / 1e9:g} GB. There are as many shards as memory or work "
    f"requires, and as many API processes as keep each below {BUSY:.0%}. The log has a shard of its own. 'busiest "
    "shard': the load of each other shard at the 99th percentile of the simulated seconds."
)


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure the operations, then simulate the networks."""
    costs, table = await measure_costs(sizes)
    yield table
    rows = [row for users in sizes.users for row in simulate(users, costs, sizes.seconds)]
    yield Table("capacity", "Load in the busiest hour, simulated", COLUMNS, rows, NOTE)


async def measure_costs(sizes: Sizes) -> tuple[dict[str, Cost], Table]:
    """Return the costs of the operations, also as a table."""
    costs: dict[str, Cost] = {}
    rows: list[list[Cell]] = []
    with private_store() as url, raw(url) as client:
        graph = await open_graph(url)
        crowd = Crowd(sizes.followers, 800, Authors(100, 50))
        fans = Fans(url, client, graph, crowd, audiences([sizes.followers]))
        try:
            await asyncio.to_thread(fans.build)
            await append_events(graph, [PostPublished(FIRST_AUTHOR, TEXT)])
            work = Operations(fans, sizes.times)
            client.xgroup_create(keys.LOG, GROUP, "$")
            for run, times in (
                (work.append, sizes.times),
                (work.consume, sizes.times),
                (work.follow, sizes.times),
                (work.project, sizes.times),
                (work.insert, sizes.followers),
                (work.page, sizes.times),
            ):
                meter = Meter(client)
                meter.start()
                await run()
                spent = meter.stop()
                cost = costs[run.__name__] = Cost(spent.store / times, spent.here / times)
                rows.append([str(run.__doc__).rstrip("."), times, 1e6 * cost.store, 1e6 * cost.here])
        finally:
            await graph.close()
    return costs, Table("costs", "Cost of one operation", COST_COLUMNS, rows, COST_NOTE)


class Operations:
    """The measured operations. Each method repeats one, and its docstring names it in the table."""

    def __init__(self, fans: Fans, times: int) -> None:
        self._fans = fans
        self._graph = fans.graph
        self._times = times

    async def append(self) -> None:
        """Append an event."""
        binding = await self._graph.binding.token()
        for n in range(self._times):
            await self._graph.log.append([PostPublished(FIRST_AUTHOR + n, TEXT)], binding=binding)

    async def consume(self) -> None:
        """Read and acknowledge an event, 100 at a time."""
        run = self._graph.store.run
        read = ("XREADGROUP", "GROUP", GROUP, "c", "COUNT", 100, "STREAMS", keys.LOG, ">")
        for _ in range(0, self._times, 100):
            entries = (await run(*read))[keys.LOG]
            await run("XACK", keys.LOG, GROUP, *[entry[0] for entry in entries])

    async def follow(self) -> None:
        """Read an event as an API process does, one at a time."""
        position = "0"
        for _ in range(self._times):
            reply = await self._graph.store.run("XREAD", "COUNT", 1, "STREAMS", keys.LOG, position)
            position = reply[keys.LOG][-1][0]

    async def project(self) -> None:
        """Append and project a post without followers, 100 at a time."""
        for _ in range(0, self._times, 100):
            await append_events(self._graph, [PostPublished(FIRST_AUTHOR, TEXT) for _ in range(100)])
        await self._graph.worker().drain()

    async def insert(self) -> None:
        """Insert a post into a follower's home cache, 1,000 at a time."""
        await self._graph.fan_outs.push(FanOut(self._graph.log.seen, self._fans.audiences[0].author))

    async def page(self) -> None:
        """Read a home page of 30 posts, without the authors."""
        crowd = self._fans.crowd
        for n in range(self._times):
            await self._graph.timelines.home(crowd.viewer(n % crowd.viewers), Window(PAGE, forward=True))


def simulate(users: int, costs: dict[str, Cost], seconds: int) -> list[list[Cell]]:
    """Return a row for each layout of a network with this number of users."""
    habits = HABITS
    events = users * (habits.posts_a_month + habits.others_a_month) / MONTH * habits.peak
    pages = users * habits.daily * habits.pages_a_day / DAY * habits.peak
    inserts = inserts_in_each_second(users * habits.posts_a_month / MONTH * habits.peak, seconds)
    projecting = max(0.0, costs["project"].store - costs["append"].store - costs["consume"].store)
    work = sorted(
        events * projecting + pages * costs["page"].store + count * costs["insert"].store for count in inserts
    )
    busiest = work[int(0.99 * len(work))]
    memory = users * (habits.user_bytes + habits.cached * habits.cache_bytes)
    shards = max(3, math.ceil(busiest / BUSY), math.ceil(memory / SHARD_BYTES))
    rows: list[list[Cell]] = []
    for layout in LAYOUTS:
        reads = min(events, layout.reads)
        reading = reads * costs["follow"].here + events * costs["consume"].here
        processes = math.ceil(pages * habits.request / max(0.01, BUSY - reading))
        writing = (
            events * (costs["append"].store + 2 * costs["consume"].store) / layout.logs
        )  # a worker and the archiver
        following = processes * (reads * costs["follow"].store + events * costs["consume"].store) / layout.logs
        limits = {
            "memory": memory / SHARD_BYTES > busiest / BUSY and shards > 3,
            "readers of the log": writing + following > BUSY,
            "the log in each process": reading > BUSY / 4,
        }
        loads = [100 * busiest / shards, 100 * writing, 100 * following, 100 * reading]
        reached = ", ".join(name for name, is_reached in limits.items() if is_reached) or "nothing"
        rate = round(sum(inserts) / len(inserts))
        rows.append([users, layout.name, shards, processes, round(events), round(pages), rate, *loads, reached])
    return rows


def inserts_in_each_second(posts: float, seconds: int) -> list[float]:
    """Return the insertions into home caches in each second, if posts are published at random at this mean rate.

    The number of an author's followers has a Pareto distribution with mean 100. Posts of authors with more than
    `most_pushed` followers are pulled.
    """
    chance = random.Random(1)
    followers = [min(1_000_000.0, 20 * chance.paretovariate(1.25)) for _ in range(100_000)]
    pushed = [HABITS.cached * count if count <= HABITS.most_pushed else 0 for count in followers]
    return [sum(chance.choices(pushed, k=max(0, round(chance.gauss(posts, math.sqrt(posts)))))) for _ in range(seconds)]


BENCHMARK = Benchmark(
    "Measure the cost of operations, and simulate large networks.",
    {
        "full": Sizes(20_000, 20_000, (1_000_000, 10_000_000, 100_000_000), 3600),
        "quick": Sizes(2_000, 2_000, (10_000_000, 100_000_000), 600),
        "tiny": Sizes(200, 200, (1_000_000,), 20),
    },
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
