"""The age of home caches: reads do not extend it, so a missing post does not stay missing."""

import asyncio
from datetime import timedelta

from redis.asyncio import Redis

from graph import Graph, keys
from tests.support.graph_worlds import PATIENCE, Open, befriend, cached, crowd, home, newest, people, posts


async def test_reads_and_posts_do_not_prolong_the_life_of_a_cache(another: Open, raw: Redis) -> None:
    graph = await another(hibernate_after=timedelta(days=7))
    [alice] = await people(graph, "alice")
    await posts(graph, alice, "1")
    await cached(graph, alice)
    key = keys.home(alice)
    assert 6.2 * 86400 < await raw.ttl(key) <= 7 * 86400

    for left in (6, 3, 0.1):
        await raw.expire(key, int(left * 86400))
        await graph.timelines.home(alice, newest(1))
        await posts(graph, alice, "2")
        assert await raw.ttl(key) <= left * 86400


async def test_caches_that_are_rebuilt_together_expire_at_different_times(graph: Graph, raw: Redis) -> None:
    viewers = await crowd(graph, 20)
    await cached(graph, *viewers)

    assert len({await raw.ttl(keys.home(viewer)) for viewer in viewers}) > 10


async def test_a_hole_in_a_cache_lasts_no_longer_than_the_cache(another: Open, raw: Redis) -> None:
    """A failover of the viewer's shard may have lost an insertion that the log and the watermark contain."""
    graph = await another(hibernate_after=timedelta(seconds=1))
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await cached(graph, alice)
    written = await posts(graph, bob, "lost", "kept")
    await raw.zrem(keys.home(alice), written[0])
    assert await home(graph, alice) == written[1:]

    async with asyncio.timeout(PATIENCE):
        while await home(graph, alice) != written[::-1]:  # noqa: ASYNC110 - nothing signals the expiry
            await asyncio.sleep(0.05)
