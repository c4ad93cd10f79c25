"""Follows through the API: results, edges, and what is refused."""

from dataclasses import replace

from graph.model import User
from resolvers import ids
from tests.conftest import CHEAP
from tests.resolvers.conftest import Answer, World, post_id, user_id
from tests.resolvers.test_mutations import FOLLOW, UNFOLLOW, codes, last_event
from tests.support.graphs import open_graph


def outcomes(answer: Answer, name: str = "followUsers") -> list[str]:
    """Return the outcomes of a follow or unfollow, or the codes of the errors. Each result has one of the two."""
    results = answer.data[name]["results"]
    assert all((each["outcome"] is None) is not (each["error"] is None) for each in results)
    return [each["outcome"] or each["error"]["code"] for each in results]


async def following(world: World, user: User) -> list[str]:
    """Return the logins that a user follows."""
    answer = await world.ask("{ viewer { user { following(first: 100) { nodes { login } } } } }", user)
    return [node["login"] for node in answer.data["viewer"]["user"]["following"]["nodes"]]


async def test_follow_and_unfollow(world: World) -> None:
    """Results are in the order of the ids, with the relationships and counts after the change."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, carol)
    await world.follow(bob, alice)
    answer = await world.ask(FOLLOW, alice, ids=[user_id(bob), user_id(carol)])
    assert codes(answer, "followUsers") == []
    assert answer.data["followUsers"]["results"] == [
        {
            "userId": user_id(bob),
            "outcome": "FOLLOWED",
            "error": None,
            "user": {"login": "bob", "relationship": {"state": "MUTUAL"}},
        },
        {
            "userId": user_id(carol),
            "outcome": "ALREADY_FOLLOWING",
            "error": None,
            "user": {"login": "carol", "relationship": {"state": "FOLLOWING"}},
        },
    ]
    assert answer.data["followUsers"]["viewer"] == {"user": {"followingCount": 2}}

    answer = await world.ask(UNFOLLOW, alice, ids=[user_id(bob)])
    assert outcomes(answer, "unfollowUsers") == ["UNFOLLOWED"]
    assert answer.data["unfollowUsers"]["results"][0]["user"]["relationship"] == {"state": "FOLLOWED_BY"}
    assert answer.data["unfollowUsers"]["viewer"] == {"user": {"followingCount": 1}}
    assert outcomes(await world.ask(UNFOLLOW, alice, ids=[user_id(bob)]), "unfollowUsers") == ["NOT_FOLLOWING"]


async def test_some_ids_cannot_be_followed(world: World) -> None:
    """Results are in order. The viewer, unknown users, posts and malformed ids get errors; the others are followed."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hello")
    unknown = ids.encode(ids.Kind.USER, 12345)
    given = [user_id(alice), unknown, post_id(post), user_id(bob), unknown, "x", user_id(bob)]
    answer = await world.ask(FOLLOW, alice, ids=given)
    assert codes(answer, "followUsers") == []
    results = answer.data["followUsers"]["results"]
    assert outcomes(answer) == ["INVALID", "NOT_FOUND", "NOT_FOUND", "FOLLOWED", "NOT_FOUND"]
    assert [(each["userId"], (each["user"] or {}).get("login")) for each in results] == [
        (user_id(alice), "alice"),
        (unknown, None),
        (post_id(post), None),
        (user_id(bob), "bob"),
        ("x", None),
    ]
    assert [each["error"]["field"] for each in results if each["error"]] == [["userIds", n] for n in "0125"]


async def test_only_ids_of_other_types(world: World) -> None:
    """If no id is that of a user, only the individual results report errors."""
    [alice] = await world.users("alice")
    [post] = await world.post(alice, "hello")
    answer = await world.ask(UNFOLLOW, alice, ids=[post_id(post)])
    assert outcomes(answer, "unfollowUsers") == ["NOT_FOUND"]
    assert codes(answer, "unfollowUsers") == []


async def test_a_follow_returns_its_edge_in_the_list_of_followed_users(world: World) -> None:
    """It does so even if the viewer already followed the user. Unfollows and failed follows have no edge."""
    alice, bob = await world.users("alice", "bob")
    mutation = "mutation ($ids: [ID!]!) { followUsers(input: {userIds: $ids}) { results { followEdge { ...Edge } } } }"
    edge = "fragment Edge on FollowEdge { cursor followedAt node { login } }"
    ids = [user_id(bob), user_id(alice)]
    results = [(await world.ask(mutation + edge, alice, ids=ids)).data["followUsers"]["results"] for _ in range(2)]
    listed = await world.ask("{ viewer { user { following(first: 1) { edges { ...Edge } } } } }" + edge, alice)
    [follow] = listed.data["viewer"]["user"]["following"]["edges"]
    assert [[result["followEdge"] for result in both] for both in results] == [[follow, None], [follow, None]]
    answer = await world.ask(mutation.replace("followUsers(", "unfollowUsers(") + edge, alice, ids=[user_id(bob)])
    [unfollowed] = answer.data["unfollowUsers"]["results"]
    assert unfollowed["followEdge"] is None


async def test_no_ids_and_too_many_ids_write_nothing(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    before = await last_event(world)
    assert codes(await world.ask(FOLLOW, alice, ids=[]), "followUsers") == [("INVALID", ["userIds"])]
    many = await world.ask(FOLLOW, alice, ids=[user_id(bob)] * 101)
    assert codes(many, "followUsers") == [("TOO_MANY", ["userIds"])]
    assert await last_event(world) == before
    assert outcomes(await world.ask(FOLLOW, alice, ids=[user_id(bob)] * 100)) == ["FOLLOWED"]


async def test_over_the_limit_of_follows(store_url: str) -> None:
    """No user is followed. Only the errors of the individual results report this."""
    graph = await open_graph(store_url, replace(CHEAP, max_following=2))
    try:
        world = World(graph)
        alice, *others = await world.users("alice", "bob", "carol", "dave")
        await world.follow(alice, others[0])
        answer = await world.ask(FOLLOW, alice, ids=[user_id(user) for user in others])
        assert outcomes(answer) == ["ALREADY_FOLLOWING", "TOO_MANY", "TOO_MANY"]
        assert answer.data["followUsers"]["results"][1]["error"] == {
            "code": "TOO_MANY",
            "message": "You can follow at most 2 users. No user was followed. Unfollow others first.",
            "field": ["userIds", "1"],
            "params": [{"name": "max", "value": "2"}],
        }
        assert codes(answer, "followUsers") == []
        assert await following(world, alice) == ["bob"]
    finally:
        await graph.close()
