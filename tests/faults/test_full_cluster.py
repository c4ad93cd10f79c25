"""A cluster with a primary that is full, or that hangs: what still works, what is refused, and how it recovers."""

import asyncio
from pathlib import Path

import pytest

from graph import capacity, keys
from graph.errors import Overloaded
from tests.faults.test_full_store import TUNING
from tests.support.cluster import cluster_in, hanging
from tests.support.graph_worlds import PATIENCE, befriend, home, own, people, posts
from tests.support.graphs import open_graph


@pytest.mark.slow
async def test_one_full_primary_of_a_cluster_stops_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All changes, because an event may need any shard. The others are read and cleaned up as before."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    with cluster_in(tmp_path) as cluster:
        graph = await open_graph(cluster.url, TUNING)
        try:
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
        finally:
            await graph.close()


@pytest.mark.slow
async def test_a_primary_that_hangs_does_not_hide_the_others(tmp_path: Path) -> None:
    """Of those that answer, the fullest counts, also if it was not so before. Changes do not wait for the reading."""
    with cluster_in(tmp_path) as cluster:
        graph = await open_graph(cluster.url, TUNING)
        *healthy, hung = cluster.primaries
        try:
            for node in cluster.primaries:
                node.run("CONFIG", "SET", "maxmemory", 1)
            await graph.capacity.read()
            assert graph.capacity.is_full
            for node in healthy:
                node.run("CONFIG", "SET", "maxmemory", 0)
            with hanging(hung, cluster.nodes[-1]):
                await asyncio.sleep(capacity.REFRESH_SECONDS)
                graph.capacity.refusal_of_changes()  # returns at once, and begins to read
                await graph.capacity.read()
                assert len(graph.capacity.memory) == len(healthy)
                assert graph.capacity.refusal_of_changes() == ""
        finally:
            await graph.close()
