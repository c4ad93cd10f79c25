"""Trimmed tombstones: the floor rejects late events, but not events that are still to be projected."""

from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, Followed, Unfollowed
from graph.projections.mode import Mode
from tests.support.graph_worlds import Open, people


@pytest.fixture
async def trimming(another: Open) -> Graph:
    """Open a graph that trims tombstones as early as possible."""
    return await another(tombstones_live=timedelta(0))


async def sides(graph: Graph, follower: int, followee: int) -> tuple[bool, bool]:
    """Return whether the follower's side and the followee's side list a follow."""
    following = await graph.store.run("ZSCORE", keys.following(follower), followee)
    follower_of = await graph.store.run("ZSCORE", keys.followers(followee), follower)
    return following is not None, follower_of is not None


async def trimmed_follows(graph: Graph, raw: Redis, alice: int, bob: int, carol: int) -> list[Event]:
    """Let alice follow and unfollow bob twice and trim the tombstones; return the four events."""
    events = []
    for body in (Followed(alice, bob), Unfollowed(alice, bob), Followed(alice, bob), Unfollowed(alice, bob)):
        events += await graph.commit([body])
    await graph.worker().drain()
    await graph.commit([Followed(alice, carol), Followed(carol, bob)])
    await graph.commit([Unfollowed(alice, carol), Unfollowed(carol, bob)])
    for name in (keys.following(alice), keys.followers(bob)):
        rows: Any = await raw.zrange(keys.gone(name), 0, -1, withscores=True)
        gone: dict[str, float] = dict(rows)
        assert gone.pop("f") == events[-1].number
        assert not {str(alice), str(bob)} & set(gone)
    return events


async def test_a_follow_below_the_floor_is_not_applied(trimming: Graph, raw: Redis) -> None:
    """The tombstone of its unfollow was trimmed."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    first, _, second, _ = await trimmed_follows(trimming, raw, alice, bob, carol)

    for event in (first, second):
        await trimming.projections.project([event], Mode.WORKER)

    assert await sides(trimming, alice, bob) == (False, False)


async def test_an_unfollow_below_the_floor_writes_no_tombstone(trimming: Graph, raw: Redis) -> None:
    """A later follow, which is also below the floor, would be above that tombstone."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    _, undone, follow, _ = await trimmed_follows(trimming, raw, alice, bob, carol)

    for event in (undone, follow):
        await trimming.projections.project([event], Mode.WORKER)

    assert await sides(trimming, alice, bob) == (False, False)


async def test_the_floor_stays_below_the_watermark(trimming: Graph) -> None:
    """A follow that is not projected yet is older than tombstones that could otherwise be trimmed."""
    alice, bob, carol, dave = await people(trimming, "alice", "bob", "carol", "dave")
    await trimming.follows.follow(alice, [carol, dave])
    await trimming.worker().drain()
    await trimming.log.append([Followed(alice, bob)])
    for other in (carol, dave):
        await trimming.follows.unfollow(alice, [other])

    await trimming.worker().drain()

    assert await sides(trimming, alice, bob) == (True, True)
