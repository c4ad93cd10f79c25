"""Publishing: the latency of the request, and the time until all followers see the post, by number of followers."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.inserts import TEXT, Audience, Fans, last_served, watermark
from benchmarks.latencies import Latencies
from benchmarks.report import Cell, Table
from benchmarks.stores import Meter, open_graph
from benchmarks.workers import workers
from graph import Graph, Tuning
from graph.paging import Window

COLUMNS = ("followers", "mode", "also running", "store", "publishes", "p50 ms", "p99 ms", "max ms", "process CPU ms")
NOTE = (
    "One client sends one request after the other, for alternating authors. With a worker process that keeps up, each "
    "request waits until the whole log is projected. Goal: p99 within 50 ms with 1,000 followers, and no more with "
    "more followers."
)
SERVED_COLUMNS = ("followers", "mode", "workers", "publish ms", "seconds until visible to all", "store ms", "checked")
SERVED_NOTE = (
    "One post by `publish`, until the whole log is projected. Where reads merge the author, no fan-out is needed. "
    "'store ms' is CPU time of the store for the post. Goal: 60 s for 1,000,000 followers."
)
PAUSE = 0.002
ALONE = "nothing"
WORKER = "a worker process"
BEHIND = "a worker process that falls behind"


async def publish_in_turns(
    graph: Graph, audiences: Sequence[Audience], publishes: int, *, wait: bool
) -> list[Latencies]:
    """Publish posts of each author in turn. After each post, wait for the workers if `wait`, else for a short time."""
    latencies = [Latencies() for _ in audiences]
    for _ in range(publishes):
        for audience, noted in zip(audiences, latencies, strict=True):
            await noted.time(partial(graph.posts.publish, audience.author, TEXT))
            await (watermark(graph, graph.log.seen) if wait else asyncio.sleep(PAUSE))
    return latencies


async def publish_rows(
    graph: Graph, audiences: Sequence[Audience], publishes: int, beside: str, *, model: str = "push", store: str = ""
) -> list[list[Cell]]:
    """Return the rows of these authors. `beside` describes the load that the caller provides."""
    rows: list[list[Cell]] = []
    measured = await publish_in_turns(graph, audiences, publishes, wait=beside == WORKER)
    for audience, noted in zip(audiences, measured, strict=True):
        figures = (noted.count, noted.p50, noted.p99, noted.worst, noted.cpu_ms)
        rows.append([audience.followers, model, beside, store or "in memory", *figures])
    return rows


async def served_row(fans: Fans, audience: Audience, ids: Sequence[int], sample: int) -> list[Cell]:
    """Publish one post, wait until these workers have served all followers, check the result, and return the row."""
    meter = Meter(fans.client, ids)
    meter.start()
    start = time.perf_counter()
    post = await fans.graph.posts.publish(audience.author, TEXT)
    answered = time.perf_counter()
    done = await watermark(fans.graph, post.id)
    spent = meter.stop()
    checked = await last_served(fans, audience, post.id, sample)
    return [audience.followers, "push", len(ids), 1000 * (answered - start), done - start, 1000 * spent.store, checked]


async def merged_rows(fans: Fans, audiences: Sequence[Audience], limit: int, publishes: int) -> list[list[list[Cell]]]:
    """Measure authors above the push limit: promotion, then publishing. Return the rows of both tables."""
    graph = await open_graph(fans.url, Tuning(push_limit=limit))
    served: list[list[Cell]] = []
    try:
        with workers(fans.url, 1, limit) as ids:
            for audience in audiences:
                for model in ("hybrid, promoting", "hybrid"):
                    meter = Meter(fans.client, ids)
                    meter.start()
                    start = time.perf_counter()
                    post = await graph.posts.publish(audience.author, TEXT)
                    answered = time.perf_counter()
                    done = await watermark(graph, post.id)
                    spent = meter.stop()
                    seen = await see(fans, graph, audience, post.id)
                    until = (done if "promoting" in model else answered) - start
                    row = [audience.followers, model, 1, 1000 * (answered - start), until, 1000 * spent.store, seen]
                    served.append(row)
            published = await publish_rows(graph, audiences, publishes, WORKER, model="hybrid")
    finally:
        await graph.close()
    return [published, served]


async def see(fans: Fans, graph: Graph, audience: Audience, post: int, sample: int = 20) -> str:
    """Check that a post is the first one on some followers' pages."""
    step = max(1, audience.followers // sample)
    indexes = range(audience.start, audience.start + audience.followers, step)
    for index in indexes:
        page = await graph.timelines.home(fans.crowd.viewer(index), Window(1, forward=True))
        assert [shown.id for shown in page.items] == [post], f"viewer {index} does not see the post"
    return f"{len(indexes)} pages read"


def publish_table(rows: Sequence[Sequence[Cell]]) -> Table:
    """Return the table of publish latencies."""
    return Table("publish", "Publish: latency of the request", COLUMNS, rows, NOTE)


def served_table(rows: Sequence[Sequence[Cell]]) -> Table:
    """Return the table of times until all followers are served."""
    return Table("served", "Publish: time until all followers see the post", SERVED_COLUMNS, rows, SERVED_NOTE)
