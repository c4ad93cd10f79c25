"""Failovers of the log's shard that lose events which the archive holds."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph import Graph, keys
from graph.errors import StoreUnavailable
from graph.feed.updates import Gap
from graph.model import MAX_NUMBER
from graph.visibility.views import SYSTEM
from tests.faults.archive_world import agree, archive_all, caught_up, opened, rows_of, settle, watermarks, working
from tests.graph.feed.watching import feed_of, watching
from tests.support.cluster import PRIMARIES, Cluster, Node, cluster_in, kill, until
from tests.support.graph_worlds import PASSWORD, PATIENCE, befriend, people, posts, reached
from tests.support.pair import Pair, Server, pair_in
from tests.support.stopped import stopped
from tests.support.tcp_proxy import TcpProxy, proxy_to

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prompt_archiver")]


@pytest.fixture(scope="module")
def running_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run a primary and its replica."""
    with pair_in(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def pair(running_pair: Pair) -> Pair:
    """Return an empty primary and its replica."""
    running_pair.renew()
    return running_pair


@pytest.fixture
def archive_url(tmp_path: Path) -> str:
    """Return the URL of an archive. Only SQLite: all kinds behave the same here."""
    return f"sqlite:///{tmp_path}/archive.sqlite"


@dataclass
class Failover:
    """The address of a pair: that of the primary, until a failover."""

    pair: Pair
    proxy: TcpProxy

    @property
    def url(self) -> str:
        """The URL that clients use before and after the failover."""
        return f"valkey://127.0.0.1:{self.proxy.port}"

    def happen(self, promoted: Server) -> None:
        """Redirect all clients to another server."""
        self.proxy.target = promoted.socket
        for client in list(self.proxy.clients):
            client.transport.abort()


@asynccontextmanager
async def failover_of(pair: Pair) -> AsyncIterator[Failover]:
    """Run a proxy at the address of a pair."""
    async with proxy_to(pair.primary.socket) as proxy:
        yield Failover(pair, proxy)


async def change(graph: Graph) -> tuple[int, int]:
    """Make a change of each kind. Return a post and the user dave."""
    alice, bob, carol = (user or 0 for user in await graph.users.ids_of_logins(["alice", "bob", "carol"]))
    [dave] = await people(graph, "dave")
    [post, gone] = await posts(graph, bob, "lost", "deleted")
    await graph.posts.delete(bob, gone)
    [oldest, *_] = await graph.archive.post_ids(bob, 0, MAX_NUMBER)
    await graph.posts.delete(bob, oldest)
    await befriend(graph, dave, bob, carol)
    await graph.follows.unfollow(alice, [carol])
    await graph.users.update_profile(bob, name="Robert")
    return post, dave


async def check_changes(graph: Graph, post: int, dave: int) -> None:
    """Assert that the changes of `change` are still there."""
    assert (await graph.users.check_password("dave", PASSWORD)).id == dave
    [found] = await graph.posts.get_many(SYSTEM, [post])
    assert found is not None
    assert found.text == "lost"
    [robert] = await graph.users.get_many([found.author])
    assert robert is not None
    assert robert.name == "Robert"
    await agree(graph)


@pytest.mark.parametrize("process", ["the same process", "a new process"])
async def test_events_that_only_the_archive_holds_are_projected_again(
    pair: Pair, archive_url: str, process: str
) -> None:
    """New numbers are above the restored ones, the watermarks catch up, and a stream that is behind reports a gap."""
    async with failover_of(pair) as failover, opened(failover.url, archive_url) as graph:
        before = await settle(graph)
        await asyncio.to_thread(pair.separate)
        post, dave = await change(graph)
        archived = await archive_all(graph)
        rows = await rows_of(graph)

        failover.happen(pair.replica)
        async with opened(failover.url, archive_url) as new:
            graph = new if process == "a new process" else graph
            assert await new.log.last() == before
            async with working(graph):
                await reached(new.log.last, archived)
                [late] = await posts(new, dave, "after")
                assert late > archived
                await caught_up(new, late)
            await check_changes(graph, post, dave)
            assert await watermarks(new) == (late, late, late)
            assert (await rows_of(new))[:-1] == rows
            async with feed_of(new) as feed, watching(feed, dave, before) as watcher:
                assert isinstance((await watcher.take(1))[0], Gap)
            async with feed_of(new) as feed, watching(feed, dave, archived) as watcher:
                assert [update.number for update in await watcher.take(1)] == [late]


async def test_a_second_failover_loses_what_the_first_recovery_wrote(pair: Pair, archive_url: str) -> None:
    """The same archiver process restores the same events again, even if no others have been written."""
    async with failover_of(pair) as failover, opened(failover.url, archive_url) as graph:
        before = await settle(graph)
        second = await asyncio.to_thread(pair.lagging)
        await asyncio.to_thread(pair.separate)
        post, dave = await change(graph)
        archived = await archive_all(graph)
        failover.happen(pair.replica)
        await graph.store.run("DEL", keys.ARCHIVER)
        await graph.archiver.work()
        assert await graph.log.last() == archived

        failover.happen(second)
        assert await graph.log.last() == before
        await graph.archiver.work()

        assert await graph.log.last() == archived
        await archive_all(graph)
        await check_changes(graph, post, dave)


async def test_a_shard_of_a_cluster_fails_over_to_a_lagging_replica(tmp_path: Path, archive_url: str) -> None:
    """The other shards keep their projections while the worker and the archiver run."""
    with cluster_in(tmp_path / "cluster") as cluster:
        async with opened(cluster.url, archive_url) as graph:
            before = await settle(graph)
            primary, replica = shard_of_the_log(cluster)
            async with working(graph):
                with stopped(replica.pid):
                    primary.run("CLIENT", "KILL", "TYPE", "REPLICA")
                    post, dave = await change(graph)
                    archived = await graph.log.last()
                    await caught_up(graph, archived)
                    rows = await rows_of(graph)
                    kill(primary)
                await asyncio.to_thread(until, lambda: replica.run("ROLE")[0] == "master")
                assert int(replica.run("GET", keys.ARCHIVED)) == before
                [late] = await published(graph, dave, "after")
                await caught_up(graph, late)
            await check_changes(graph, post, dave)
            assert min(await watermarks(graph)) >= late > archived
            assert (await rows_of(graph))[: len(rows)] == rows
            async with feed_of(graph) as feed, watching(feed, dave, before) as watcher:
                assert isinstance((await watcher.take(1))[0], Gap)


def shard_of_the_log(cluster: Cluster) -> tuple[Node, Node]:
    """Return the primary and the replica of the log."""
    index = cluster.nodes.index(cluster.owner(keys.LOG))
    until(lambda: level(cluster.nodes[index], cluster.nodes[index + PRIMARIES]))
    return cluster.nodes[index], cluster.nodes[index + PRIMARIES]


def level(primary: Node, replica: Node) -> bool:
    """Return True if the replica has everything that the primary has written."""
    ahead, behind = (node.run("INFO", "replication") for node in (primary, replica))
    return bool(behind["master_link_status"] == "up" and ahead["master_repl_offset"] == behind["slave_repl_offset"])


async def published(graph: Graph, author: int, text: str) -> list[int]:
    """Publish a post as soon as the store is available and its numbers are above the archive's."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if await graph.log.last() >= (await graph.archive.state()).watermark:
                    return await posts(graph, author, text)
            except StoreUnavailable:
                pass
            await asyncio.sleep(0.05)
