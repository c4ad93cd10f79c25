"""Trimmed tombstones: the floor rejects late events, but not events that are still to be projected."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, Followed, Unfollowed
from graph.log.pair_events import Muted, Unmuted
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, archive_log, people, posts


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
    await archive_log(graph)
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


async def test_a_mute_below_the_floor_is_not_applied(trimming: Graph, raw: Redis) -> None:
    """Mutes have their own script."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    mute, *later = await append_events(trimming, [Muted(alice, bob), Unmuted(alice, bob), Muted(alice, carol)])
    await trimming.worker().drain()
    await archive_log(trimming)
    [undone] = await append_events(trimming, [Unmuted(alice, carol)])
    await trimming.projections.project([*later, undone], Mode.WORKER)
    assert await raw.zrange(keys.gone(keys.muting(alice)), 0, 0) == ["f"]

    await trimming.projections.project([mute], Mode.WORKER)

    assert await raw.zscore(keys.muting(alice), str(bob)) is None


async def test_an_unfollow_below_the_floor_writes_no_tombstone(trimming: Graph, raw: Redis) -> None:
    """Otherwise a later follow below the floor would be above that tombstone."""
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
    await append_events(trimming, [Followed(alice, bob)])
    await archive_log(trimming)
    for other in (carol, dave):
        await trimming.follows.unfollow(alice, [other])

    await trimming.worker().drain()

    assert await sides(trimming, alice, bob) == (True, True)


@pytest.mark.parametrize("archived", [False, True])
async def test_tombstones_that_are_not_archived_are_kept(trimming: Graph, raw: Redis, archived: bool) -> None:
    """After a failover, the archive may project events again that the store has lost."""
    alice, bob, carol = await people(trimming, "alice", "bob", "carol")
    await archive_log(trimming)
    await trimming.follows.follow(alice, [bob, carol])
    await trimming.follows.unfollow(alice, [bob])
    await trimming.worker().drain()
    if archived:
        await archive_log(trimming)

    await trimming.follows.unfollow(alice, [carol])

    gone = await raw.zrange(keys.gone(keys.following(alice)), 0, -1)
    assert (str(bob) in gone) is not archived


async def test_a_worker_reads_how_far_events_are_archived_as_it_acknowledges(trimming: Graph, another: Open) -> None:
    """The number comes without a separate round trip."""
    process, other = await another(), await another()
    [alice] = await people(trimming, "alice")
    await trimming.worker().drain()
    await archive_log(trimming)

    await process.worker().drain()

    assert process.log.discardable == alice
    assert other.log.discardable == 0


async def test_what_is_not_archived_after_a_failover_is_not_discarded(trimming: Graph, raw: Redis) -> None:
    """The archive watermark in the store goes back together with the log."""
    alice, bob = await people(trimming, "alice", "bob")
    await trimming.worker().drain()
    await archive_log(trimming)
    assert trimming.log.discardable == bob

    await raw.set(keys.ARCHIVED, alice)
    await trimming.log.watermark()

    assert trimming.log.discardable == alice


async def test_a_late_projection_of_a_deleted_post_leaves_no_record(trimming: Graph, raw: Redis) -> None:
    """The tombstone was dropped, because the archive no longer shows the post."""
    [alice] = await people(trimming, "alice")
    [post] = await posts(trimming, alice, "deleted")
    published = await trimming.log.get(post)
    assert published is not None
    await trimming.posts.delete(alice, post)
    await trimming.worker().drain()
    await archive_log(trimming)
    await asyncio.sleep(0.002)
    await trimming.scan.run_pass()
    assert not await raw.exists(keys.post(post))

    await trimming.projections.project([published], Mode.REQUEST)

    assert await trimming.posts.get_many(SYSTEM, [post]) == [None]
    assert not await raw.exists(keys.post(post))
