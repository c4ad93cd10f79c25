"""A lagging replica becomes the primary of a shard: the worker restores the projections that the shard has lost."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Followed
from graph.log.numbers import entry_id
from graph.worker.consumer import GROUP
from graph.worker.recovery import LAG, Recovery
from tests.conftest import CHEAP
from tests.graph.home.test_fan_out import served
from tests.graph.worker.unprojected import append
from tests.properties.snapshots import Snapshots
from tests.support.graph_worlds import PATIENCE, background, befriend, cached, crowd, people, posts, reached, state
from tests.support.graphs import open_graph
from tests.support.stores import Fault, HookedStore, runs

RETENTION = timedelta(hours=1)


class ClusterOfTwo(HookedStore):
    """A store that reports two primaries, or one for each replication id that the test chooses."""

    ids: tuple[str, ...] = ("id-1", "id-2")

    async def primaries(self) -> dict[str, str]:
        return {f"a:{port}": each for port, each in enumerate(self.ids)}


@pytest.fixture
async def cluster(store_url: str) -> AsyncIterator[Graph]:
    graph = await open_graph(store_url, replace(CHEAP, fan_out_task=2), partial(ClusterOfTwo, single_slot=True))
    yield graph
    await graph.close()


def fail_over(graph: Graph) -> None:
    """Let another server take over a shard."""
    assert isinstance(graph.store, ClusterOfTwo)
    graph.store.ids = ("id-1", "id-3")


async def test_lost_projections_are_restored(cluster: Graph, raw: Redis, store_url: str) -> None:
    """Posts, their tasks, unfollows and log-outs of the last minutes are restored; the watermark does not change."""
    alice, bob, *fans = await crowd(cluster, 6)
    for fan in (alice, *fans):
        await befriend(cluster, fan, bob)
    await befriend(cluster, bob, alice)
    session = await cluster.sessions.start(bob)
    await cached(cluster, alice, *fans)
    await cluster.worker().drain()
    await Recovery(cluster.store, RETENTION, cluster.losses).check()
    snapshots = Snapshots(store_url)
    before = snapshots.take("*[^g]}*")  # everything but the log
    [post] = await posts(cluster, bob, "hi")
    await cluster.follows.unfollow(bob, [alice])
    await cluster.sessions.end(bob, session.id)
    watermark = await cluster.worker().drain()
    expected = await state(raw)
    snapshots.roll_back(before)
    assert await cluster.sessions.is_live(bob, session.id)
    assert await served(raw, fans, post) == []

    fail_over(cluster)
    async with background(cluster.worker().run()):
        await reached(lambda: has_ended(cluster, bob, session.id), 1, PATIENCE)
        await reached(lambda: number_served(raw, fans, post), len(fans))

    assert await state(raw) == expected
    assert await cluster.log.watermark() == watermark
    snapshots.close()


async def has_ended(graph: Graph, user: int, session: str) -> int:
    return not await graph.sessions.is_live(user, session)


async def number_served(raw: Redis, fans: list[int], post: int) -> int:
    return len(await served(raw, fans, post))


async def test_the_same_primaries_cause_no_recovery(cluster: Graph) -> None:
    """Unchanged primaries, the first check, or a primary that does not answer cause no recovery."""
    await people(cluster, "alice")
    await cluster.worker().drain()
    recovery = Recovery(cluster.store, RETENTION, cluster.losses)

    assert [await recovery.check() for _ in range(3)] == [False, False, False]
    fail_over(cluster)
    assert [await recovery.check() for _ in range(3)] == [True, False, False]


async def test_events_that_the_log_itself_has_lost_are_noted(cluster: Graph) -> None:
    """The lost events are noted, so that a repair corrects the data that other shards derived from them."""
    alice, bob = await people(cluster, "alice", "bob")
    [number] = await append(cluster, Followed(alice, bob))
    await cluster.worker().drain()
    recovery = Recovery(cluster.store, RETENTION, cluster.losses)
    await recovery.check()
    await cluster.store.send([("XDEL", keys.LOG, entry_id(number))])

    fail_over(cluster)
    await recovery.check()

    assert await cluster.losses.highest() == number


async def test_the_primaries_are_checked_again_after_an_outage(
    cluster: Graph, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.worker.recovery.CHECK_SECONDS", 0.01)
    await people(cluster, "alice")
    await cluster.worker().drain()
    fault = Fault(cluster.store, runs("note_primaries"), times=2)

    async with background(Recovery(cluster.store, RETENTION, cluster.losses).run()):
        await fault.done.wait()
        await reached(lambda: cluster.store.run("HLEN", keys.PRIMARIES), 1)


async def views(graph: Graph, *seen: str) -> list[bool]:
    """Let the recovery check primaries with these replication ids, one view after another."""
    assert isinstance(graph.store, ClusterOfTwo)
    recovery, outcomes = Recovery(graph.store, RETENTION, graph.losses), []
    for ids in seen:
        graph.store.ids = tuple(ids)
        outcomes.append(await recovery.check())
    return outcomes


async def minutes_later(raw: Redis, minutes: int) -> int:
    """Append an event some minutes after the last one, let a worker read it, and return its time in milliseconds."""
    at = int((await raw.xinfo_stream(keys.LOG))["last-generated-id"].split("-")[0]) + minutes * 60_000
    await raw.xadd(keys.LOG, {"kind": "unknown"}, id=f"{at}-0")
    await raw.xreadgroup(GROUP, "reader", {keys.LOG: ">"})
    return at


async def position(raw: Redis) -> int:
    [group] = await raw.xinfo_groups(keys.LOG)
    return int(group["last-delivered-id"].split("-")[0])


async def test_a_recovery_begins_before_the_lost_primary_was_last_seen(cluster: Graph, raw: Redis) -> None:
    """The time without a successor, and changes to other primaries in that time, make no difference."""
    await people(cluster, "alice")
    await cluster.worker().drain()
    await views(cluster, "abc")
    seen = await minutes_later(raw, 1)
    await views(cluster, "abc")
    for _ in range(20):
        await minutes_later(raw, 1)
        await views(cluster, "ac")

    assert await views(cluster, "aBc") == [True]

    assert await position(raw) == seen - LAG // timedelta(milliseconds=1)


async def test_a_primary_that_is_still_missing_is_recovered_later(cluster: Graph, raw: Redis) -> None:
    await people(cluster, "alice")
    await cluster.worker().drain()
    await views(cluster, "abc")
    seen = await minutes_later(raw, 1)
    await views(cluster, "abc")
    await minutes_later(raw, 20)
    assert await views(cluster, "a", "aB") == [False, True]
    await minutes_later(raw, 20)

    assert await views(cluster, "aBC", "aBC") == [True, False]

    assert await position(raw) == seen - LAG // timedelta(milliseconds=1)


async def test_workers_with_different_views_cause_one_recovery(cluster: Graph) -> None:
    """An additional primary, which replaces no other one, causes no recovery."""
    await people(cluster, "alice")
    await cluster.worker().drain()

    assert await views(cluster, "a", "ab", "aB", "ab", "aB") == [False, False, True, False, False]


async def test_primaries_are_forgotten_after_the_retention(cluster: Graph, raw: Redis) -> None:
    await people(cluster, "alice")
    await cluster.worker().drain()
    await views(cluster, "abc")
    await minutes_later(raw, 70)

    assert await views(cluster, "ab", "abC") == [False, False]

    assert set(await raw.hkeys(keys.PRIMARIES)) == {"a", "b", "C"}


async def test_long_fan_outs_are_repeated(cluster: Graph, raw: Redis) -> None:
    """Even the tasks of posts that the watermark has not passed are repeated, if they were done before the failover."""
    [alice] = await people(cluster, "alice")
    await cluster.worker().drain()
    recovery = Recovery(cluster.store, RETENTION, cluster.losses)
    await recovery.check()
    await raw.zadd(keys.ADDED_FANOUTS, {str(alice): alice})
    fail_over(cluster)

    assert await recovery.check()

    assert await raw.zcard(keys.ADDED_FANOUTS) == 0


async def test_unread_events_are_not_skipped(cluster: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recovery never moves the consumer group forward."""
    monkeypatch.setattr("graph.worker.recovery.LAG", timedelta(0))
    alice, bob = await people(cluster, "alice", "bob")
    await cluster.worker().drain()
    recovery = Recovery(cluster.store, RETENTION, cluster.losses)
    await recovery.check()
    await append(cluster, Followed(alice, bob))
    await cluster.store.run("HSET", keys.PRIMARIES, "id-2", 2**45)
    fail_over(cluster)

    assert not await recovery.check()

    await cluster.worker().drain()
    assert list(await cluster.follows.followed_by(alice)) == [bob]


async def test_a_single_server_is_not_watched(graph: Graph, raw: Redis) -> None:
    """A single server loses the log together with the projections."""
    await people(graph, "alice")

    assert not await Recovery(graph.store, RETENTION, graph.losses).check()

    assert await raw.exists(keys.PRIMARIES) == 0
