"""The response to a mutation shows its effect or is an error, even if the store fails during the projection."""

import pytest

from graph import Graph
from resolvers import ids
from tests.graph.conftest import another
from tests.resolvers.conftest import World
from tests.support.graph_worlds import Open, befriend, posts
from tests.support.stores import Fault, runs

__all__ = ["another"]

UNAVAILABLE = "STORE_UNAVAILABLE"
FOLLOW = """
    mutation Follow($users: [ID!]!) {
      followUsers(input: { userIds: $users }) {
        results { outcome user { login followersCount relationship { state } } }
        viewer { user { followingCount } }
        userErrors { code }
      }
    }
"""


async def another_world(another: Open) -> World:
    """Return a world in another process whose calls to the store can fail."""
    return World(await another())


async def test_a_follow_that_is_not_projected_shows_no_old_counts(world: World, graph: Graph, another: Open) -> None:
    """The follow is committed. All fields of the two users are errors until the follow can be read."""
    alice, bob = await world.users("alice", "bob")
    other = await another_world(another)
    Fault(other.graph.store, runs("add_follows"))

    answer = await other.ask(FOLLOW, alice, users=[ids.encode(ids.Kind.USER, bob.id)])

    assert {code for _, code in answer.errors} == {UNAVAILABLE}
    follow = answer.data and answer.data["followUsers"]
    assert follow is None or follow["viewer"] is None
    await graph.worker().drain()
    after = await other.ask(FOLLOW, alice, users=[ids.encode(ids.Kind.USER, bob.id)])
    assert not after.errors
    assert after.data["followUsers"]["viewer"] == {"user": {"followingCount": 1}}


async def test_other_users_are_shown_in_the_same_answer(world: World, another: Open) -> None:
    """Only look-ups of the changed users fail."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    other = await another_world(another)
    Fault(other.graph.store, runs("add_follows"))
    document = FOLLOW.replace("$users: [ID!]!", "$users: [ID!]!, $carol: ID!").rstrip().removesuffix("}")
    document += " muteUser(input: { userId: $carol }) { user { login relationship { muting } } } }"

    users = [ids.encode(ids.Kind.USER, bob.id)]
    answer = await other.ask(document, alice, users=users, carol=ids.encode(ids.Kind.USER, carol.id))

    assert {path[0] for path, _ in answer.errors} == {"followUsers"}
    assert answer.data["muteUser"] == {"user": {"login": "carol", "relationship": {"muting": True}}}


@pytest.mark.parametrize(
    ("document", "script"),
    [
        ("mutation { deletePost(input: {postId: $post}) { deletedPostId } }", "delete_post"),
        ("mutation { unfollowUsers(input: {userIds: [$bob]}) { results { outcome } } }", "remove"),
        ("mutation { blockUser(input: {userId: $bob}) { user { login } } }", "block"),
        ("mutation { muteUser(input: {userId: $bob}) { user { login } } }", "add"),
    ],
    ids=["deletion", "unfollow", "block", "mute"],
)
async def test_nothing_is_withdrawn_before_it_is_hidden(
    world: World, another: Open, document: str, script: str
) -> None:
    """The client must not assume that the content is gone: the mutation fails and can be repeated."""
    alice, bob = await world.users("alice", "bob")
    await befriend(world.graph, alice.id, bob.id)
    [post] = await posts(world.graph, alice.id, "a post")
    for name, value in (("$post", ids.encode(ids.Kind.POST, post)), ("$bob", ids.encode(ids.Kind.USER, bob.id))):
        document = document.replace(name, f'"{value}"')
    other = await another_world(another)
    fault = Fault(other.graph.store, runs(script))

    answer = await other.ask(document, alice)

    assert not fault.left, "the script does not run"
    assert [code for _, code in answer.errors] == [UNAVAILABLE]
    again = await other.ask(document, alice)
    assert not again.errors
