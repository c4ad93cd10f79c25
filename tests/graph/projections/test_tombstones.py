"""Trimmed tombstones: what made way for a floor still holds late events off, and nothing that is to come."""

from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, Followed, Unfollowed
from graph.projections.mode import Mode
from tests.support.graph_worlds import Open, people


@pytest.fixture
async def trimming(another: Open) -> Graph:
    """Open a graph whose tombstones live no longer than they must."""
    return await another(tombstones_live=timedelta(0))


async def sides(graph: Graph, follower: int, followee: int) -> tuple[bool, bool]:
    """Tell whether somebody follows somebody, as either side has it."""
    following = await graph.store.run("ZSCORE", keys.following(follower), followee)
    follower_of = await graph.store.run("ZSCORE", keys.followers(followee), follower)
    return following is not None, follower_of is not None


async def history(graph: Graph, raw: Redis, alice: int, bob: int, carol: int) -> list[Event]:
    """Let alice follow and unfollow bob twice, until nothing but a floor is left of it; give the four events."""
    events = []
    for body in (Followed(alice, bob), Unfollowed(alice, bob), Followed(alice, bob), Unfollowed(alice, bob)):
        events += await graph.commit([body])
    await graph.worker().drain()
    await graph.commit([Followed(alice, carol), Followed(carol, bob)])
    await graph.commit([Unfollowed(alice, carol), Unfollowed(carol, bob)])
    for name in (keys.following(alice), keys.followers(bob)):
        gone = dict(await raw.zrange(keys.gone(name), 0, -1, withscores=True))
        assert gone.pop("f") == events[-1].number
        assert not {str(alice), str(bob)} & set(gone)
    return events


async def test_a_late_follow_below_the_floor_changes_nothing(trimming: Graph, raw: Redis) -> None:
    """Its unfollow left no tombstone, but the floor."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    first, _, second, _ = await history(trimming, raw, alice, bob, carol)

    for event in (first, second):
        await trimming.projections.project([event], Mode.WORKER)

    assert await sides(trimming, alice, bob) == (False, False)


async def test_a_late_unfollow_below_the_floor_lets_no_late_follow_in(trimming: Graph, raw: Redis) -> None:
    """It leaves no tombstone of its own that a later, but equally old follow could pass."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    _, undone, follow, _ = await history(trimming, raw, alice, bob, carol)

    for event in (undone, follow):
        await trimming.projections.project([event], Mode.WORKER)

    assert await sides(trimming, alice, bob) == (False, False)


async def test_the_floor_stays_below_what_is_still_to_be_projected(trimming: Graph) -> None:
    """A follow that nobody has projected yet is older than tombstones that nobody would miss otherwise."""
    alice, bob, carol, dave = await people(trimming, "alice", "bob", "carol", "dave")
    await trimming.follows.follow(alice, [carol, dave])
    await trimming.worker().drain()
    await trimming.log.append([Followed(alice, bob)])
    for other in (carol, dave):
        await trimming.follows.unfollow(alice, [other])

    await trimming.worker().drain()

    assert await sides(trimming, alice, bob) == (True, True)
