"""Tests of subscriptions to home timelines through the schema."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from graph.model import User
from graph.paging import CursorKind, encode_cursor
from resolvers.errors import code_of
from schema import schema
from tests.resolvers.conftest import World, post_id, repost_id, user_id
from tests.support.graph_worlds import PATIENCE

LIVE = """subscription ($after: String) { homeTimeline(after: $after) { __typename cursor at
    ... on PostAdded { post { id text author { login postsCount relationship { state } } }
        timelineEdge { cursor node { __typename id } } }
    ... on PostRemoved { postId authorId }
    ... on RepostAdded { repost { id author { login } post { id text author { login } } }
        timelineEdge { cursor node { __typename id } } }
    ... on RepostRemoved { repostId authorId }
    ... on AuthorAdded { user { login followersCount } }
    ... on AuthorRemoved { user { login followersCount } }
    ... on Gap { reason } } }"""


class Live:
    def __init__(self, results: Any) -> None:
        self._results = results

    async def next(self) -> dict[str, Any]:
        """Return the next event that is not a checkpoint."""
        while True:
            event = await self.any()
            if event["__typename"] != "Checkpoint":
                return event

    async def any(self) -> dict[str, Any]:
        """Return the next event."""
        result = await asyncio.wait_for(anext(self._results), PATIENCE)
        assert result.errors is None, result.errors
        event: dict[str, Any] = result.data["homeTimeline"]
        return event


@asynccontextmanager
async def live(world: World, viewer: User, after: str | None = None) -> AsyncIterator[Live]:
    """Subscribe to a home timeline."""
    results: Any = await schema.subscribe(
        LIVE, context_value=await world.context(viewer), variable_values={"after": after}
    )
    try:
        yield Live(results)
    finally:
        await results.aclose()


async def test_the_first_event_is_a_checkpoint_with_a_cursor(world: World) -> None:
    [alice] = await world.users("alice")
    async with live(world, alice) as stream:
        event = await stream.any()
    assert event["__typename"] == "Checkpoint"
    assert event["cursor"]
    assert event["at"].endswith("Z")


async def test_events_of_all_types_arrive_in_order(world: World) -> None:
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    async with live(world, alice) as stream:
        await stream.any()
        [post] = await world.post(bob, "hello")
        await world.post(carol, "not for alice")
        added = await stream.next()
        await world.graph.posts.delete(bob.id, post.id)
        removed = await stream.next()
        await world.follow(alice, carol)
        await world.graph.follows.unfollow(alice.id, [carol.id])
        follows = [await stream.next(), await stream.next()]
    node = added["post"]
    edge = {"cursor": encode_cursor(CursorKind.POST, post.id), "node": {"__typename": "Post", "id": post_id(post)}}
    assert added["timelineEdge"] == edge
    assert (node["id"], node["text"], node["author"]["login"]) == (post_id(post), "hello", "bob")
    assert node["author"]["relationship"] == {"state": "FOLLOWING"}
    assert (removed["__typename"], removed["postId"], removed["authorId"]) == (
        "PostRemoved",
        post_id(post),
        user_id(bob),
    )
    assert [(event["__typename"], event["user"]["login"]) for event in follows] == [
        ("AuthorAdded", "carol"),
        ("AuthorRemoved", "carol"),
    ]


async def test_reposts_have_events_of_their_own(world: World) -> None:
    """The event has the post, and an edge like that of a post."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    [post] = await world.post(carol, "hi")
    view = world.graph.visibility.of(bob.id)
    async with live(world, alice) as stream:
        await stream.any()
        repost = await world.graph.reposts.repost(view, bob.id, post.id)
        added = await stream.next()
        await world.graph.reposts.unrepost(view, bob.id, post.id)
        removed = await stream.next()
    id_ = repost_id(repost)
    shown = {"id": post_id(post), "text": "hi", "author": {"login": "carol"}}
    assert (added["__typename"], added["repost"]) == (
        "RepostAdded",
        {"id": id_, "author": {"login": "bob"}, "post": shown},
    )
    edge = {"cursor": encode_cursor(CursorKind.POST, repost.id), "node": {"__typename": "Repost", "id": id_}}
    assert added["timelineEdge"] == edge
    assert (removed["__typename"], removed["repostId"], removed["authorId"]) == ("RepostRemoved", id_, user_id(bob))


async def test_no_data_is_cached_from_one_event_to_the_next(world: World) -> None:
    [alice] = await world.users("alice")
    async with live(world, alice) as stream:
        await stream.any()
        counts = []
        for n in range(3):
            await world.post(alice, f"post {n}")
            event = await stream.next()
            counts.append(event["post"]["author"]["postsCount"])
    assert counts == [1, 2, 3]


async def test_resuming_replays_missed_events_once(world: World) -> None:
    [alice] = await world.users("alice")
    async with live(world, alice) as stream:
        await stream.any()
        await world.post(alice, "seen")
        cursor = (await stream.next())["cursor"]
    await world.post(alice, "missed 1", "missed 2")
    async with live(world, alice, cursor) as stream:
        missed = [(await stream.next())["post"]["text"] for _ in range(2)]
        await world.post(alice, "live")
        assert [*missed, (await stream.next())["post"]["text"]] == ["missed 1", "missed 2", "live"]


async def test_a_subscription_from_the_live_cursor_of_a_page_misses_nothing(world: World) -> None:
    [alice] = await world.users("alice")
    await world.graph.worker().drain()
    document = "{ viewer { homeTimeline { liveCursor entries(first: 5) { nodes { id } } } } }"
    timeline = (await world.ask(document, alice)).data["viewer"]["homeTimeline"]
    [post] = await world.post(alice, "between")
    async with live(world, alice, timeline["liveCursor"]) as stream:
        assert (await stream.next())["post"]["id"] == post_id(post)


@pytest.mark.parametrize("after", ["", "nonsense", encode_cursor(CursorKind.POST, 1)])
async def test_an_invalid_cursor_is_rejected(world: World, after: str) -> None:
    [alice] = await world.users("alice")
    assert await first_error(world, alice, after) == "BAD_USER_INPUT"


async def test_an_anonymous_client_cannot_subscribe_to_a_home_timeline(world: World) -> None:
    assert await first_error(world, None, None) == "UNAUTHENTICATED"


async def test_logging_out_ends_the_subscription(world: World) -> None:
    [alice] = await world.users("alice")
    context = await world.context(alice)
    results: Any = await schema.subscribe(LIVE, context_value=context, variable_values={})
    await anext(results)
    assert context.viewer is not None
    await world.graph.sessions.end(alice.id, context.viewer.session)
    result = await asyncio.wait_for(anext(results), PATIENCE)
    assert [code_of(error.original_error) for error in result.errors] == ["UNAUTHENTICATED"]


async def first_error(world: World, viewer: User | None, after: str | None) -> str | None:
    """Subscribe and return the code of the error in the first result."""
    results: Any = await schema.subscribe(
        LIVE, context_value=await world.context(viewer), variable_values={"after": after}
    )
    result = await anext(results)
    [error] = result.errors
    return code_of(error.original_error)
