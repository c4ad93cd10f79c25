"""Users: look-ups, counts, followers and followed users."""

import pytest

from graph.model import time_of
from tests.resolvers.conftest import World, logins, post_id, user_id

FOLLOWERS = """query ($login: String!, $first: Int, $after: String, $last: Int, $before: String) {
    user(by: {login: $login}) { followers(first: $first, after: $after, last: $last, before: $before) {
        edges { cursor followedAt node { login } } totalCount
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
} } }"""


async def test_viewer(world: World) -> None:
    """The viewer is the user who is logged in, and null for anonymous requests."""
    [alice] = await world.users("alice")
    assert (await world.ask("{ viewer { user { login name bio } } }", alice)).data == {
        "viewer": {"user": {"login": "alice", "name": "Alice", "bio": ""}}
    }
    assert (await world.ask("{ viewer { user { login } } }")).data == {"viewer": None}


async def test_user_by_id_and_by_login(world: World) -> None:
    """Both return the same user, and the login ignores case."""
    [alice] = await world.users("alice")
    document = """query ($id: ID!) { a: user(by: {id: $id}) { ...u } b: user(by: {login: "ALICE"}) { ...u } }
        fragment u on User { id login joinedAt }"""
    answer = await world.ask(document, id=user_id(alice))
    assert answer.errors == []
    assert answer.data["a"] == answer.data["b"]
    assert answer.data["a"]["id"] == user_id(alice)
    assert answer.data["a"]["joinedAt"] == time_of(alice.id).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("login", ["nobody", "", "no body", "x" * 5000, "小明", "a\x00b", "\ud800"])
async def test_unknown_or_impossible_login(world: World, login: str) -> None:
    """The user is null, without an error."""
    answer = await world.ask("query ($login: String!) { user(by: {login: $login}) { id } }", login=login)
    assert answer.data == {"user": None}
    assert answer.errors == []


async def test_user_by_an_unknown_or_malformed_id(world: World) -> None:
    """An unknown id, or an id of another type, gives null; a malformed id gives an error."""
    [alice] = await world.users("alice")
    [post] = await world.post(alice, "hello")
    document = "query ($id: ID!) { user(by: {id: $id}) { id } }"
    assert (await world.ask(document, id=user_id(alice)[:-1])).errors == [(("user",), "BAD_USER_INPUT")]
    for id in (post_id(post), "VXNlcjo5OTk"):
        answer = await world.ask(document, id=id)
        assert (answer.data, answer.errors) == ({"user": None}, [])


@pytest.mark.parametrize("by", ['{id: "x", login: "y"}', "{}", "{id: null}", "{login: null}"])
async def test_user_by_exactly_one(world: World, by: str) -> None:
    """The input is @oneOf."""
    answer = await world.ask(f"{{ user(by: {by}) {{ id }} }}")
    assert not (answer.data or {}).get("user")
    assert len(answer.errors) == 1


async def test_counts(world: World) -> None:
    """Counts are exact after follows, unfollows, posts and deletions."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob, carol)
    await world.follow(carol, alice)
    await world.graph.follows.unfollow(alice.id, [bob.id])
    first, _ = await world.post(alice, "one", "two")
    await world.graph.posts.delete(alice.id, first.id)
    answer = await world.ask("{ viewer { user { followersCount followingCount postsCount } } }", alice)
    assert answer.data["viewer"]["user"] == {"followersCount": 1, "followingCount": 1, "postsCount": 1}


async def test_followers_are_paged_newest_first(world: World) -> None:
    """Paging forward and backward uses the same order."""
    star, *fans = await world.users("star", "fan_1", "fan_2", "fan_3", "fan_4", "fan_5")
    for fan in fans:
        await world.follow(fan, star)

    first = (await world.ask(FOLLOWERS, None, login="star", first=2)).data["user"]["followers"]
    then = (await world.ask(FOLLOWERS, None, login="star", first=9, after=first["pageInfo"]["endCursor"])).data
    last = (await world.ask(FOLLOWERS, None, login="star", last=2)).data["user"]["followers"]
    back = (await world.ask(FOLLOWERS, None, login="star", last=1, before=last["pageInfo"]["startCursor"])).data

    assert logins(first) == ["fan_5", "fan_4"]
    assert first["totalCount"] == 5
    assert (first["pageInfo"]["hasNextPage"], first["pageInfo"]["hasPreviousPage"]) == (True, False)
    assert logins(then["user"]["followers"]) == ["fan_3", "fan_2", "fan_1"]
    assert then["user"]["followers"]["pageInfo"]["hasNextPage"] is False
    assert logins(last) == ["fan_2", "fan_1"]
    assert logins(back["user"]["followers"]) == ["fan_3"]


async def test_following_and_nodes(world: World) -> None:
    """Each list has its own count and order, and nodes are the users of the edges."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob, carol)
    answer = await world.ask(
        "{ viewer { user { following(first: 5) { totalCount nodes { login } edges { node { login } followedAt } } "
        "followers(first: 5) { totalCount nodes { login } pageInfo { startCursor endCursor hasNextPage } } } } }",
        alice,
    )
    following, followers = answer.data["viewer"]["user"]["following"], answer.data["viewer"]["user"]["followers"]
    assert logins(following) == ["carol", "bob"]
    assert [node["login"] for node in following["nodes"]] == ["carol", "bob"]
    assert following["totalCount"] == 2
    assert followers == {
        "totalCount": 0,
        "nodes": [],
        "pageInfo": {"startCursor": None, "endCursor": None, "hasNextPage": False},
    }


async def test_a_follow_cursor_is_valid_in_every_list_of_follows(world: World) -> None:
    """A cursor from the followers list can be used in the list of followed users, by the time of the follow."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    await world.follow(bob, alice)
    await world.follow(alice, carol)
    mine = await world.ask("{ viewer { user { followers(first: 1) { edges { cursor } } } } }", alice)
    cursor = mine.data["viewer"]["user"]["followers"]["edges"][0]["cursor"]
    document = "query ($c: String!) { viewer { user { following(first: 5, after: $c) { nodes { login } } } } }"
    answer = await world.ask(document, alice, c=cursor)
    assert answer.data["viewer"]["user"]["following"]["nodes"] == [{"login": "bob"}]


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "(first: 0)",
        "(first: 101)",
        "(first: -1)",
        "(last: 101)",
        "(first: 1, last: 1)",
        "(first: null)",
        '(first: 1, after: "")',
        '(first: 1, after: "nonsense")',
        '(first: 1, before: "post-00000000000001")',
        '(first: 1, after: "log-00000000000001")',
    ],
)
async def test_invalid_paging_fails_the_connection_alone(world: World, arguments: str) -> None:
    """A missing, duplicate or excessive count, a malformed cursor, or one from another list is BAD_USER_INPUT."""
    [alice] = await world.users("alice")
    answer = await world.ask(f"{{ viewer {{ user {{ login followers{arguments} {{ totalCount }} }} }} }}", alice)
    assert answer.data == {"viewer": {"user": {"login": "alice", "followers": None}}}
    assert answer.errors == [(("viewer", "user", "followers"), "BAD_USER_INPUT")]


KNOWN = """query ($id: ID!) { user(by: {id: $id}) { followersYouKnow(first: 5) {
    totalCount nodes { login } edges { cursor followedAt node { login } } pageInfo { hasNextPage endCursor } } } }"""


async def test_followers_you_know(world: World) -> None:
    """The user's followers whom the viewer follows, in four round trips with the session check."""
    alice, bob, carol, dave = await world.users("alice", "bob", "carol", "dave")
    await world.follow(alice, carol, bob)
    await world.follow(carol, bob)
    await world.follow(dave, bob)

    answer = await world.ask(KNOWN, alice, id=user_id(bob))

    known = answer.data["user"]["followersYouKnow"]
    assert (logins(known), known["nodes"], known["totalCount"]) == (["carol"], [{"login": "carol"}], 1)
    assert known["pageInfo"] == {"hasNextPage": False, "endCursor": known["edges"][0]["cursor"]}
    assert answer.round_trips <= 4
    anonymous = await world.ask(KNOWN, id=user_id(bob))
    assert (anonymous.data, anonymous.errors) == ({"user": {"followersYouKnow": None}}, [])


async def test_followers_you_know_with_invalid_paging(world: World) -> None:
    """It is refused for anonymous requests too."""
    [alice] = await world.users("alice")
    for viewer in (alice, None):
        answer = await world.ask(
            "query ($id: ID!) { user(by: {id: $id}) { followersYouKnow { totalCount } } }", viewer, id=user_id(alice)
        )
        assert answer.errors == [(("user", "followersYouKnow"), "BAD_USER_INPUT")]
