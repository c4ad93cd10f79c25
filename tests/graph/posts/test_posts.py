"""Posts: publishing, deletion and look-ups."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.log.events import PostDeleted
from graph.model import Location
from graph.text.terms import digest_of
from graph.visibility.views import SYSTEM
from tests.conftest import CHEAP
from tests.support.graph_worlds import (
    Counts,
    Open,
    archive_log,
    codes,
    counted,
    counts_of,
    home,
    many_posts,
    newest,
    people,
    posts,
    state,
)
from tests.support.graphs import open_graph
from tests.support.stores import Stop, runs


async def refused(graph: Graph, viewer: int, post: int) -> list[ProblemCode]:
    with pytest.raises(Rejected) as rejected:
        await graph.posts.delete(viewer, post)
    assert rejected.value.problems[0].field == ("postId",)
    return codes(rejected.value)


async def test_a_published_post_is_found(graph: Graph) -> None:
    """The post has its normalised text, platform and location."""
    [alice] = await people(graph, "alice")

    post = await graph.posts.publish(alice, " cafe\u0301 你好 ", platform="web", location=Location(-0.5, 1e-7))

    assert (post.author, post.text, post.platform, post.location) == (alice, "café 你好", "web", Location(-0.5, 1e-7))
    assert await graph.posts.get_many(SYSTEM, [post.id]) == [post]


async def test_posts_are_looked_up_in_order(graph: Graph) -> None:
    """Unknown posts are None. It takes 1 round trip, and 1 more for unknown posts, to check the archive's binding."""
    [alice] = await people(graph, "alice")
    one, two = await posts(graph, alice, "one", "two")

    async with counted(graph) as cost:
        found = await graph.posts.get_many(SYSTEM, [two, one, two])

    assert [post and post.text for post in found] == ["two", "one", "two"]
    assert cost.round_trips == 1
    async with counted(graph) as cost:
        found = await graph.posts.get_many(SYSTEM, [7, one])

    assert [post and post.text for post in found] == [None, "one"]
    assert cost.round_trips == 2


async def test_an_invalid_post_writes_nothing(graph: Graph) -> None:
    """All problems are reported at once."""
    [alice] = await people(graph, "alice")
    last = await graph.log.last()

    with pytest.raises(Rejected) as rejected:
        await graph.posts.publish(alice, " ", platform="", location=Location(91, 0), idempotency_key="")

    assert [problem.field for problem in rejected.value.problems] == [
        ("text",),
        ("platform",),
        ("location", "latitude"),
        ("idempotencyKey",),
    ]
    assert await graph.log.last() == last


async def test_a_key_publishes_once(graph: Graph, another: Open) -> None:
    """Concurrent requests of two processes with one key publish one post."""
    [alice] = await people(graph, "alice")
    instances = [graph, await another()]

    found = await asyncio.gather(
        *(instances[n % 2].posts.publish(alice, "once", idempotency_key="k") for n in range(20))
    )

    assert len(set(found)) == 1
    assert await home(graph, alice) == [found[0].id]
    assert await counts_of(graph, [alice]) == [Counts(0, 0, 1)]


async def test_without_a_key_equal_posts_are_two(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    assert len(set(await posts(graph, alice, "again", "again"))) == 2


async def test_a_key_used_for_another_post_is_refused(graph: Graph) -> None:
    """Nothing is written."""
    [alice] = await people(graph, "alice")
    first = await graph.posts.publish(alice, "one", idempotency_key="k")

    for text, platform in (("two", None), ("one", "web")):
        with pytest.raises(Rejected) as rejected:
            await graph.posts.publish(alice, text, platform=platform, idempotency_key="k")
        assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]

    assert await home(graph, alice) == [first.id]


async def test_keys_of_two_users_are_independent(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")

    assert (await graph.posts.publish(alice, "hi", idempotency_key="k")).author == alice
    assert (await graph.posts.publish(bob, "hi", idempotency_key="k")).author == bob


async def test_a_retry_after_a_crash_completes_the_post(graph: Graph, another: Open) -> None:
    """No worker is needed if the crash came after the commit."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.follows.follow(bob, [alice])
    dying = await another()
    stop = Stop(dying.store, runs("write_post"))
    request = asyncio.create_task(dying.posts.publish(alice, "hi", idempotency_key="k"))
    await stop.reached.wait()
    assert await home(graph, bob) == []
    request.cancel()

    post = await graph.posts.publish(alice, "hi", idempotency_key="k")

    assert await home(graph, bob) == [post.id]
    await graph.worker().drain()
    assert await home(graph, bob) == [post.id]


async def test_a_key_of_a_deleted_post_is_not_found(graph: Graph) -> None:
    """A retry does not restore the post."""
    [alice] = await people(graph, "alice")
    post = await graph.posts.publish(alice, "hi", idempotency_key="k")
    await graph.posts.delete(alice, post.id)

    with pytest.raises(Rejected) as rejected:
        await graph.posts.publish(alice, "hi", idempotency_key="k")

    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert await graph.posts.get_many(SYSTEM, [post.id]) == [None]
    assert await home(graph, alice) == []


async def test_a_deleted_post_is_gone_at_once(graph: Graph, another: Open) -> None:
    """The post is gone from look-ups, timelines, home timelines and counts of every process."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.follows.follow(bob, [alice])
    other = await another()
    kept, gone = await posts(graph, alice, "kept", "gone")
    assert await home(other, bob) == [gone, kept]

    await graph.posts.delete(alice, gone)

    assert await other.posts.get_many(SYSTEM, [gone]) == [None]
    assert await home(other, bob) == [kept]
    assert [p.id for p in (await other.timelines.user(SYSTEM, [alice], newest(10)))[0].items] == [kept]
    assert await counts_of(other, [alice]) == [Counts(1, 0, 1)]
    assert await other.posts.are_deleted([kept, gone, 7]) == [False, True, False]


async def test_deleting_again_succeeds(graph: Graph, another: Open) -> None:
    """The request succeeds while the log holds the deletion."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "gone")
    other = await another()

    await asyncio.gather(*(instance.posts.delete(alice, post) for instance in (graph, other) * 5))
    await graph.worker().drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    await graph.posts.delete(alice, post)

    assert await counts_of(graph, [alice]) == [Counts(0, 0, 0)]


@pytest.mark.parametrize("gone", ["event", "event and tombstone"])
async def test_deleting_again_succeeds_after_the_retention(another: Open, raw: Redis, gone: str) -> None:
    """The request succeeds only for the author, and appends no second event."""
    graph = await another(log_retention=timedelta(0))
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "gone")
    await graph.posts.delete(alice, post)
    worker = graph.worker()
    await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    if gone == "event and tombstone":
        await raw.delete(keys.post(post))
    last = await graph.log.last()

    await graph.posts.delete(alice, post)

    assert await refused(graph, bob, post) == [ProblemCode.NOT_FOUND]
    assert await graph.log.last() == last


async def test_deleting_again_appends_nothing_while_the_deletion_is_not_projected(graph: Graph, raw: Redis) -> None:
    """This holds for as long as a client may retry and the workers may be down."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "gone")
    record = await raw.dump(keys.post(post))
    assert record is not None
    await graph.posts.delete(alice, post)
    await raw.restore(keys.post(post), 0, record, replace=True)  # as if the projection had failed
    last = await graph.log.last()
    assert await raw.ttl(keys.idempotency("-", f"deletion:{post}")) > 12 * 3600

    await graph.posts.delete(alice, post)

    assert await graph.log.last() == last
    assert await graph.posts.get_many(SYSTEM, [post]) == [None]


async def test_deleting_again_succeeds_if_a_failover_has_lost_the_deletion(graph: Graph, raw: Redis) -> None:
    """The store holds the tombstone, and the archive the post."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "gone")
    await graph.worker().drain()
    await archive_log(graph)
    log = await raw.dump(keys.LOG)
    assert log is not None
    await graph.posts.delete(alice, post)
    await raw.restore(keys.LOG, 0, log, replace=True)

    await graph.posts.delete(alice, post)

    assert await refused(graph, bob, post) == [ProblemCode.NOT_FOUND]


async def test_only_the_author_can_delete_a_post(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "mine")

    assert await refused(graph, bob, post) == [ProblemCode.NOT_ALLOWED]
    assert await refused(graph, bob, 7) == [ProblemCode.NOT_FOUND]
    assert await refused(graph, bob, alice) == [ProblemCode.NOT_FOUND]
    assert await home(graph, alice) == [post]
    await graph.posts.delete(alice, post)
    assert await refused(graph, bob, post) == [ProblemCode.NOT_FOUND]


async def test_a_deletion_during_the_publication_holds(graph: Graph, another: Open) -> None:
    """The remaining steps of the publication do not restore the post."""
    [alice] = await people(graph, "alice")
    slow = await another()
    for step in ("list_post", "insert"):
        stop = Stop(slow.store, runs(step))
        request = asyncio.create_task(slow.posts.publish(alice, f"doomed at {step}"))
        await stop.reached.wait()
        post = await graph.log.last()
        await graph.posts.delete(alice, post)

        stop.resume()
        await request

        assert await home(graph, alice) == []
        assert await counts_of(graph, [alice]) == [Counts(0, 0, 0)]
        await graph.worker().drain()
        assert await graph.posts.get_many(SYSTEM, [post]) == [None]
        assert await home(graph, alice) == []


async def test_the_text_of_a_deleted_post_is_erased(graph: Graph, raw: Redis) -> None:
    """After a drain and tidying, neither the store nor the log holds the text. A tombstone remains."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.follows.follow(bob, [alice])
    secret, kept = [
        (await graph.posts.publish(alice, text, idempotency_key=text)).id for text in ("regret", "no matter")
    ]
    await graph.posts.delete(alice, secret)
    worker = graph.worker()

    await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()

    entries = repr(await raw.xrange("{log}")) + repr(await state(raw, but=("{log}:idempotency", "{log}")))
    assert "regret" not in entries
    assert "no matter" in entries
    assert (await raw.hkeys(f"post:{{{secret}}}")) == ["deleted"]
    assert await home(graph, bob) == [kept]
    await archive_log(graph)
    await graph.housekeeping.tidy()
    assert await worker.drain() == await graph.log.last()


async def test_a_deletion_contains_the_digest_of_the_text(graph: Graph) -> None:
    """It does not contain the location."""
    [alice] = await people(graph, "alice")
    here = await graph.posts.publish(alice, "Rain in 北京", location=Location(39.9, 1e-7))
    nowhere = await graph.posts.publish(alice, "😀")

    for post in (here, nowhere):
        await graph.posts.delete(alice, post.id)

    assert [event.body async for event in graph.log.replay(nowhere.id, await graph.log.last())] == [
        PostDeleted(alice, here.id, digest_of("Rain in 北京")),
        PostDeleted(alice, nowhere.id, ""),
    ]


async def test_the_deletion_of_an_archived_post_contains_it_too(store_url: str, raw: Redis) -> None:
    graph = await open_graph(store_url, replace(CHEAP, hot_posts=1, hot_slack=1))
    try:
        [alice] = await people(graph, "alice")
        old = await graph.posts.publish(alice, "Rain in 北京", location=Location(39.9, 1e-7))
        await many_posts(graph, alice, 5)
        await graph.worker().drain()
        await graph.archiver.work()
        assert not await raw.exists(keys.post(old.id))

        await graph.posts.delete(alice, old.id)

        event = await graph.log.get(await graph.log.last())
        assert event is not None
        assert event.body == PostDeleted(alice, old.id, digest_of("Rain in 北京"))
    finally:
        await graph.close()


async def test_the_text_stays_in_the_log_until_the_deletion_is_projected(graph: Graph, raw: Redis) -> None:
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "regret")
    worker = graph.worker()
    await worker.drain()
    await graph.posts.delete(alice, post)

    await archive_log(graph)
    await graph.housekeeping.tidy()

    assert await graph.log.get(post) is not None
    await worker.drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    assert await graph.log.get(post) is None
