"""Home pages with and without conversations: `python -m benchmarks.conversations [--quick] [--json FILE]`.

Executes two queries in turn for the same home timeline: one for posts with their authors and relationships, and one
that also selects the counts of replies, reposts and likes, what the viewer has liked and reposted, and the reposted
posts with their authors.
"""

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from graphql import parse

from benchmarks.command import Benchmark
from benchmarks.latencies import Latencies
from benchmarks.peers.queries import HOME
from benchmarks.report import Cell, Table
from benchmarks.stores import open_graph, private_store
from executor import Executor
from graph import Graph
from graph.log.events import EventBody, Followed, Liked, PostPublished, Reposted, UserCreated
from graph.paging import Window
from graph.projections.mode import Mode
from resolvers.context import Context, Viewer
from schema import schema
from server.demo.world import Person
from tests.resolvers.conftest import issue_token
from tests.support.graph_worlds import append_events

COUNTED = "repliesCount repostsCount likesCount viewerHasLiked viewerHasReposted"
EXTENDED = HOME.replace(
    "... on Post {",
    f"... on Repost {{ post {{ id text createdAt {COUNTED} author {{ id login name relationship {{ state }} }} }} }} "
    f"... on Post {{ {COUNTED}",
    1,
)
COLUMNS = ("query", "pages", "p50 ms", "p99 ms", "CPU ms", "store round trips", "ratio of p50", "ratio of CPU")
NOTE = (
    "The first page of 30 entries, a third of which are reposts, from the home cache, executed in this process without "
    "HTTP. The viewer has liked a third of the posts. Ratios to the first row, in one run. Goal: at most 1.5."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of authors whom the viewer follows, and the number of pages per query."""

    authors: int
    pages: int


@dataclass(slots=True)
class Reader:
    """A viewer with a home timeline."""

    graph: Graph
    viewer: int
    executor: Executor

    async def read(self, document: object) -> int:
        """Read a page. Return the number of round trips."""
        trips = self.graph.store.round_trips
        context = Context(self.graph, Viewer(self.viewer, "", datetime.now(UTC)), issue_token)
        result = await self.executor.execute(document, context_value=context)  # type: ignore[arg-type]
        if result.errors:
            raise AssertionError(str(result.errors))
        return self.graph.store.round_trips - trips


async def build(graph: Graph, authors: int) -> int:
    """Write users, follows, posts, reposts and likes, and return the viewer."""

    async def write(*bodies: EventBody) -> list[int]:
        events = await append_events(graph, bodies)
        await graph.projections.project(events, Mode.WORKER)
        return [event.number for event in events]

    persons = [Person(f"person{place}", f"Person {place}") for place in range(2 * authors + 1)]
    await graph.users.claim_many([(person.login, person.login, None) for person in persons])
    viewer, *others = await write(*(UserCreated(each.login, each.name, each.login) for each in persons))
    followed, strangers = others[:authors], others[authors:]
    await write(*(Followed(viewer, author) for author in followed))
    originals = await write(*(PostPublished(author, "an original that others repost") for author in strangers))
    posts = list(zip(strangers, originals, strict=True))
    for turn in range(3):
        bodies: list[EventBody] = []
        for place, author in enumerate(followed):
            if (place + turn) % 3:
                bodies.append(PostPublished(author, f"post {turn} of somebody whom the viewer follows"))
            else:
                stranger, original = posts[(place + turn) % len(posts)]
                bodies.append(Reposted(author, original, stranger))
        posts += [
            (body.author, number)
            for body, number in zip(bodies, await write(*bodies), strict=True)
            if isinstance(body, PostPublished)
        ]
    await write(*(Liked(viewer, post, author) for author, post in posts[::3]))
    await graph.timelines.home(viewer, Window(30, forward=True))
    await graph.timelines.wait_for_rebuilds()
    return viewer


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Measure both queries in turn."""
    with private_store() as url:
        graph = await open_graph(url)
        try:
            reader = Reader(graph, await build(graph, sizes.authors), Executor(schema._schema))
            queries = {"posts, authors, relationships": parse(HOME), "with conversations": parse(EXTENDED)}
            latencies = {name: Latencies() for name in queries}
            for document in queries.values():
                await reader.read(document)
            trips = {name: await reader.read(document) for name, document in queries.items()}
            for (name, document), _ in zip(itertools.cycle(queries.items()), range(2 * sizes.pages), strict=False):
                await latencies[name].time(lambda document=document: reader.read(document))  # type: ignore[misc]
        finally:
            await graph.close()
    plain = next(iter(latencies.values()))
    rows: list[list[Cell]] = [
        [
            *(name, each.count, each.p50, each.p99, each.cpu_ms),
            *(trips[name], each.p50 / plain.p50, each.cpu_ms / plain.cpu_ms),
        ]
        for name, each in latencies.items()
    ]
    yield Table("conversations", "Home pages with and without conversations", COLUMNS, rows, NOTE)


BENCHMARK = Benchmark(
    "Compare home pages with and without conversations.",
    {"full": Sizes(60, 2000), "quick": Sizes(60, 300), "tiny": Sizes(12, 5)},
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
