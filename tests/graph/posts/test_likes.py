"""Likes in the graph: their cost, the requests that append events, and unprojected and deleted posts."""

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, Liked, ProfileChanged, Unliked
from graph.model import MAX_NUMBER, Like
from graph.paging import Window
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, codes, counted, outcomes_of, people, posts

ALL = Window(100, forward=True)


async def likers(graph: Graph, post: int) -> list[int]:
    """Return the users who like a post, newest like first, and check the count."""
    [page] = await graph.likes.pages.of_posts(SYSTEM, [post], ALL)
    [found] = await graph.posts.get_many(SYSTEM, [post])
    assert found is not None
    assert found.likes == len(page.items)
    return [like.user for like in page.items]


async def events_after(graph: Graph, number: int) -> list[Event]:
    """Return the events of the log after a number."""
    return [event async for event in graph.log.replay(number, MAX_NUMBER)]


async def test_a_like_takes_three_round_trips_without_the_payload(graph: Graph) -> None:
    """The round trips read the post and the viewer's like, append the event, and write both sets."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    for change in (graph.likes.like, graph.likes.unlike):
        async with counted(graph) as cost:
            assert await change(alice, post) == post
        assert cost.round_trips == 3


async def test_a_repeated_like_takes_two_round_trips(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.likes.like(alice, post)
    last = await graph.log.last()
    async with counted(graph) as cost:
        await graph.likes.like(alice, post)
    assert cost.round_trips == 2
    assert await graph.log.last() == last


async def test_an_unprojected_event_counts_more_than_the_store(graph: Graph) -> None:
    """Otherwise a like that is projected late would undo the unlike after it."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    [late] = await append_events(graph, [Liked(alice, post, bob)])

    await graph.likes.unlike(alice, post)
    await graph.projections.project([late], Mode.WORKER)
    assert await likers(graph, post) == []

    [late] = await append_events(graph, [Liked(alice, post, bob)])
    await graph.likes.like(alice, post)  # not projected: in the store, the post is not liked
    await graph.projections.project([late], Mode.WORKER)
    assert await likers(graph, post) == [alice]
    [page] = await graph.likes.pages.of_posts(SYSTEM, [post], ALL)
    assert page.items == (Like(alice, (await events_after(graph, late.number))[0].number),)


async def test_with_too_many_unprojected_events_every_request_is_appended(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.log.log.READ_CHUNK", 1)
    monkeypatch.setattr("graph.log.log.MOST_UNPROJECTED", 2)
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    await append_events(graph, [ProfileChanged(alice, "a")] * 3)
    last = await graph.log.last()

    await graph.likes.unlike(alice, post)
    assert [event.body for event in await events_after(graph, last)] == [Unliked(alice, post, bob)]


async def test_concurrent_likes_and_unlikes_end_in_the_last_event(graph: Graph, another: Open) -> None:
    """Two tabs of one user act in two processes."""
    other = await another()
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    for _ in range(5):
        await outcomes_of(*(g.likes.like(alice, post) for g in (graph, other)), graph.likes.unlike(alice, post))
        last = (await events_after(graph, post))[-1]
        assert await likers(graph, post) == ([alice] if isinstance(last.body, Liked) else [])
        await graph.likes.unlike(alice, post)


async def test_a_like_of_a_deleted_post_is_refused_and_a_late_one_changes_nothing(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.likes.like(bob, post)
    [late] = await append_events(graph, [Liked(alice, post, bob)])
    await graph.posts.delete(bob, post)
    await graph.projections.project([late], Mode.WORKER)

    for change in (graph.likes.like, graph.likes.unlike):
        with pytest.raises(Rejected) as refusal:
            await change(alice, post)
        assert codes(refusal.value) == [ProblemCode.NOT_FOUND]
    assert not [key async for key in raw.scan_iter("likes:*")]
    assert set(await raw.hgetall(f"post:{{{post}}}")) == {"deleted"}
    assert (await graph.likes.pages.of_user(SYSTEM, alice, ALL)).items == ()


async def test_liked_posts_read_on_where_posts_were_deleted(graph: Graph) -> None:
    """A page is full although the newest likes are of deleted posts."""
    alice, bob = await people(graph, "alice", "bob")
    ids = await posts(graph, bob, *map(str, range(12)))
    for post in ids:
        await graph.likes.like(alice, post)
    for post in ids[2:]:
        await graph.posts.delete(bob, post)

    page = await graph.likes.pages.of_user(SYSTEM, alice, Window(1, forward=True))
    assert ([liked.post.id for liked in page.items], page.has_next) == ([ids[1]], True)
    page = await graph.likes.pages.of_user(SYSTEM, alice, Window(5, forward=False))
    assert ([liked.post.id for liked in page.items], page.has_previous) == ([ids[1], ids[0]], False)
