"""A cluster with a primary that is full or hangs: what works, what is refused, and how the cluster recovers."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from graph import Graph, keys
from graph.errors import Overloaded
from graph.store import capacity
from tests.faults.test_full_store import TUNING
from tests.support.cluster import Cluster, cluster_in
from tests.support.graph_worlds import PATIENCE, befriend, home, own, people, posts
from tests.support.graphs import open_graph
from tests.support.stopped import stopped

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster without a memory limit."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def graph(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Graph]:
    """Open a graph that reads the memory of the cluster at every check."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    graph = await open_graph(cluster.url, TUNING)
    yield graph
    await graph.close()
    for node in cluster.primaries:
        node.run("CONFIG", "SET", "maxmemory", 0)


async def test_one_full_primary_of_a_cluster_stops_changes(cluster: Cluster, graph: Graph) -> None:
    """All changes are refused, because an event may need any shard. The other primaries can be read and cleaned up."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    kept, deleted = await posts(graph, bob, "kept", "deleted")
    node = cluster.owner(keys.post(deleted))
    node.run("CONFIG", "SET", "maxmemory", 1)
    await graph.capacity.read()

    with pytest.raises(Overloaded):
        await graph.posts.publish(alice, "more")
    await graph.posts.delete(bob, deleted)
    assert await home(graph, alice) == await own(graph, bob) == [kept]
    async with asyncio.timeout(PATIENCE):
        assert await graph.worker().drain() == await graph.log.last()

    node.run("CONFIG", "SET", "maxmemory", 0)
    await graph.capacity.read()
    await graph.posts.publish(alice, "more")


async def test_a_primary_that_hangs_does_not_hide_the_others(cluster: Cluster, graph: Graph) -> None:
    """The fullest primary that answers counts, even if another was fuller before. Changes do not wait for a check."""
    *healthy, hung = cluster.primaries
    for node in cluster.primaries:
        node.run("CONFIG", "SET", "maxmemory", 1)
    await graph.capacity.read()
    assert graph.capacity.is_full
    for node in healthy:
        node.run("CONFIG", "SET", "maxmemory", 0)
    with stopped(hung.pid, cluster.nodes[-1].pid):
        graph.capacity.refusal_of_changes()  # returns at once, and starts a reading
        await graph.capacity.read()
        assert len(graph.capacity.memory) == len(healthy)
        assert graph.capacity.refusal_of_changes() == ""
