"""Round trips to the store do not grow with the page, and relationships take two commands."""

import asyncio
import gc
from collections.abc import Sequence
from functools import cache

import pytest
from graphql import parse

from executor import Executor
from graph.model import User
from graph.paging import Window
from resolvers.context import Context
from schema import schema
from tests.resolvers.conftest import Answer, World, errors_of, issue_token, user_id

HOME = """query Home($first: Int!) { viewer { homeTimeline { liveCursor entries(first: $first) {
    edges { cursor node { id createdAt author {
        id login name followersCount followingCount postsCount relationship { id state }
    } ... on Post { text platform } } }
    pageInfo { hasNextPage endCursor }
} } } }"""

FOLLOWERS = """query Followers($by: UserBy!, $first: Int!) { user(by: $by) {
    id login followersCount
    followers(first: $first) {
        totalCount
        edges { cursor followedAt node { id login name followersCount relationship { state followedBySince } } }
        pageInfo { hasNextPage endCursor }
    }
} }"""


parsed = cache(parse)
REPEATS = 20
FEW_OBJECTS = 50


async def crowd(world: World, size: int) -> tuple[User, User, Sequence[User]]:
    """Create alice, bob and a crowd. The crowd follows alice and bob, and alice follows the crowd."""
    alice, bob = await world.users("alice", "bob")
    others = await world.users(*(f"user_{n}" for n in range(size)))
    for user in others:
        await world.graph.follows.follow(user.id, [bob.id, alice.id])
    await world.graph.follows.follow(alice.id, [user.id for user in others])
    return alice, bob, others


@pytest.mark.parametrize("first", [30, 100])
async def test_home_with_authors_counts_and_relations(world: World, first: int) -> None:
    """A warm cache takes five round trips with the session check, for 30 posts and for 100."""
    alice, _, others = await crowd(world, 25)
    for n in range(110):
        await world.post(others[n % len(others)], f"post {n}")
    await world.ask(HOME, alice, first=first)
    await world.graph.timelines.wait_for_rebuilds()

    answer = await world.ask(HOME, alice, first=first)

    assert answer.errors == []
    page = answer.data["viewer"]["homeTimeline"]["entries"]
    assert [edge["node"]["text"] for edge in page["edges"]] == [f"post {n}" for n in range(109, 109 - first, -1)]
    assert {edge["node"]["author"]["relationship"]["state"] for edge in page["edges"]} == {"MUTUAL"}
    assert answer.round_trips <= 5


@pytest.mark.parametrize("first", [5, 25])
async def test_followers_with_relations(world: World, first: int) -> None:
    """Four round trips by id or by a cached login; one more for a login that is not cached."""
    alice, bob, _ = await crowd(world, 25)
    by_id = {"id": user_id(bob)}
    await world.ask(FOLLOWERS, alice, by=by_id, first=first)

    answer = await world.ask(FOLLOWERS, alice, by=by_id, first=first)
    met = await world.ask(FOLLOWERS, alice, by={"login": "bob"}, first=first)
    named = await world.ask(FOLLOWERS, alice, by={"login": "bob"}, first=first)

    assert answer.errors == []
    assert answer.data == named.data
    assert len(answer.data["user"]["followers"]["edges"]) == first
    assert answer.round_trips <= 4
    assert met.round_trips <= 5
    assert named.round_trips <= 4


@pytest.mark.counts_reads
@pytest.mark.parametrize("first", [1, 5, 25])
async def test_relations_are_two_commands(world: World, first: int) -> None:
    """Relationships add two commands to a page of any size, and no round trip."""
    alice, bob, _ = await crowd(world, 25)
    page = "query ($id: ID!, $n: Int!) { user(by: {id: $id}) { followers(first: $n) { nodes { followersCount %s } } } }"

    without = await world.ask(page % "", alice, id=user_id(bob), n=first)
    with_relations = await world.ask(page % "relationship { state }", alice, id=user_id(bob), n=first)

    assert with_relations.commands - without.commands == 2
    assert with_relations.round_trips == without.round_trips


@pytest.mark.counts_reads
async def test_three_counts_share_a_round_trip(world: World) -> None:
    """All counts of a user take one round trip, and only requested counts are read."""
    [alice] = await world.users("alice")
    none = await world.ask("{ viewer { user { login } } }", alice)
    one = await world.ask("{ viewer { user { login followersCount } } }", alice)
    three = await world.ask("{ viewer { user { login followersCount followingCount postsCount } } }", alice)
    assert one.commands == none.commands + 1
    assert three.commands == none.commands + 4
    assert three.round_trips == one.round_trips == 2


@pytest.mark.counts_reads
async def test_total_count_is_read_only_if_requested(world: World) -> None:
    [alice] = await world.users("alice")
    page = "{ viewer { user { followers(first: 1) { pageInfo { hasNextPage } %s } } } }"
    without, counted = await world.ask(page % "", alice), await world.ask(page % "totalCount", alice)
    assert without.commands < counted.commands


async def test_posts_of_a_page_are_not_looked_up_again(world: World) -> None:
    """A page of posts primes the loader of posts."""
    [alice] = await world.users("alice")
    [post] = await world.post(alice, "hello")
    context = await world.context(alice)
    await context.loaders.user_timelines.load((alice.id, Window(10, True)))
    trips = world.graph.store.round_trips
    assert await context.loaders.posts.load(post.id) == post
    assert world.graph.store.round_trips == trips


async def test_many_timelines_share_round_trips(world: World) -> None:
    """The nested timelines of ten followers take as many round trips as that of one."""
    alice, bob, others = await crowd(world, 10)
    for user in others:
        await world.post(user, f"by {user.login}")
    nested = """query ($id: ID!, $n: Int!) { user(by: {id: $id}) { followers(first: $n) { nodes {
        timeline { entries(first: 2) { nodes { ... on Post { text } } } } } } } }"""

    one = await world.ask(nested, alice, id=user_id(bob), n=1)
    ten = await world.ask(nested, alice, id=user_id(bob), n=10)

    assert [len(n["timeline"]["entries"]["nodes"]) for n in ten.data["user"]["followers"]["nodes"]] == [1] * 10
    assert ten.round_trips == one.round_trips


async def ask_breadth_first(
    executor: Executor, world: World, document: str, by: User, /, **variables: object
) -> Answer:
    """Execute a query breadth first, with the session check in parallel like the server. See `World.ask`."""
    viewer = await world.viewer(by)
    assert viewer is not None
    store = world.graph.store
    await world.graph.log.watermark()
    trips, commands = store.round_trips, store.commands
    live = world.graph.sessions.is_live(viewer.user, viewer.session)
    context = Context(world.graph, viewer, issue_token)
    result = await executor.execute(parsed(document), context_value=context, variable_values=variables)
    assert await live
    return Answer(result.data, errors_of(result.errors), store.round_trips - trips, store.commands - commands)


@pytest.fixture
def executor() -> Executor:
    """Return an executor of the schema."""
    return Executor(schema._schema)


@pytest.mark.counts_reads
@pytest.mark.parametrize("first", [30, 100])
async def test_home_breadth_first_takes_three_trips(world: World, executor: Executor, first: int) -> None:
    """The trips read the session, viewer and ids; the posts; and the authors with counts and relationships."""
    alice, _, others = await crowd(world, 25)
    for n in range(110):
        await world.post(others[n % len(others)], f"post {n}")
    await world.ask(HOME, alice, first=first)
    await world.graph.timelines.wait_for_rebuilds()
    expected = await world.ask(HOME, alice, first=first)

    answer = await ask_breadth_first(executor, world, HOME, alice, first=first)

    assert answer.errors == []
    assert answer.data == expected.data
    assert answer.round_trips == 3
    assert executor.fallen_back == 0


@pytest.mark.parametrize("by_login", [False, True])
async def test_followers_breadth_first_take_two_trips(world: World, executor: Executor, by_login: bool) -> None:
    """The first trip reads the user and the page, the second the page's users with their relationships."""
    alice, bob, _ = await crowd(world, 25)
    by = {"login": "bob"} if by_login else {"id": user_id(bob)}
    expected = await world.ask(FOLLOWERS, alice, by=by, first=25)

    answer = await ask_breadth_first(executor, world, FOLLOWERS, alice, by=by, first=25)

    assert answer.errors == []
    assert answer.data == expected.data
    assert answer.round_trips == 2
    assert executor.fallen_back == 0


@pytest.mark.counts_reads
async def test_relationships_breadth_first_are_two_commands(world: World, executor: Executor) -> None:
    """They take no extra round trip, because they are read together with the users."""
    alice, bob, _ = await crowd(world, 10)
    page = "query ($id: ID!) { user(by: {id: $id}) { followers(first: 10) { edges { node { login %s } } } } }"

    without = await ask_breadth_first(executor, world, page % "", alice, id=user_id(bob))
    related = await ask_breadth_first(executor, world, page % "relationship { state }", alice, id=user_id(bob))

    assert related.commands - without.commands == 2
    assert related.round_trips == without.round_trips == 2


async def test_a_query_breadth_first_leaves_no_reference_cycles(world: World, executor: Executor) -> None:
    """Reference counting frees the objects of a request, so that the garbage collector finds nothing."""
    alice, _, others = await crowd(world, 10)
    for user in others:
        await world.post(user, f"by {user.login}")
    await world.ask(HOME, alice, first=30)
    await world.graph.timelines.wait_for_rebuilds()
    await ask_breadth_first(executor, world, HOME, alice, first=30)
    await asyncio.sleep(0)

    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            assert (await ask_breadth_first(executor, world, HOME, alice, first=30)).errors == []
        found = gc.collect()
    finally:
        gc.enable()

    assert found < FEW_OBJECTS
