"""Actions across a block: they are refused in both directions with `BLOCKED`, and nothing is written."""

from dataclasses import replace

import pytest

from graph.model import User
from graph.visibility.views import SYSTEM
from tests.resolvers.conftest import World, post_id, repost_id, user_id
from tests.support.graphs import CHEAP, open_graph

ERRORS = "userErrors { code field }"
FOLLOW = f"""mutation ($id: ID!) {{ payload: followUsers(input: {{ userIds: [$id] }}) {{
    results {{ outcome error {{ code }} }} {ERRORS} }} }}"""
OF_POSTS = {
    "reply": ("publishPost", '{ text: "no", replyToId: $id }', "replyToId"),
    "quote": ("publishPost", '{ text: "no", quotedPostId: $id }', "quotedPostId"),
    "repost": ("repostPost", "{ postId: $id }", "postId"),
    "like": ("likePost", "{ postId: $id }", "postId"),
}
DIRECTIONS = ("the viewer blocks", "the viewer is blocked")


async def separated(world: World, direction: str) -> tuple[User, User, User]:
    """Return a viewer, a user on the other side of a block, and a third user."""
    viewer, other, third = await world.users("alice", "bob", "carol")
    pair = (viewer, other) if direction == DIRECTIONS[0] else (other, viewer)
    await world.graph.blocks.block(*(user.id for user in pair))
    return viewer, other, third


async def refusals(world: World, viewer: User, action: str, id_: str) -> list[dict[str, object]]:
    """Return the errors of an action on a post. Assert that nothing is written."""
    mutation, input_, _ = OF_POSTS[action]
    last = await world.graph.log.last()
    document = f"mutation ($id: ID!) {{ payload: {mutation}(input: {input_}) {{ {ERRORS} }} }}"
    answer = await world.ask(document, viewer, id=id_)
    assert await world.graph.log.last() == last
    found: list[dict[str, object]] = answer.data["payload"]["userErrors"]
    return found


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("action", OF_POSTS)
async def test_actions_on_posts_across_a_block_are_refused(world: World, action: str, direction: str) -> None:
    """A third user's repost of the post is not found, as always. After an unblock, the actions are allowed."""
    viewer, other, third = await separated(world, direction)
    [post] = await world.post(other, "hi")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(third.id), third.id, post.id)

    for id_, code in ((post_id(post), "BLOCKED"), (repost_id(repost), "NOT_FOUND")):
        errors = await refusals(world, viewer, action, id_)
        assert errors == [{"code": code, "field": [OF_POSTS[action][2]]}]

    pair = (viewer, other) if direction == DIRECTIONS[0] else (other, viewer)
    await world.graph.blocks.unblock(*(user.id for user in pair))
    mutation, input_, _ = OF_POSTS[action]
    document = f"mutation ($id: ID!) {{ payload: {mutation}(input: {input_}) {{ {ERRORS} }} }}"
    answer = await world.ask(document, viewer, id=post_id(post))
    assert answer.data["payload"]["userErrors"] == []


@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_follows_across_a_block_are_refused(world: World, direction: str) -> None:
    viewer, other, _ = await separated(world, direction)
    last = await world.graph.log.last()
    answer = await world.ask(FOLLOW, viewer, id=user_id(other))
    assert answer.data["payload"]["results"] == [{"outcome": None, "error": {"code": "BLOCKED"}}]
    assert await world.graph.log.last() == last


async def test_a_mute_refuses_nothing(world: World) -> None:
    viewer, other, _ = await world.users("alice", "bob", "carol")
    await world.graph.blocks.mute(viewer.id, other.id)
    [post] = await world.post(other, "hi")
    for action, (mutation, input_, _) in OF_POSTS.items():
        document = f"mutation ($id: ID!) {{ payload: {mutation}(input: {input_}) {{ {ERRORS} }} }}"
        assert (await world.ask(document, viewer, id=post_id(post))).data["payload"]["userErrors"] == [], action
    results = (await world.ask(FOLLOW, viewer, id=user_id(other))).data["payload"]["results"]
    assert results == [{"outcome": "FOLLOWED", "error": None}]


@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_likes_and_reposts_across_a_block_can_be_taken_back(world: World, direction: str) -> None:
    """They can be taken back once. After that, the post is treated like one that does not exist."""
    viewer, other, _ = await world.users("alice", "bob", "carol")
    [post] = await world.post(other, "hi")
    await world.graph.likes.like(viewer.id, post.id)
    await world.graph.reposts.repost(world.graph.visibility.of(viewer.id), viewer.id, post.id)
    pair = (viewer, other) if direction == DIRECTIONS[0] else (other, viewer)
    await world.graph.blocks.block(*(user.id for user in pair))

    for mutation in ("unlikePost", "unrepostPost"):
        document = (
            f"mutation ($id: ID!) {{ payload: {mutation}(input: {{ postId: $id }}) {{ post {{ id }} {ERRORS} }} }}"
        )
        payload = (await world.ask(document, viewer, id=post_id(post))).data["payload"]
        assert payload == {"post": None, "userErrors": []}
        last = await world.graph.log.last()
        payload = (await world.ask(document, viewer, id=post_id(post))).data["payload"]
        assert payload["userErrors"] == [{"code": "NOT_FOUND", "field": ["postId"]}]
        assert await world.graph.log.last() == last
    [found] = await world.graph.posts.get_many(SYSTEM, [post.id])
    assert found is not None
    assert (found.likes, found.reposts) == (0, 0)


@pytest.mark.parametrize("change", ["muteUser", "blockUser"])
async def test_over_the_limit_of_mutes_and_blocks(store_url: str, change: str) -> None:
    graph = await open_graph(store_url, replace(CHEAP, max_blocked=1))
    try:
        world = World(graph)
        alice, bob, carol = await world.users("alice", "bob", "carol")
        document = (
            f"mutation ($id: ID!) {{ payload: {change}(input: {{ userId: $id }}) {{ user {{ login }} {ERRORS} }} }}"
        )
        answer = await world.ask(document, alice, id=user_id(bob))
        assert answer.data["payload"] == {"user": {"login": "bob"}, "userErrors": []}
        answer = await world.ask(document, alice, id=user_id(carol))
        assert answer.data["payload"] == {"user": None, "userErrors": [{"code": "TOO_MANY", "field": ["userId"]}]}
    finally:
        await graph.close()
