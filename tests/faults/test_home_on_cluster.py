"""Home timelines on a cluster: the cost of a page without a cache, even while slots move."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
from redis.crc import key_slot

from graph import Graph, keys
from graph.home.merge import Merged, Which, merge_hot
from graph.log.events import Followed
from graph.visibility.views import SYSTEM
from tests.faults.archive_world import opened
from tests.support.cluster import Cluster, Node, cluster_in
from tests.support.graph_worlds import counted, crowd, home, ids, many_posts, newest, oldest
from tests.support.slot_moves import finish, is_agreed, move

pytestmark = pytest.mark.slow

FOLLOWED = 1500
WITH_POSTS = 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def graph(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Graph]:
    """Open a graph on the empty cluster."""
    for node in cluster.primaries:
        node.run("FLUSHALL")
    async with opened(cluster.url, f"sqlite:///{tmp_path / 'archive.sqlite'}") as graph:
        yield graph


async def viewer_of_many(graph: Graph) -> tuple[list[int], list[int]]:
    """Return a viewer, the authors whom the viewer follows, and the ids of their posts, newest first."""
    users = await crowd(graph, FOLLOWED + 1)
    await graph.commit([Followed(users[0], author) for author in users[1:]])
    written = [post for author in users[1 : WITH_POSTS + 1] for post in await many_posts(graph, author, 3)]
    return users, written[::-1]


async def test_a_page_without_a_cache_takes_a_few_commands(graph: Graph) -> None:
    """The authors of each node are merged together. Many such pages at once do not exceed the limit of commands."""
    [viewer, *_], written = await viewer_of_many(graph)

    async with counted(graph) as cost:
        page = await graph.timelines.home(viewer, newest(30))
        await graph.timelines.wait_for_rebuilds()

    assert ids(page.items) == written[:30]
    assert cost.commands < 60
    await graph.store.run("UNLINK", keys.home(viewer))
    pages = await asyncio.gather(*(graph.timelines.home(viewer, newest(30)) for _ in range(24)))
    assert all(ids(page.items) == written[:30] for page in pages)


async def test_pages_are_complete_while_slots_move(graph: Graph, cluster: Cluster) -> None:
    """Pages are complete if an author's keys are on another node than in the slot map, or divided between two nodes.

    The commands of a page stay far below the limit of waiting commands, so that many pages can be read at once.
    """
    users, written = await viewer_of_many(graph)
    assert await home(graph, users[0], 30) == written
    slot = key_slot(keys.posts(users[1]).encode())
    source = cluster.owner(keys.posts(users[1]))
    target = next(node for node in cluster.primaries if node is not source)
    target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    for name in source.run("CLUSTER", "GETKEYSINSLOT", slot, 1000):
        source.run("MIGRATE", "127.0.0.1", target.port, name, 0, 5000)
        await graph.timelines.close()  # a rebuild needs two keys of each author, so it waits for the slot
        await graph.store.run("UNLINK", keys.home(users[0]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("graph.store.store.MAX_WAITING", FOLLOWED - 1)
            assert await home(graph, users[0], 30) == written
    for node in cluster.primaries:
        node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    await graph.store.run("UNLINK", keys.home(users[0]))
    assert await home(graph, users[0], 30) == written


def slot_of(user: int) -> int:
    return key_slot(keys.posts(user).encode())


def nodes_for(cluster: Cluster, slot: int) -> tuple[Node, Node]:
    """Return the primary that owns a slot, and another one."""
    source = next(node for node in cluster.primaries if is_agreed(cluster, slot, node))
    return source, next(node for node in cluster.primaries if node is not source)


async def test_authors_of_one_slot_are_merged_while_it_moves(graph: Graph, cluster: Cluster) -> None:
    """The new node does not mistake authors who are still on the old node for authors without posts."""
    one, other = 1, next(user for user in count(2) if slot_of(user) == slot_of(1))
    written = [10, 11, 12, 13]
    await graph.store.send([("ZADD", keys.posts((one, other)[post % 2]), post, post) for post in written])
    slot = slot_of(one)
    source, target = nodes_for(cluster, slot)

    for moved in (other, one):
        move(slot, source, target, up_to=keys.posts(moved))
        for window in (newest(30), oldest(30)):
            [merged] = await merge_hot(graph.store, [([one, other], window)])
            assert sorted(merged.posts) == written

    move(slot, source, target, up_to="")
    finish(cluster, slot, target)
    move(slot, target, source, up_to="")
    finish(cluster, slot, source)


async def test_the_archive_floor_of_an_author_is_found_while_the_slot_moves(graph: Graph, cluster: Cluster) -> None:
    """The floor is found although the number of archived posts is on the other node."""
    [author] = await crowd(graph, 1)
    posts = await many_posts(graph, author, 3)
    await graph.store.send([("ZADD", keys.posts(author), posts[0], "f"), ("SET", keys.cold(author), 1)])
    slot = slot_of(author)
    source, target = nodes_for(cluster, slot)

    for moved in (keys.cold(author), keys.posts(author)):
        await asyncio.to_thread(move, slot, source, target, up_to=moved)
        [merged] = await merge_hot(graph.store, [([author], newest(30))], Which.COUNTED)
        assert merged == Merged(posts[::-1], {author: posts[0]}, [])

    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, up_to="")
        await asyncio.to_thread(finish, cluster, slot, taker)


async def test_pages_of_users_do_not_wait_until_a_slot_has_moved(graph: Graph, cluster: Cluster) -> None:
    """The key with the number of archived posts does not exist, and no node can know that before the slot has moved."""
    [author] = await crowd(graph, 1)
    posts = await many_posts(graph, author, 3)
    slot = slot_of(author)
    source, target = nodes_for(cluster, slot)

    for moved in ("none", keys.posts(author)):
        await asyncio.to_thread(move, slot, source, target, up_to=moved)
        [backward] = await graph.timelines.user(SYSTEM, [author], oldest(30))
        [merged] = await merge_hot(graph.store, [([author], newest(2))], Which.COUNTED)
        assert sorted(ids(backward.items)) == posts
        assert merged.posts == posts[:0:-1]

    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, up_to="")
        await asyncio.to_thread(finish, cluster, slot, taker)
