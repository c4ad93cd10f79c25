"""A shard does not answer during the commit of a mutation: the mutation succeeds, and the worker completes it."""

import asyncio

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log.events import Followed
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import PASSWORD, PATIENCE, Open, befriend, cached, codes, home, own, people
from tests.support.stores import Fault, LostShard, of_users, runs


async def test_a_post_is_published_while_a_followers_shard_is_lost(graph: Graph, another: Open, raw: Redis) -> None:
    """Followers on other shards get the post at once; those on the lost shard get it once the worker reaches it."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await befriend(graph, carol, bob)
    await cached(graph, alice, carol)
    partial = await another()
    LostShard(partial.store, of_users(alice))

    post = await partial.posts.publish(bob, "hi")

    assert partial.commit.left_to_worker == 1
    assert await own(graph, bob) == await home(graph, carol) == [post.id]
    assert await raw.zscore(f"home:{{{alice}}}", str(post.id)) is None
    await graph.worker().drain()
    assert await home(graph, alice) == [post.id]


async def test_an_outage_is_logged_once_a_second(graph: Graph, another: Open, caplog: pytest.LogCaptureFixture) -> None:
    """The log reports an outage once a second, however many changes it affects. All failures are counted."""
    alice, bob = await people(graph, "alice", "bob")
    partial = await another()
    LostShard(partial.store, of_users(alice))

    for _ in range(3):
        await partial.commit([Followed(bob, alice)])

    assert partial.commit.left_to_worker == 3
    assert [record.name for record in caplog.records].count("fanline.commit") == 1


async def test_a_shard_that_hangs_delays_a_mutation_by_a_second(graph: Graph, another: Open) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    partial = await another()
    shard = LostShard(partial.store, of_users(alice), seconds=60)

    post = await asyncio.wait_for(partial.posts.publish(bob, "hi"), PATIENCE)

    shard.heal()
    assert await own(graph, bob) == [post.id]


@pytest.mark.parametrize("key", [None, "key"])
async def test_a_post_whose_record_cannot_be_written_is_published_once(
    graph: Graph, another: Open, key: str | None
) -> None:
    """A retry with the same idempotency key returns it, before and after the worker has projected it."""
    [bob] = await people(graph, "bob")
    partial = await another()
    LostShard(partial.store, lambda name: name.startswith("post:"))

    post = await partial.posts.publish(bob, "hi", idempotency_key=key)

    if key is not None:
        assert await graph.posts.publish(bob, "hi", idempotency_key=key) == post
    await graph.worker().drain()
    assert await own(graph, bob) == [post.id]


async def test_a_post_whose_record_cannot_be_written_can_be_deleted(graph: Graph, another: Open) -> None:
    """The author can delete the post, because the client was told that it is published. Other users cannot."""
    alice, bob = await people(graph, "alice", "bob")
    partial = await another()
    LostShard(partial.store, lambda name: name.startswith("post:"))
    post = await partial.posts.publish(bob, "hi")

    with pytest.raises(Rejected) as rejected:
        await graph.posts.delete(alice, post.id)
    assert codes(rejected.value) == [ProblemCode.NOT_ALLOWED]
    for _ in range(2):
        await graph.posts.delete(bob, post.id)

    await graph.worker().drain()
    assert await own(graph, bob) == []
    assert await graph.posts.get_many(SYSTEM, [post.id]) == [None]


async def test_a_profile_that_cannot_be_written_is_returned_as_changed(graph: Graph, another: Open) -> None:
    [alice] = await people(graph, "alice")
    partial = await another()
    Fault(partial.store, runs("set_profile"))

    changed = await partial.users.update_profile(alice, name="Alicia")

    assert (changed.name, changed.login) == ("Alicia", "alice")
    await graph.worker().drain()
    assert await graph.users.get_many([alice]) == [changed]


async def test_a_user_whose_profile_cannot_be_written_logs_in_later(graph: Graph, another: Open) -> None:
    """The credentials are valid, so the log-in does not report them as wrong."""
    partial = await another()
    Fault(partial.store, runs("set_profile"))
    user = await partial.users.sign_up("alice", PASSWORD)

    with pytest.raises(StoreUnavailable):
        await graph.users.check_password("alice", PASSWORD)

    await graph.worker().drain()
    assert await graph.users.check_password("alice", PASSWORD) == user


async def test_a_follow_holds_although_it_cannot_be_projected(graph: Graph, another: Open) -> None:
    alice, bob = await people(graph, "alice", "bob")
    partial = await another()
    LostShard(partial.store, of_users(bob))

    [event] = await partial.commit([Followed(alice, bob)])

    assert list(await graph.follows.followed_by(alice)) == []
    await graph.worker().drain()
    assert await graph.follows.followed_by(alice) == {bob: event.number}


async def test_a_log_out_fails_while_the_sessions_shard_is_lost(graph: Graph, another: Open) -> None:
    """A client must not believe that a token has stopped working while it still works."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    partial = await another()
    LostShard(partial.store, of_users(alice))

    with pytest.raises(StoreUnavailable):
        await partial.sessions.end(alice, session.id)

    await graph.worker().drain()
    assert not await graph.sessions.is_live(alice, session.id)
