"""A real social graph of 75,877 users, loaded and queried through GraphQL, compared with plain sets of its file.

Takes half a minute. Runs in CI and in the long profile, where the data is present.
"""

import gzip
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from graph import Graph
from graph.archive.archive import Archive
from graph.log.events import Event, PostPublished, UserCreated
from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from server.seeding.load import load
from server.seeding.sources import seed_source
from tests.conftest import CHEAP
from tests.support.graph_worlds import PATIENCE
from tests.support.graphs import archive_url_of, open_graph

DATA = Path(__file__).parents[3] / "shared" / "data"
POSTS = 60_000
EDGES, TEXTS = DATA / "soc-epinions1.txt.gz", DATA / "weibo-texts.txt.gz"

RELATIONS = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { relationship { state } } } }"
FOLLOWERS = """query ($id: ID!, $after: String) { user(by: { id: $id }) { followersCount
  followers(first: 100, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }"""
HOME = """query ($after: String) { viewer { homeTimeline {
  entries(first: 100, after: $after) { edges { node { id } } pageInfo { hasNextPage endCursor } } } } }"""


class RealGraph:
    """The file as plain sets, and a store loaded from it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.following: defaultdict[int, set[int]] = defaultdict(set)
        self.followers: defaultdict[int, set[int]] = defaultdict(set)
        self.posts: defaultdict[int, list[int]] = defaultdict(list)
        self.ids: list[int] = []

    async def load(self, follows: Path) -> None:
        """Load the sets and the store from a file of follows, and print the duration."""
        for follower, followee in pairs_of(follows):
            self.following[follower].add(followee)
            self.followers[followee].add(follower)
        source = seed_source(posts=POSTS, follows=follows, texts=TEXTS)
        start = time.monotonic()
        await load(self.graph, replace(source, events=lambda base: self.watched(source.events(base))))
        print(f"\n{source.what}: loaded in {time.monotonic() - start:.0f} s")

    def watched(self, events: Iterable[Event]) -> Iterator[Event]:
        """Record the ids of users and the authors of posts while they are loaded."""
        numbers: dict[int, int] = {}
        for event in events:
            if isinstance(event.body, UserCreated):
                numbers[event.number] = int(event.body.login.removeprefix("p"))
                self.ids.append(event.number)
            elif isinstance(event.body, PostPublished):
                self.posts[numbers[event.body.author]].append(event.number)
            yield event

    def user(self, number: int) -> str:
        """Return the global id of the user with this number in the file."""
        return ids.encode(ids.Kind.USER, self.ids[number])

    async def ask(self, query: str, viewer: int | None = None, **variables: Any) -> dict[str, Any]:
        """Execute a query as the user with this number."""
        end = datetime.now(UTC) + timedelta(days=1)
        who = None if viewer is None else Viewer(self.ids[viewer], "", end)
        result = await schema.execute(query, variables, Context(self.graph, who, lambda session: ""))
        assert result.errors is None
        assert result.data is not None
        return result.data

    def state(self, viewer: int, subject: int) -> str:
        """Return a relationship according to the sets."""
        if viewer == subject:
            return "YOU"
        states = {(True, True): "MUTUAL", (True, False): "FOLLOWING", (False, True): "FOLLOWED_BY"}
        return states.get((subject in self.following[viewer], subject in self.followers[viewer]), "STRANGER")


@pytest.fixture
async def plain(store_url: str) -> AsyncIterator[Graph]:
    """Open a graph in the mode of a single server, where scripts may use keys of several slots."""
    graph = await open_graph(store_url, CHEAP, archive=Archive(archive_url_of(store_url), timeout=PATIENCE))
    yield graph
    await graph.close()


@pytest.mark.timeout(600)
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the real graph and texts are not in {DATA}")
async def test_the_real_graph_equals_plain_sets(plain: Graph, long_profile: bool, tmp_path: Path) -> None:
    """10,000 relationships, the followers of the ten most followed users, and 100 complete home timelines."""
    if not (long_profile or os.environ.get("CI")):
        pytest.skip("loads for half a minute; run with --long")
    real = RealGraph(plain)
    await real.load(follows_in(tmp_path / "follows.txt"))
    random = Random(1)  # noqa: S311 - a sample, no secret
    await compare_relations(real, random)
    await compare_followers(real)
    await compare_homes(real, random)


def follows_in(path: Path) -> Path:
    """Write the pairs of the real graph, which are undirected, as directed follows: a third of them mutual."""
    with gzip.open(EDGES, "rt", encoding="utf-8") as lines, path.open("w", encoding="utf-8") as written:
        written.write(next(lines))
        for line in lines:
            a, b = map(int, line.split())
            written.write(f"{a} {b}\n{b} {a}\n" if (a + b) % 3 == 0 else f"{a} {b}\n")
    return path


def pairs_of(path: Path) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a file of follows."""
    for line in islice(path.read_text("utf-8").splitlines(), 1, None):
        a, b = map(int, line.split())
        yield a, b


async def compare_relations(real: RealGraph, random: Random) -> None:
    """Half of the users are neighbours of their viewer, so that all states occur."""
    everybody = range(len(real.ids))
    seen: defaultdict[str, int] = defaultdict(int)
    for viewer in random.sample(everybody, 100):
        near = sorted(real.following[viewer] | real.followers[viewer])
        subjects = list(dict.fromkeys([*random.sample(near, min(49, len(near))), viewer]))
        subjects += [other for other in random.sample(everybody, 120) if other not in subjects][: 100 - len(subjects)]
        answer = await real.ask(RELATIONS, viewer, ids=[real.user(subject) for subject in subjects])
        states = [node["relationship"]["state"] for node in answer["nodes"]]
        assert states == [real.state(viewer, subject) for subject in subjects]
        for state in states:
            seen[state] += 1
    assert sum(seen.values()) == 10_000
    assert set(seen) == {"YOU", "STRANGER", "FOLLOWING", "FOLLOWED_BY", "MUTUAL"}


async def compare_followers(real: RealGraph) -> None:
    """Compare complete lists, page by page, with their counts."""
    for famous in sorted(real.followers, key=lambda number: -len(real.followers[number]))[:10]:
        found: list[str] = []
        after, more = None, True
        while more:
            user = (await real.ask(FOLLOWERS, id=real.user(famous), after=after))["user"]
            found += [node["id"] for node in user["followers"]["nodes"]]
            after, more = user["followers"]["pageInfo"]["endCursor"], user["followers"]["pageInfo"]["hasNextPage"]
        assert user["followersCount"] == len(found)
        assert sorted(found) == sorted(real.user(follower) for follower in real.followers[famous])


async def compare_homes(real: RealGraph, random: Random) -> None:
    """Compare complete timelines, page by page, with a merge of the authors' posts."""
    for viewer in random.sample(range(len(real.ids)), 100):
        expected = sorted((p for author in {viewer, *real.following[viewer]} for p in real.posts[author]), reverse=True)
        found: list[str] = []
        after, more = None, True
        while more:
            posts = (await real.ask(HOME, viewer, after=after))["viewer"]["homeTimeline"]["entries"]
            found += [edge["node"]["id"] for edge in posts["edges"]]
            after, more = posts["pageInfo"]["endCursor"], posts["pageInfo"]["hasNextPage"]
        assert found == [ids.encode(ids.Kind.POST, post) for post in expected]
