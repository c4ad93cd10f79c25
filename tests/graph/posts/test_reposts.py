"""Plain reposts in the graph: cost, requests that append events, and deleted and archived originals."""

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log.events import Event, PostDeleted, Reposted, Unreposted
from graph.model import MAX_NUMBER, Post, ReportReason
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import (
    Open,
    append_events,
    archive_log,
    befriend,
    cached,
    codes,
    counted,
    counts_of,
    crowd,
    home,
    outcomes_of,
    own,
    people,
    posts,
)


async def repost(graph: Graph, viewer: int, post: int) -> int:
    """Repost a post, and return the id of the plain repost."""
    return (await graph.reposts.repost(graph.visibility.of(viewer), viewer, post)).id


async def unrepost(graph: Graph, viewer: int, post: int) -> int | None:
    """Take a repost back. Return the id of the repost."""
    return await graph.reposts.unrepost(graph.visibility.of(viewer), viewer, post)


async def get(graph: Graph, post: int) -> Post | None:
    """Return a post."""
    return (await graph.posts.get_many(SYSTEM, [post]))[0]


async def reposts_of(graph: Graph, post: int) -> int:
    """Return the number of reposts of a post."""
    found = await get(graph, post)
    assert found is not None
    return found.reposts


async def events_after(graph: Graph, number: int) -> list[Event]:
    """Return the events of the log after a number."""
    return [event async for event in graph.log.replay(number, MAX_NUMBER)]


async def test_a_repost_is_an_entry_of_timelines_and_homes(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, alice)
    await cached(graph, alice, carol)
    [post] = await posts(graph, bob, "hi")

    entry = await repost(graph, alice, post)

    for viewer in (alice, carol):
        assert await home(graph, viewer) == [entry]
    assert await own(graph, alice) == [entry]
    assert [counts.posts for counts in await counts_of(graph, [alice, bob])] == [1, 1]
    assert await reposts_of(graph, post) == 1
    assert await graph.reposts.reposted_among(alice, [post, entry]) == [True, False]
    assert await graph.reposts.reposted_among(bob, [post]) == [False]
    found = await get(graph, entry)
    assert found is not None
    assert (found.author, found.text, found.repost_of, found.is_plain_repost) == (alice, "", post, True)


async def test_taking_a_repost_back_removes_it_everywhere(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, alice)
    [post] = await posts(graph, bob, "hi")
    entry = await repost(graph, alice, post)
    await cached(graph, carol)

    assert await unrepost(graph, alice, post) == entry

    assert await home(graph, carol) == await own(graph, alice) == []
    assert await reposts_of(graph, post) == 0
    assert (await counts_of(graph, [alice]))[0].posts == 0
    assert await graph.reposts.reposted_among(alice, [post]) == [False]
    assert await get(graph, entry) is None
    again = await repost(graph, alice, post)
    assert again > entry
    assert await home(graph, carol) == [again]


@pytest.mark.parametrize(
    "state", ["live", "unprojected", "archived", "undone", "archived, then undone", "undone, then archived"]
)
@pytest.mark.parametrize(
    "name",
    ["repost", "unrepost", "like", "unlike", "bookmark", "unbookmark", "reply", "quote", "report", "delete", "remove"],
)
async def test_a_repost_is_not_a_post(graph: Graph, name: str, state: str) -> None:
    """Nobody can repost, like, bookmark, reply to, quote, report or delete it, and no operator can remove it."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    if state == "unprojected":
        [event] = await append_events(graph, [Reposted(alice, post, bob)])
        entry = event.number
    else:
        entry = await repost(graph, alice, post)
    for step in state.split(", then "):
        if step == "archived":
            await graph.worker().drain()
            await archive_log(graph)
        if step == "undone":
            await unrepost(graph, alice, post)
    view = graph.visibility.of(alice)
    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "repost": lambda: repost(graph, alice, entry),
        "unrepost": lambda: unrepost(graph, alice, entry),
        "like": lambda: graph.likes.like(alice, entry),
        "unlike": lambda: graph.likes.unlike(alice, entry),
        "bookmark": lambda: graph.bookmarks.add(view, alice, entry),
        "unbookmark": lambda: graph.bookmarks.remove(view, alice, entry),
        "reply": lambda: graph.posts.publish(alice, "a reply", reply_to=entry),
        "quote": lambda: graph.posts.publish(alice, "a quote", quote_of=entry),
        "report": lambda: graph.moderation.report_post(view, alice, entry, ReportReason.SPAM),
        "delete": lambda: graph.posts.delete(alice, entry),
        "remove": lambda: graph.moderation.remove(entry),
    }
    last = await graph.log.last()

    with pytest.raises(Rejected) as refused:
        await changes[name]()

    assert codes(refused.value) == [ProblemCode.NOT_FOUND]
    assert await graph.log.last() == last


async def test_repeated_requests_append_nothing(graph: Graph) -> None:
    """They return the same result. A post without a repost by the viewer is not found."""
    alice, bob = await people(graph, "alice", "bob")
    [post], [deleted] = await posts(graph, bob, "hi"), await posts(graph, alice, "deleted")
    await graph.posts.delete(alice, deleted)
    entry = await repost(graph, alice, post)
    await graph.worker().drain()
    last = await graph.log.last()
    assert await repost(graph, alice, post) == entry
    assert await graph.log.last() == last

    await unrepost(graph, alice, post)
    last = await graph.log.last()
    assert await unrepost(graph, alice, post) == entry
    await graph.posts.delete(bob, post)
    last = await graph.log.last()
    assert await unrepost(graph, alice, post) == entry
    with pytest.raises(Rejected) as refused:
        await unrepost(graph, alice, deleted)
    assert codes(refused.value) == [ProblemCode.NOT_FOUND]
    assert await graph.log.last() == last


async def test_what_was_never_reposted_is_not_taken_back(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    last = await graph.log.last()
    assert await unrepost(graph, alice, post) is None
    assert await graph.log.last() == last


async def test_two_tabs_get_one_repost(graph: Graph, another: Open) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    other = await another()
    last = await graph.log.last()

    found = await outcomes_of(*(repost(each, alice, post) for each in (graph, other, graph, other)))

    assert len(set(found)) == 1
    assert len(await events_after(graph, last)) == 1
    last = await graph.log.last()
    await outcomes_of(*(unrepost(each, alice, post) for each in (graph, other)))
    assert len(await events_after(graph, last)) == 1


async def test_users_may_repost_their_own_posts(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "hi")
    entry = await repost(graph, alice, post)
    assert await own(graph, alice) == [entry, post]


async def test_unknown_and_deleted_posts_are_not_found(graph: Graph) -> None:
    """Nothing is written."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await repost(graph, alice, post)
    await unrepost(graph, alice, post)
    await graph.posts.delete(bob, post)
    last = await graph.log.last()
    cases = [(change, unknown) for unknown in (alice, 1) for change in (repost, unrepost)]
    for change, unknown in [*cases, (repost, post)]:
        with pytest.raises(Rejected) as refused:
            await change(graph, alice, unknown)
        assert [(each.code, each.field) for each in refused.value.problems] == [(ProblemCode.NOT_FOUND, ("postId",))]
    assert await graph.log.last() == last


async def test_an_unprojected_event_counts_more_than_the_store(graph: Graph) -> None:
    """The event counts even if its idempotency key was used before."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    view = graph.visibility.of(alice)
    key = graph.reposts.key_of(alice, post, 0)
    [late] = await append_events(graph, [Reposted(alice, post, bob)], key)

    assert (await graph.reposts.repost(view, alice, post)).id == late.number
    assert await unrepost(graph, alice, post) == late.number
    await append_events(graph, [Reposted(alice, post, bob), Unreposted(alice, post, MAX_NUMBER)])
    again = await repost(graph, alice, post)
    assert again > late.number

    await graph.worker().drain()
    assert await own(graph, alice) == [again]
    assert await reposts_of(graph, post) == 1


async def test_a_repost_disappears_with_its_original(graph: Graph, raw: Redis) -> None:
    """Readers stop seeing it at once, and a worker ends it permanently."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, alice)
    [post] = await posts(graph, bob, "hi")
    entry = await repost(graph, alice, post)
    await cached(graph, carol)

    await graph.posts.delete(bob, post)

    assert await home(graph, carol) == await own(graph, alice) == []
    assert await get(graph, entry) is None
    last = await graph.log.last()
    await graph.worker().drain()
    [event] = await events_after(graph, last)
    assert event.body == Unreposted(alice, post, entry, bob)
    assert (await counts_of(graph, [alice]))[0].posts == 0
    assert await raw.zscore(keys.reposted(alice), str(post)) is None


async def test_a_repost_that_is_projected_after_the_deletion_is_void(graph: Graph, raw: Redis) -> None:
    """A worker adds its end to the log."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    [late] = await append_events(graph, [Reposted(alice, post, bob)])
    await graph.posts.delete(bob, post)

    await graph.projections.project([late], Mode.REQUEST)

    assert await raw.exists(keys.reposted(alice), keys.posts(alice)) == 0
    last = await graph.log.last()
    await graph.worker().drain()
    assert [event.body for event in await events_after(graph, last)] == [Unreposted(alice, post, late.number, bob)]
    assert await own(graph, alice) == []
    assert await raw.zcard(keys.posts(alice)) <= 1


@pytest.mark.parametrize("number", [1, 300])
async def test_the_deletion_of_an_original_takes_few_round_trips(graph: Graph, number: int) -> None:
    """The number of round trips does not grow with the number of reposts, up to 500."""
    [bob] = await people(graph, "bob")
    [post] = await posts(graph, bob, "hi")
    fans = await crowd(graph, number)
    await graph.commit([Reposted(fan, post, bob) for fan in fans])
    await graph.worker().drain()
    [deletion] = await graph.commit([PostDeleted(bob, post)])

    async with counted(graph) as cost:
        await graph.projections.project([deletion], Mode.WORKER)

    assert cost.round_trips == 5
    await graph.worker().drain()
    assert {counts.posts for counts in await counts_of(graph, fans)} == {0}


async def test_a_repost_takes_five_round_trips(graph: Graph) -> None:
    """The steps are: post and register; append; list and record; register and timeline; home caches."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    async with counted(graph) as cost:
        await repost(graph, alice, post)
    assert cost.round_trips == 5
    async with counted(graph) as cost:
        await unrepost(graph, alice, post)
    assert cost.round_trips == 4


async def test_quotes_do_not_end_with_their_original(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    quote = await graph.posts.publish(alice, "look", quote_of=post)
    await repost(graph, alice, post)
    await graph.posts.delete(bob, post)
    await graph.worker().drain()
    assert await own(graph, alice) == [quote.id]


async def test_a_used_key_does_not_prove_that_the_repost_stands(graph: Graph) -> None:
    """Another tab reposted the post with the same key and took the repost back. Neither event is projected."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    [first] = await append_events(graph, [Reposted(alice, post, bob)], graph.reposts.key_of(alice, post, 0))
    await append_events(graph, [Unreposted(alice, post, first.number)])

    entry = await repost(graph, alice, post)

    assert entry > first.number
    await graph.worker().drain()
    assert await own(graph, alice) == [entry]


async def test_a_repost_that_another_request_has_committed_and_nobody_projected_counts(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tabs find the same version, and a shard fails before the projection: there is one event."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    last = await graph.log.last()

    async def fail(*_: object) -> None:
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(graph.projections, "project", fail)
    entries = [await repost(graph, alice, post) for _ in range(2)]

    assert entries[0] == entries[1]
    assert [event.number for event in await events_after(graph, last)] == entries[:1]


async def test_over_the_limit_of_reposts_nothing_is_written(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repetition is accepted, and taking a repost back makes room."""
    monkeypatch.setattr("graph.posts.reposts.MAX_REPOSTS", 1)
    alice, bob = await people(graph, "alice", "bob")
    first, second = await posts(graph, bob, "1", "2")
    only = await repost(graph, alice, first)
    last = await graph.log.last()

    with pytest.raises(Rejected) as refusal:
        await repost(graph, alice, second)
    [problem] = refusal.value.problems
    assert (problem.code, problem.field) == (ProblemCode.TOO_MANY, ("postId",))
    assert await repost(graph, alice, first) == only
    assert await graph.log.last() == last
    await unrepost(graph, alice, first)
    await repost(graph, alice, second)
