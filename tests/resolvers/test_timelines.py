"""Timelines, posts and relationships through the schema."""

import pytest

from graph.model import Location, time_of
from resolvers import ids
from tests.resolvers.conftest import World, post_id, texts, user_id

HOME = """query ($first: Int, $after: String, $last: Int, $before: String) { viewer { homeTimeline { id kind liveCursor
    entries(first: $first, after: $after, last: $last, before: $before) {
        edges { cursor node { author { login } ... on Post { text } } } nodes { ... on Post { text } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } } }"""


async def test_home_shows_own_and_followed_posts(world: World) -> None:
    """The home timeline has the posts of the viewer and of all followed users, newest first, with their authors."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    await world.post(bob, "b1")
    await world.post(carol, "c1")
    await world.post(alice, "a1")
    await world.post(bob, "b2")

    page = (await world.ask(HOME, alice, first=10)).data["viewer"]["homeTimeline"]

    assert page["kind"] == "HOME"
    assert texts(page["entries"]) == ["b2", "a1", "b1"]
    assert [edge["node"]["author"]["login"] for edge in page["entries"]["edges"]] == ["bob", "alice", "bob"]
    assert [node["text"] for node in page["entries"]["nodes"]] == texts(page["entries"])
    assert page["entries"]["pageInfo"]["hasNextPage"] is False


async def test_home_is_paged_in_both_directions(world: World) -> None:
    """Older posts are after the end cursor, newer ones before the start cursor."""
    [alice] = await world.users("alice")
    await world.post(alice, "1", "2", "3", "4")
    page = (await world.ask(HOME, alice, first=2)).data["viewer"]["homeTimeline"]["entries"]
    older = (await world.ask(HOME, alice, first=5, after=page["pageInfo"]["endCursor"])).data
    await world.post(alice, "5")
    newer = (await world.ask(HOME, alice, last=5, before=page["pageInfo"]["startCursor"])).data
    assert texts(page) == ["4", "3"]
    assert page["pageInfo"]["hasNextPage"] is True
    assert texts(older["viewer"]["homeTimeline"]["entries"]) == ["2", "1"]
    assert texts(newer["viewer"]["homeTimeline"]["entries"]) == ["5"]


async def test_the_live_cursor_belongs_to_the_first_page(world: World) -> None:
    """It is null if an argument is a cursor, so that one document serves the first page and later ones."""
    [alice] = await world.users("alice")
    await world.post(alice, "1", "2", "3")
    document = """query ($first: Int, $after: String, $last: Int, $before: String) { viewer { homeTimeline {
        liveCursor(first: $first, after: $after, last: $last, before: $before)
        entries(first: $first, after: $after, last: $last, before: $before) { pageInfo { endCursor } } } } }"""

    async def page(**arguments: object) -> tuple[bool, str]:
        home = (await world.ask(document, alice, **arguments)).data["viewer"]["homeTimeline"]
        return home["liveCursor"] is not None, home["entries"]["pageInfo"]["endCursor"]

    is_live, end = await page(first=1, after=None)
    assert is_live
    assert (await page(last=2))[0]
    assert not (await page(first=1, after=end))[0]
    assert not (await page(last=1, before=end))[0]


async def test_the_viewer_is_a_node_of_their_own(world: World) -> None:
    """Only the viewer can read it, and its id differs from the user's."""
    alice, bob = await world.users("alice", "bob")
    answer = await world.ask("{ viewer { id user { id } } }", alice)
    viewer = answer.data["viewer"]
    assert viewer["id"] == ids.encode(ids.Kind.VIEWER, alice.id) != viewer["user"]["id"] == user_id(alice)
    document = "query ($id: ID!) { node(id: $id) { __typename ... on Viewer { user { login } } } }"
    found = {"__typename": "Viewer", "user": {"login": "alice"}}
    assert (await world.ask(document, alice, id=viewer["id"])).data["node"] == found
    for other in (bob, None):
        assert (await world.ask(document, other, id=viewer["id"])).data["node"] is None


async def test_user_timelines_are_public(world: World) -> None:
    """Anonymous requests can read a user's own posts, with a live cursor."""
    alice, bob = await world.users("alice", "bob")
    await world.follow(bob, alice)
    await world.post(alice, "a")
    await world.post(bob, "b")
    answer = await world.ask(
        '{ user(by: {login: "bob"}) { timeline { liveCursor entries(first: 3) { nodes { ... on Post { text } } } } } }'
    )
    timeline = answer.data["user"]["timeline"]
    assert timeline["entries"]["nodes"] == [{"text": "b"}]
    assert timeline["liveCursor"]


async def test_a_deleted_post_is_neither_in_timelines_nor_looked_up(world: World) -> None:
    [alice] = await world.users("alice")
    post, _ = await world.post(alice, "gone", "stays")
    await world.graph.posts.delete(alice.id, post.id)
    document = """query ($id: ID!) { post(id: $id) { text } node(id: $id) { id }
        viewer { user { timeline { entries(first: 5) { nodes { ... on Post { text } } } } } } }"""
    answer = await world.ask(document, alice, id=post_id(post))
    assert answer.data == {
        "post": None,
        "node": None,
        "viewer": {"user": {"timeline": {"entries": {"nodes": [{"text": "stays"}]}}}},
    }


async def test_post_fields(world: World) -> None:
    [alice] = await world.users("alice")
    post = await world.graph.posts.publish(alice.id, "in 北京", platform="Web", location=Location(39.9, 116.4))
    document = """query ($id: ID!) { post(id: $id) {
        __typename id text createdAt platform location { latitude longitude } author { login } } }"""
    answer = await world.ask(document, id=post_id(post))
    assert answer.data["post"] == {
        "__typename": "Post",
        "id": post_id(post),
        "text": "in 北京",
        "createdAt": time_of(post.id).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "platform": "Web",
        "location": {"latitude": 39.9, "longitude": 116.4},
        "author": {"login": "alice"},
    }


@pytest.mark.parametrize(
    "arguments", ["", "(first: 101)", '(first: 1, after: "follow-00000000000001")', '(last: 1, before: "x")']
)
async def test_invalid_paging_fails_the_connection_alone(world: World, arguments: str) -> None:
    """A missing or excessive count, a malformed cursor, or a cursor from another list gives BAD_USER_INPUT."""
    [alice] = await world.users("alice")
    answer = await world.ask(f"{{ viewer {{ homeTimeline {{ entries{arguments} {{ nodes {{ id }} }} }} }} }}", alice)
    assert answer.data == {"viewer": {"homeTimeline": {"entries": None}}}
    assert answer.errors == [(("viewer", "homeTimeline", "entries"), "BAD_USER_INPUT")]


async def test_a_post_cursor_is_valid_in_every_timeline(world: World) -> None:
    """A cursor from a home timeline can be used to page through a user's timeline."""
    alice, bob = await world.users("alice", "bob")
    await world.follow(alice, bob)
    await world.post(bob, "b1")
    await world.post(alice, "a1")
    await world.post(bob, "b2")
    home = (await world.ask(HOME, alice, first=2)).data["viewer"]["homeTimeline"]["entries"]
    document = """query ($id: ID!, $c: String!) { user(by: {id: $id}) {
        timeline { entries(first: 5, after: $c) { nodes { ... on Post { text } } } } } }"""
    answer = await world.ask(document, alice, id=user_id(bob), c=home["edges"][1]["cursor"])
    assert answer.data["user"]["timeline"]["entries"]["nodes"] == [{"text": "b1"}]


async def test_relationships(world: World) -> None:
    """Every state is returned from the viewer's side, with the times of the follows."""
    alice, bob, carol, dave, _ = await world.users("alice", "bob", "carol", "dave", "erin")
    await world.follow(alice, bob, dave)
    await world.follow(carol, alice)
    await world.follow(dave, alice)
    document = (
        """{ %s } fragment r on User { relationship { state following followedBy followingSince followedBySince } }"""
    )
    users = " ".join(
        f'{login}: user(by: {{login: "{login}"}}) {{ ...r }}' for login in ["alice", "bob", "carol", "dave", "erin"]
    )
    answer = await world.ask(document % users, alice)
    found = {login: user["relationship"] for login, user in answer.data.items()}
    assert {login: relationship["state"] for login, relationship in found.items()} == {
        "alice": "YOU",
        "bob": "FOLLOWING",
        "carol": "FOLLOWED_BY",
        "dave": "MUTUAL",
        "erin": "STRANGER",
    }
    for relationship in found.values():
        assert relationship["following"] == (relationship["followingSince"] is not None)
        assert relationship["followedBy"] == (relationship["followedBySince"] is not None)


async def test_the_relationship_is_null_for_anonymous_requests(world: World) -> None:
    await world.users("alice")
    answer = await world.ask('{ user(by: {login: "alice"}) { relationship { state } } }')
    assert (answer.data, answer.errors) == ({"user": {"relationship": None}}, [])
