"""The projection of plain reposts: late and repeated events, crashes between steps, archived reposts, a full log."""

from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, PostDeleted, Reposted, Unreposted
from graph.projections.mode import Mode
from graph.projections.reposts import register_keys
from graph.store.commands import script
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, archive_log, counts_of, own, people, posts


async def shown(graph: Graph, *ids: int) -> list[bool]:
    """Return whether each post is found by its id."""
    return [post is not None for post in await graph.posts.get_many(SYSTEM, ids)]


async def end_of(graph: Graph, repost: Event) -> Event:
    """Append the end of a repost."""
    assert isinstance(repost.body, Reposted)
    return (await append_events(graph, [Unreposted(repost.body.user, repost.body.post, repost.number)]))[0]


async def settled(graph: Graph) -> None:
    """Project and archive everything."""
    await graph.worker().drain()
    await archive_log(graph)


async def test_the_last_event_decides_in_any_order(graph: Graph, raw: Redis) -> None:
    """The last event decides even if the tombstones were trimmed."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    [repost] = await append_events(graph, [Reposted(alice, post, bob)])
    end = await end_of(graph, repost)
    for events in ([repost, end], [end, repost], [repost, end, repost, end, repost]):
        for event in events:
            await graph.projections.project([event], Mode.WORKER)
        assert await own(graph, alice) == []
        assert await shown(graph, repost.number) == [False]
    for name in (keys.reposted(alice), keys.posts(alice), keys.reposts(post)):
        await raw.delete(keys.gone(name))
        await raw.zadd(keys.gone(name), {"f": end.number})
    await raw.delete(keys.post(repost.number))

    await graph.projections.project([repost], Mode.WORKER)

    assert await own(graph, alice) == []
    assert await shown(graph, repost.number) == [False]
    assert await raw.zscore(keys.reposts(post), str(repost.number)) is None


async def test_a_late_end_does_not_end_the_next_repost(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    [first] = await append_events(graph, [Reposted(alice, post, bob)])
    end = await end_of(graph, first)
    [second] = await append_events(graph, [Reposted(alice, post, bob)])
    for event in (first, second, end):
        await graph.projections.project([event], Mode.WORKER)
    assert await own(graph, alice) == [second.number]
    assert await shown(graph, first.number, second.number) == [False, True]


async def test_the_later_of_two_reposts_replaces_the_other(graph: Graph, raw: Redis) -> None:
    """A pair can have two events after its key has expired. The count of posts does not drift."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    first, second = await append_events(graph, [Reposted(alice, post, bob), Reposted(alice, post, bob)])
    for events in ([first, second], [second, first]):
        for event in events:
            await graph.projections.project([event], Mode.WORKER)
        assert await own(graph, alice) == [second.number]
        assert await shown(graph, first.number, second.number) == [False, True]
        assert await raw.zrange(keys.reposts(post), 0, -1) == [str(second.number)]
        assert (await counts_of(graph, [alice]))[0].posts == 1
        await raw.delete(*await raw.keys(f"*{{{alice}}}*"), keys.reposts(post), keys.gone(keys.reposts(post)))
        await raw.delete(keys.post(first.number), keys.post(second.number))


async def test_a_replacement_is_finished_after_a_crash(graph: Graph, raw: Redis) -> None:
    """The process died after it had written the register."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    first, second = await append_events(graph, [Reposted(alice, post, bob), Reposted(alice, post, bob)])
    await graph.projections.project([first], Mode.WORKER)
    await graph.store.send([script("set_repost").call(register_keys(alice), post, second.number)])
    assert await shown(graph, first.number) == [True]

    await graph.projections.project([second], Mode.WORKER)

    assert await shown(graph, first.number) == [False]
    assert await raw.zrange(keys.reposts(post), 0, -1) == [str(second.number)]


async def test_an_archived_repost_can_be_taken_back(another: Open) -> None:
    """The archived repost can also be replaced. The number of posts is exact."""
    graph = await another(hot_posts=1, hot_slack=0, hot_newest=1)
    alice, bob = await people(graph, "alice", "bob")
    one, two = await posts(graph, bob, "one", "two")
    first, second = await append_events(graph, [Reposted(alice, one, bob), Reposted(alice, two, bob)])
    await settled(graph)
    await posts(graph, alice, "three")
    await settled(graph)
    assert (await counts_of(graph, [alice]))[0].posts == 3
    assert len(await own(graph, alice)) == 3

    await end_of(graph, first)
    await append_events(graph, [Reposted(alice, two, bob)])
    await settled(graph)

    assert (await counts_of(graph, [alice]))[0].posts == len(await own(graph, alice)) == 2
    assert await shown(graph, first.number, second.number) == [False, False]


async def test_reposts_that_only_the_archive_lists_end_with_their_original(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    [repost] = await append_events(graph, [Reposted(alice, post, bob)])
    await settled(graph)
    await raw.zrem(keys.reposts(post), str(repost.number))
    await raw.zadd(keys.reposts(post), {"f": repost.number})
    await raw.set(f"{keys.reposts(post)}:cold", 1)

    await graph.posts.delete(bob, post)
    await settled(graph)

    assert await graph.reposts.reposted_among(alice, [post]) == [False]
    assert (await counts_of(graph, [alice]))[0].posts == 0


async def test_a_late_repost_of_a_post_whose_tombstone_was_dropped_ends(graph: Graph, raw: Redis) -> None:
    """The request looked up the post before the post was deleted."""
    alice, bob = await people(graph, "alice", "bob")
    post, other = await posts(graph, bob, "hi", "there")
    await graph.posts.delete(bob, post)
    await settled(graph)
    await raw.delete(keys.post(post), keys.post(other))
    void, valid = await append_events(graph, [Reposted(alice, post, bob), Reposted(alice, other, bob)])

    await settled(graph)

    assert await graph.reposts.reposted_among(alice, [post, other]) == [False, True]
    assert await own(graph, alice) == [valid.number]
    assert await raw.zscore(keys.reposts(post), str(void.number)) is None


async def test_reposts_end_although_the_log_is_full(graph: Graph) -> None:
    """Otherwise the watermark could not pass the deletion, and the log could not be trimmed."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await append_events(graph, [Reposted(alice, post, bob)])
    await graph.worker().drain()
    [deletion] = await append_events(graph, [PostDeleted(bob, post)])
    graph.log.limit = 1

    assert await graph.worker().drain() > deletion.number

    assert await graph.reposts.reposted_among(alice, [post]) == [False]
