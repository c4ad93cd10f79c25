"""Tests of subscriptions to filtered events through the schema."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graph.model import Location, Permission, User
from resolvers import ids
from resolvers.errors import code_of
from schema import schema
from tests.resolvers.conftest import World, post_id, repost_id, user_id
from tests.support.graph_worlds import PATIENCE

EVENTS = """subscription ($filter: EventFilter!, $after: String) { events(filter: $filter, after: $after) {
    __typename cursor at
    ... on PostAdded { post { id text author { login relationship { state } } } }
    ... on PostRemoved { postId authorId }
    ... on RepostAdded { repost { id author { login } post { text repostsCount } } timelineEdge { node { id } } }
    ... on RepostRemoved { repostId authorId }
    ... on UserFollowed { follower { login } followee { login followersCount } }
    ... on UserUnfollowed { follower { login } followee { login followersCount } }
    ... on Gap { reason } } }"""


class Streaming:
    def __init__(self, world: World, viewer: User | None, after: str | None = None, **filter_: object) -> None:
        self._world = world
        self._viewer = viewer
        self._variables = {"filter": filter_, "after": after}
        self._results: Any = None

    async def __aenter__(self) -> "Streaming":
        context = await self._world.context(self._viewer)
        self._results = await schema.subscribe(EVENTS, context_value=context, variable_values=self._variables)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._results.aclose()

    async def result(self) -> Any:
        """Return the next result."""
        return await asyncio.wait_for(anext(self._results), PATIENCE)

    async def next(self) -> dict[str, Any]:
        """Return the next event that is not a checkpoint."""
        while True:
            result = await self.result()
            assert result.errors is None, result.errors
            event: dict[str, Any] = result.data["events"]
            if event["__typename"] != "Checkpoint":
                return event

    async def refusal(self) -> tuple[str | None, str]:
        """Return the code and the message of the error in the next result."""
        [error] = (await self.result()).errors
        return code_of(error.original_error), error.message


async def test_events_of_all_kinds_contain_their_users_posts_and_reposts(world: World) -> None:
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    async with Streaming(world, alice, users=[user_id(bob)]) as stream:
        assert (await stream.result()).data["events"]["__typename"] == "Checkpoint"
        [post] = await world.post(bob, "hello")
        published = await stream.next()
        await world.graph.posts.delete(bob.id, post.id)
        deleted = await stream.next()
        await world.follow(carol, bob)
        followed = await stream.next()
        await world.graph.follows.unfollow(carol.id, [bob.id])
        unfollowed = await stream.next()
        view, [other] = world.graph.visibility.of(bob.id), await world.post(carol, "hi")
        repost = await world.graph.reposts.repost(view, bob.id, other.id)
        reposted = await stream.next()
        await world.graph.reposts.unrepost(view, bob.id, other.id)
        undone = await stream.next()
    author = {"login": "bob", "relationship": {"state": "FOLLOWING"}}
    assert published["post"] == {"id": post_id(post), "text": "hello", "author": author}
    assert (deleted["postId"], deleted["authorId"]) == (post_id(post), user_id(bob))
    assert followed["follower"] == {"login": "carol"}
    assert followed["followee"] == {"login": "bob", "followersCount": 2}
    assert unfollowed["followee"] == {"login": "bob", "followersCount": 1}
    shown = {"id": repost_id(repost), "author": {"login": "bob"}, "post": {"text": "hi", "repostsCount": 1}}
    assert (reposted["repost"], reposted["timelineEdge"]["node"]) == (shown, {"id": repost_id(repost)})
    assert (undone["repostId"], undone["authorId"]) == (repost_id(repost), user_id(bob))
    events = (published, deleted, followed, unfollowed, reposted, undone)
    assert [event["__typename"] for event in events] == [
        *("PostAdded", "PostRemoved", "UserFollowed", "UserUnfollowed", "RepostAdded", "RepostRemoved")
    ]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["REPOST_ADDED"], ["RepostAdded"]),
        (["REPOST_REMOVED"], ["RepostRemoved"]),
        (["POST_ADDED"], ["PostAdded"]),
        (["POST_ADDED", "REPOST_REMOVED"], ["PostAdded", "RepostRemoved"]),
    ],
)
async def test_posts_and_reposts_are_kinds_of_their_own(world: World, kinds: list[str], expected: list[str]) -> None:
    """The stream has the kinds that it asks for, and no others in between."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "hi")
    view, reposts, found = world.graph.visibility.of(bob.id), world.graph.reposts, []
    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "PostAdded": lambda: world.post(bob, "own"),
        "RepostAdded": lambda: reposts.repost(view, bob.id, post.id),
        "RepostRemoved": lambda: reposts.unrepost(view, bob.id, post.id),
    }
    async with Streaming(world, None, users=[user_id(bob)], kinds=kinds) as stream:
        await stream.result()
        for _ in range(2):
            for kind, change in changes.items():
                await change()
                if kind in expected:
                    found.append((await stream.next())["__typename"])
    assert found == expected * 2


async def test_the_fields_of_a_filter_are_combined_with_and(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    berlin, rome = Location(52.5, 13.4), Location(41.9, 12.5)
    box = {"south": 50, "west": 10, "north": 55, "east": 15}
    async with Streaming(world, None, keywords=["rain"], within=box, kinds=["POST_ADDED"]) as stream:
        await stream.result()
        for author, text, place in ((bob, "sun", berlin), (bob, "rain", rome), (bob, "Rain!", berlin)):
            await world.graph.posts.publish(author.id, text, location=place)
        assert (await stream.next())["post"]["text"] == "Rain!"
        await world.follow(alice, bob)
        await world.graph.posts.publish(alice.id, "more RAIN", location=berlin)
        assert (await stream.next())["post"]["text"] == "more RAIN"


async def test_resuming_replays_missed_events_once(world: World) -> None:
    [alice] = await world.users("alice")
    async with Streaming(world, None, users=[user_id(alice)]) as stream:
        await stream.result()
        await world.post(alice, "seen")
        cursor = (await stream.next())["cursor"]
    await world.post(alice, "missed")
    async with Streaming(world, None, cursor, users=[user_id(alice)]) as stream:
        assert (await stream.next())["post"]["text"] == "missed"


async def test_the_cursor_of_a_reconnecting_client_is_preferred_to_the_argument(world: World) -> None:
    [alice] = await world.users("alice")
    async with Streaming(world, None, users=[user_id(alice)]) as stream:
        start = (await stream.result()).data["events"]["cursor"]
        await world.post(alice, "seen", "missed")
        seen = (await stream.next())["cursor"]
    context = await world.context(alice)
    context.resume_after = seen
    variables = {"filter": {"users": [user_id(alice)]}, "after": start}
    results: Any = await schema.subscribe(EVENTS, context_value=context, variable_values=variables)
    assert (await anext(results)).data["events"]["cursor"] == seen
    event = (await anext(results)).data["events"]
    assert event["post"]["text"] == "missed"
    await results.aclose()


@pytest.mark.parametrize(
    ("filter_", "named"),
    [
        ({}, "firehose"),
        ({"firehose": False}, "firehose"),
        ({"sample": 0.5}, "firehose"),
        ({"kinds": ["POST_ADDED"]}, "firehose"),
        ({"users": []}, "users"),
        ({"users": ["bob"]}, "The entry 'bob' of 'users' is not the id of a user."),
        ({"users": ["b" * 100]}, f"The entry '{'b' * 40}…' of 'users' is not the id of a user."),
        ({"users": [ids.encode(ids.Kind.POST, 1)]}, "of 'users' is not the id of a user."),
        ({"users": [ids.encode(ids.Kind.USER, 1 + n) for n in range(501)]}, "the limit is 500"),
        ({"keywords": []}, "keywords"),
        ({"keywords": ["?!"]}, "keyword"),
        ({"keywords": ["word"] * 401}, "400"),
        ({"keywords": [" ".join(f"w{n}" for n in range(26))]}, "25"),
        ({"keywords": ["x" * 61]}, "60"),
        ({"within": {"south": 1, "west": 0, "north": 0, "east": 1}}, "south"),
        ({"within": {"south": -91, "west": 0, "north": 0, "east": 1}}, "within"),
        ({"users": [ids.encode(ids.Kind.USER, 1)], "sample": 0}, "sample"),
        ({"users": [ids.encode(ids.Kind.USER, 1)], "kinds": []}, "kinds"),
    ],
)
async def test_an_invalid_filter_is_rejected_with_the_name_of_the_field(
    world: World, filter_: dict[str, Any], named: str
) -> None:
    async with Streaming(world, None, **filter_) as stream:
        code, message = await stream.refusal()
    assert code == "BAD_USER_INPUT"
    assert named in message


async def test_a_firehose_requires_the_permission(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    await world.graph.users.grant(alice.id, Permission.FIREHOSE)
    for viewer in (None, bob):
        async with Streaming(world, viewer, firehose=True) as stream:
            assert (await stream.refusal())[0] == "FORBIDDEN"
    async with Streaming(world, alice, firehose=True) as stream:
        await stream.result()
        await world.post(bob, "anything")
        assert (await stream.next())["post"]["text"] == "anything"


async def test_logging_out_ends_an_event_stream(world: World) -> None:
    [alice] = await world.users("alice")
    async with Streaming(world, alice, users=[user_id(alice)]) as stream:
        await stream.result()
        viewer = await world.viewer(alice)
        assert viewer is not None
        await world.graph.sessions.end(alice.id, viewer.session)
        assert (await stream.refusal())[0] == "UNAUTHENTICATED"
