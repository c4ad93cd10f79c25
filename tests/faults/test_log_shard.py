"""A cluster without its log's shard: pages of other shards work immediately, in running and in new processes."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph import Graph, keys
from graph.paging import CursorKind, decode_cursor
from resolvers import ids
from resolvers.context import Context
from schema import schema
from tests.faults.archive_world import opened
from tests.resolvers.conftest import issue_token
from tests.support.cluster import Cluster, cluster_in, kill
from tests.support.graph_worlds import PATIENCE, crowd, posts

pytestmark = pytest.mark.slow

PAGE = """
query ($user: ID!) {
  node(id: $user) {
    ... on User { login followersCount timeline { liveCursor entries(first: 5) { nodes { ... on Post { text } } } } }
  }
}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Run a cluster that still serves the covered slots if others are not covered.

    On a busy machine, nodes must not report each other as failed or wait for the disk, because they would then refuse
    reads.
    """
    with cluster_in(tmp_path / "cluster") as cluster:
        for node in cluster.nodes:
            node.run("CONFIG", "SET", "cluster-require-full-coverage", "no")
            node.run("CONFIG", "SET", "cluster-node-timeout", 60_000)
            node.run("CONFIG", "SET", "appendonly", "no")
        yield cluster


async def author_elsewhere(graph: Graph, cluster: Cluster) -> int:
    """Return an author whose keys and post are not in the shard of the log."""
    away = cluster.owner(keys.LOG)
    for author in await crowd(graph, 30):
        if cluster.owner(keys.posts(author)) is not away:
            [post] = await posts(graph, author, "still here")
            if cluster.owner(keys.post(post)) is not away:
                return author
    raise AssertionError("all authors and posts are in the log's shard")


async def live_cursor_of_page(graph: Graph, author: int) -> int:
    """Read a page of the author's timeline, and return its live cursor."""
    variables = {"user": ids.encode(ids.Kind.USER, author)}
    result = await schema.execute(PAGE, context_value=Context(graph, None, issue_token), variable_values=variables)
    assert not result.errors, [getattr(each.original_error, "reason", "") for each in result.errors]
    assert result.data is not None
    timeline = result.data["node"]["timeline"]
    assert [post["text"] for post in timeline["entries"]["nodes"]] == ["still here"]
    return decode_cursor(CursorKind.LOG, timeline["liveCursor"])


async def test_pages_work_without_the_shard_of_the_log(cluster: Cluster, tmp_path: Path) -> None:
    """The live cursor is the last known watermark. A process that has never read one waits once, then uses 0."""
    archive_url = f"sqlite:///{tmp_path / 'archive.sqlite'}"
    async with opened(cluster.url, archive_url) as graph, opened(cluster.url, archive_url) as new:
        author = await author_elsewhere(graph, cluster)
        watermark = await graph.worker().drain()
        assert await live_cursor_of_page(graph, author) == watermark
        await new.users.get_many([author])
        primary = cluster.owner(keys.LOG)
        for node in (cluster.nodes[cluster.nodes.index(primary) + len(cluster.primaries)], primary):
            kill(node)

        async with asyncio.timeout(PATIENCE):
            assert await live_cursor_of_page(new, author) == 0
            started = time.monotonic()
            for _ in range(20):
                assert await live_cursor_of_page(new, author) == 0
                assert await live_cursor_of_page(graph, author) == watermark
            assert time.monotonic() - started < 20, "pages waited for the shard that is away"
