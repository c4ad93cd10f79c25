"""Subscriptions to timelines and threads through the schema."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from graph.feed import combined_stream
from graph.model import User
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from resolvers.errors import code_of
from schema import schema
from tests.resolvers.conftest import World, post_id, user_id
from tests.support.graph_worlds import PATIENCE

TIMELINE = """subscription ($timelineId: ID!, $after: String) { timeline(timelineId: $timelineId, after: $after) {
    __typename cursor at
    ... on PostAdded { timelineEdge { node { id ... on Post { text } } } }
    ... on RepostAdded { repost { id post { text } } } ... on PostRemoved { postId } ... on RepostRemoved { repostId }
    ... on AuthorHidden { userId } ... on AuthorAdded { userId } ... on Gap { reason } } }"""
THREAD = """subscription ($postId: ID!, $after: String) { thread(postId: $postId, after: $after) {
    __typename cursor at
    ... on ReplyAdded { reply { text } postEdge { cursor node { id text } } }
    ... on PostChanged { postId post { id likesCount repliesCount repostsCount quotesCount } }
    ... on PostRemoved { postId authorId } ... on AuthorHidden { userId } ... on Gap { reason } } }"""
POST = """query ($id: ID!, $after: String) { post(id: $id) { likesCount liveCursor(first: 2, after: $after)
    replies(first: 2, after: $after) { nodes { id } pageInfo { endCursor } } } }"""


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send updates of threads more often than once a second."""
    monkeypatch.setattr(combined_stream, "SEND_SECONDS", 0.1)


class Live:
    def __init__(self, results: Any) -> None:
        self._results = results

    async def next(self) -> dict[str, Any]:
        """Return the next event that is not a checkpoint."""
        while True:
            result = await asyncio.wait_for(anext(self._results), PATIENCE)
            assert result.errors is None, result.errors
            [event] = result.data.values()
            if event["__typename"] != "Checkpoint":
                return dict(event)


@asynccontextmanager
async def live(world: World, document: str, viewer: User | None, **variables: Any) -> AsyncIterator[Live]:
    results: Any = await schema.subscribe(
        document, context_value=await world.context(viewer), variable_values=variables
    )
    try:
        yield Live(results)
    finally:
        await results.aclose()


async def refused(world: World, document: str, viewer: User | None, **variables: Any) -> str | None:
    """Return the code of the error with which a subscription ends at once."""
    results: Any = await schema.subscribe(
        document, context_value=await world.context(viewer), variable_values=variables
    )
    result = await asyncio.wait_for(anext(results), PATIENCE)
    await results.aclose()
    assert result.data is None
    return code_of(result.errors[0].original_error)


async def timeline_of(world: World, login: str, field: str = "timeline") -> tuple[str, str]:
    """Return the id of a user's timeline, and its live cursor."""
    query = "query ($login: String!) { user(by: {login: $login}) { %s { id liveCursor(first: 5) entries(first: 5) {"
    found = (await world.ask(query % field + " nodes { id } } } } }", None, login=login)).data["user"][field]
    return found["id"], found["liveCursor"]


async def test_anybody_can_subscribe_to_the_timeline_of_a_user(world: World) -> None:
    """The stream begins from the live cursor of a page."""
    alice, bob = await world.users("alice", "bob")
    [by_bob] = await world.post(bob, "by bob")
    timeline, cursor = await timeline_of(world, "alice")
    [post] = await world.post(alice, "by alice")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, by_bob.id)

    async with live(world, TIMELINE, None, timelineId=timeline, after=cursor) as stream:
        first, second = await stream.next(), await stream.next()

    assert first["timelineEdge"] == {"node": {"id": post_id(post), "text": "by alice"}}
    assert second["repost"] == {"id": ids.encode(ids.Kind.REPOST, repost.id), "post": {"text": "by bob"}}


async def test_the_replies_of_a_user_have_a_stream_of_their_own(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [by_bob] = await world.post(bob, "by bob")
    timeline, cursor = await timeline_of(world, "alice", "repliesTimeline")
    await world.post(alice, "no reply")
    await world.graph.posts.publish(alice.id, "a reply", reply_to=by_bob.id)

    async with live(world, TIMELINE, bob, timelineId=timeline, after=cursor) as stream:
        assert (await stream.next())["timelineEdge"]["node"]["text"] == "a reply"


async def test_the_owner_of_a_list_can_subscribe_to_its_timeline(world: World) -> None:
    """Nobody else can."""
    alice, bob = await world.users("alice", "bob")
    friends = await world.graph.lists.create(alice.id, "friends", [bob.id])
    timeline = ids.encode(ids.Kind.LIST_TIMELINE, friends.id)
    start = await world.graph.log.last()
    await world.post(bob, "by bob")

    for viewer in (bob, None):
        assert await refused(world, TIMELINE, viewer, timelineId=timeline) == "BAD_USER_INPUT"
    async with live(world, TIMELINE, alice, timelineId=timeline, after=encode_cursor(CursorKind.LOG, start)) as stream:
        assert (await stream.next())["timelineEdge"]["node"]["text"] == "by bob"


async def test_a_viewer_can_subscribe_to_the_home_timeline_by_its_id(world: World) -> None:
    """Subscriptions to the home timelines of others are refused."""
    alice, bob = await world.users("alice", "bob")
    timeline, start = ids.encode(ids.Kind.HOME_TIMELINE, alice.id), await world.graph.log.last()
    await world.post(alice, "by alice")

    assert await refused(world, TIMELINE, bob, timelineId=timeline) == "BAD_USER_INPUT"
    async with live(world, TIMELINE, alice, timelineId=timeline, after=encode_cursor(CursorKind.LOG, start)) as stream:
        assert (await stream.next())["timelineEdge"]["node"]["text"] == "by alice"


async def test_other_ids_are_refused(world: World) -> None:
    [alice] = await world.users("alice")
    unknown = ids.encode(ids.Kind.USER_TIMELINE, 4711)
    for timeline in ("nonsense", user_id(alice), unknown, ids.encode(ids.Kind.PUBLIC_TIMELINE)):
        assert await refused(world, TIMELINE, alice, timelineId=timeline) == "BAD_USER_INPUT"
    timeline, _ = await timeline_of(world, "alice")
    assert await refused(world, TIMELINE, alice, timelineId=timeline, after="nonsense") == "BAD_USER_INPUT"


async def test_a_thread_tells_of_replies_and_counts(world: World) -> None:
    """The stream begins from the live cursor of the post."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "post")
    found = (await world.ask(POST, bob, id=post_id(post))).data["post"]
    await world.graph.likes.like(bob.id, post.id)
    reply = await world.graph.posts.publish(bob.id, "a reply", reply_to=post.id)

    async with live(world, THREAD, bob, postId=post_id(post), after=found["liveCursor"]) as stream:
        counts, added = await stream.next(), await stream.next()

    assert counts["post"] == {
        "id": post_id(post),
        "likesCount": 1,
        "repliesCount": 1,
        "repostsCount": 0,
        "quotesCount": 0,
    }
    assert added["reply"] == {"text": "a reply"}
    page = (await world.ask(POST, bob, id=post_id(post))).data["post"]["replies"]
    edge = {"cursor": page["pageInfo"]["endCursor"], "node": {"id": post_id(reply), "text": "a reply"}}
    assert added["postEdge"] == edge


async def test_later_pages_of_replies_have_no_live_cursor(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "post")
    await world.graph.posts.publish(bob.id, "a reply", reply_to=post.id)
    first = (await world.ask(POST, bob, id=post_id(post))).data["post"]
    later = (await world.ask(POST, bob, id=post_id(post), after=first["replies"]["pageInfo"]["endCursor"])).data["post"]
    assert first["liveCursor"] is not None
    assert later["liveCursor"] is None


async def test_a_client_that_resumes_learns_that_the_post_was_deleted(world: World) -> None:
    """Without a cursor, the subscription to a deleted post is refused, like one to a repost."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "post")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    start = await world.graph.log.last()
    await world.graph.posts.delete(alice.id, post.id)

    async with live(world, THREAD, bob, postId=post_id(post), after=encode_cursor(CursorKind.LOG, start)) as stream:
        event = await stream.next()
    assert (event["__typename"], event["postId"], event["authorId"]) == ("PostRemoved", post_id(post), user_id(alice))
    for id_ in (post_id(post), ids.encode(ids.Kind.REPOST, repost.id), ids.encode(ids.Kind.POST, repost.id), "x"):
        assert await refused(world, THREAD, bob, postId=id_) == "BAD_USER_INPUT"


async def test_a_cursor_does_not_open_the_thread_of_a_hidden_post(world: World) -> None:
    """Nor does it open the thread of a post that never existed."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "post")
    after = encode_cursor(CursorKind.LOG, await world.graph.log.last())
    await world.graph.blocks.block(alice.id, bob.id)
    for id_ in (post_id(post), ids.encode(ids.Kind.POST, 4711)):
        assert await refused(world, THREAD, bob, postId=id_, after=after) == "BAD_USER_INPUT"
