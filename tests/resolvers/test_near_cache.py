"""Requests of a process with a near cache: they take few commands, and never show an old value."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from graph import Graph, keys
from graph.store.recall import near_values
from graph.store.store import Store
from resolvers.context import Context
from tests.conftest import CHEAP
from tests.resolvers.conftest import World, issue_token, post_id
from tests.resolvers.test_round_trips import HOME, crowd
from tests.support.graphs import open_graph

LIKE = "mutation ($id: ID!) { likePost(input: {postId: $id}) { post { likesCount author { name } } } }"
RENAME = """mutation { updateProfile(input: {name: "Alicia"}) { user { name } } viewer: updateProfile(input: {}) {
    user { name } } }"""
POST = (
    "query ($id: ID!) { node(id: $id) { ... on Post { text likesCount author { name postsCount followersCount } } } }"
)
PAGE = """query ($first: Int!) { viewer { homeTimeline { entries(first: $first) { nodes {
    id author { id login name followersCount relationship { state } } ... on Post { text likesCount } } } } } }"""
TRIES = 50


@pytest.fixture
async def world(graph: Graph, store_url: str) -> AsyncIterator[World]:
    """Open the world of a process with a near cache. `graph` is another process, without one."""
    near = await open_graph(store_url, CHEAP, partial(Store, single_slot=True, near_cache=1000))
    try:
        yield World(near)
    finally:
        await near.close()


@pytest.mark.single_server("a cluster keeps less")
@pytest.mark.parametrize("first", [30, 100])
async def test_a_home_page_takes_few_commands(world: World, graph: Graph, first: int) -> None:
    """A page of any length needs the session, the viewer, the slice and the relationships."""
    alice, _, others = await crowd(world, 25)
    for n in range(110):
        await world.post(others[n % len(others)], f"post {n}")
    await world.ask(HOME, alice, first=first)
    await world.graph.timelines.wait_for_rebuilds()
    cold = await world.ask(HOME, alice, first=first)

    warm = await world.ask(HOME, alice, first=first)

    assert warm.errors == []
    assert warm.data == cold.data == (await World(graph).ask(HOME, alice, first=first)).data
    assert warm.commands <= 5
    assert warm.round_trips <= 3


async def test_a_page_takes_few_commands_on_a_cluster_too(world: World, graph: Graph) -> None:
    """Once all nodes have answered, a page needs only blocks, suspensions and a read of each other node in addition."""
    alice, _, others = await crowd(world, 25)
    for n in range(30):
        await world.post(others[n % len(others)], f"post {n}")
    await world.ask(PAGE, alice, first=30)
    await world.graph.timelines.wait_for_rebuilds()
    plain = World(graph)
    expected = await plain.ask(PAGE, alice, first=30)

    found = [await world.ask(PAGE, alice, first=30) for _ in range(TRIES)]

    assert all(page.data == expected.data for page in found)
    assert max(page.round_trips for page in found) <= expected.round_trips
    assert min(page.commands for page in found) <= 10 < 80 < expected.commands


async def test_changes_by_another_process_are_shown(world: World, graph: Graph) -> None:
    """A request that begins after a change has returned shows the change, whatever it is."""
    other = World(graph)
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "hello")

    async def shown() -> tuple[int, str, int, int] | None:
        node = (await world.ask(POST, bob, id=post_id(post))).data["node"]
        author = node and node["author"]
        return node and (node["likesCount"], author["name"], author["postsCount"], author["followersCount"])

    for _ in range(2):
        assert await shown() == (0, "Alice", 1, 0)
    await graph.likes.like(bob.id, post.id)
    assert await shown() == (1, "Alice", 1, 0)
    await graph.users.update_profile(alice.id, name="Alicia")
    assert await shown() == (1, "Alicia", 1, 0)
    await other.post(alice, "again")
    assert await shown() == (1, "Alicia", 2, 0)
    await other.follow(bob, alice)
    assert await shown() == (1, "Alicia", 2, 1)
    await graph.posts.delete(alice.id, post.id)
    assert await shown() is None


@pytest.mark.single_server("pauses the only connection")
async def test_a_request_uses_nothing_from_before_it_began(world: World, graph: Graph) -> None:
    """The invalidation has not arrived yet: the process reads its connection later."""
    [alice] = await world.users("alice")
    [post] = await world.post(alice, "hello")
    for _ in range(2):
        await world.ask(POST, alice, id=post_id(post))
    viewer = await world.viewer(alice)
    pipeline: Any = world.graph.store._read_pipeline
    pipeline.connection._transport.pause_reading()
    await graph.store.run("HSET", keys.post(post.id), "text", "changed")
    loading = asyncio.ensure_future(Context(world.graph, viewer, issue_token).loaders.posts.load(post.id))
    await asyncio.wait([loading], timeout=0.05)
    pipeline.connection._transport.resume_reading()

    found = await loading

    assert found is not None
    assert found.text == "changed"


async def test_a_mutation_shows_its_own_change(world: World) -> None:
    """The next requests of the process show it, too."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "hello")
    await world.ask(POST, bob, id=post_id(post))

    for user, count in ((bob, 1), (alice, 2), (alice, 2)):
        liked = (await world.ask(LIKE, user, id=post_id(post))).data["likePost"]["post"]
        assert liked["likesCount"] == count
        assert (await world.ask(POST, bob, id=post_id(post))).data["node"]["likesCount"] == count
    renamed = (await world.ask(RENAME, alice)).data
    assert renamed["updateProfile"]["user"]["name"] == "Alicia"
    assert (await world.ask(POST, bob, id=post_id(post))).data["node"]["author"]["name"] == "Alicia"


async def test_a_new_watermark_lets_requests_read_again(world: World) -> None:
    """It may come from another connection, and a page must not be older than its `liveCursor`."""
    store = world.graph.store
    [alice] = await world.users("alice")
    moment = store.begin()
    for _ in range(2):  # the first one may open the connection
        await world.graph.users.get_many([alice.id], moment)
    assert near_values(store, [keys.user(alice.id)], moment) is not None

    world.graph.log.note_watermark(["1", "1"])
    assert near_values(store, [keys.user(alice.id)], moment) is None

    await store.read([("EXISTS", keys.user(alice.id))])
    assert near_values(store, [keys.user(alice.id)], moment) is not None
