"""Deletions of accounts: the responses, and what other users see afterwards."""

import pytest

from graph.log.account_events import UserDeleted
from tests.resolvers.conftest import PASSWORD, World, post_id, user_id
from tests.resolvers.test_mutations import LOG_IN, SIGN_UP

DELETE = """mutation ($password: String!) { deleteAccount(input: {password: $password}) {
    deletedUserId userErrors { code field } } %s }"""
SEEN = """query ($user: ID!, $post: ID!) {
    user(by: {id: $user}) { id } named: user(by: {login: "bob"}) { id } node(id: $user) { id } post(id: $post) { id }
    searchUsers(text: "bob", first: 5) { nodes { id } }
    viewer {
        user {
          relationship { id }
          followers(first: 5) { totalCount nodes { id } }
          following(first: 5) { nodes { id } }
        }
        homeTimeline { entries(first: 5) { nodes { id author { login } } } } } }"""


async def test_a_viewer_deletes_their_account(world: World) -> None:
    """This takes eight round trips, including the session check. Later fields of the document have no viewer."""
    [bob] = await world.users("bob")

    answer = await world.ask(DELETE % 'publishPost(input: {text: "too late"}) { post { id } }', bob, password=PASSWORD)

    assert answer.data == {
        "deleteAccount": {"deletedUserId": user_id(bob), "userErrors": []},
        "publishPost": None,
    }
    assert answer.errors == [(("publishPost",), "UNAUTHENTICATED")]
    assert answer.round_trips == 8
    last = await world.graph.log.get(await world.graph.log.last())
    assert last is not None
    assert isinstance(last.body, UserDeleted)


@pytest.mark.parametrize("password", ["a wrong password", "", "x" * 1000])
async def test_a_wrong_password_names_the_field(world: World, password: str) -> None:
    """Nothing is written, and the viewer stays logged in."""
    [bob] = await world.users("bob")
    last = await world.graph.log.last()

    answer = await world.ask(DELETE % "logOut(input: {}) { userErrors { code } }", bob, password=password)

    assert answer.errors == []
    assert answer.data["deleteAccount"] == {
        "deletedUserId": None,
        "userErrors": [{"code": "WRONG_CREDENTIALS", "field": ["password"]}],
    }
    written = [event.body async for event in world.graph.log.replay(last, await world.graph.log.last())]
    assert not any(isinstance(body, UserDeleted) for body in written)


async def test_a_deletion_needs_a_viewer_who_is_not_deleted(world: World) -> None:
    """Of two requests in progress, the second one is answered like a request without a session."""
    [bob] = await world.users("bob")
    assert (await world.ask(DELETE % "", None, password=PASSWORD)).errors == [(("deleteAccount",), "UNAUTHENTICATED")]
    context = await world.viewer(bob)
    assert context is not None
    assert (await world.ask(DELETE % "", bob, password=PASSWORD)).errors == []
    last = await world.graph.log.last()

    for document in (DELETE % "", 'mutation { publishPost(input: {text: "hi"}) { post { id } } }'):
        answer = await world.ask(document, bob, **({"password": PASSWORD} if "$password" in document else {}))
        assert [code for _, code in answer.errors] == ["UNAUTHENTICATED"]

    assert await world.graph.log.last() == last


async def test_nobody_finds_a_deleted_user(world: World) -> None:
    """No id, login, search, list or home timeline leads to the user. Follower counts stay until the erasure."""
    alice, bob = await world.users("alice", "bob")
    await world.follow(alice, bob)
    await world.follow(bob, alice)
    [post] = await world.post(bob, "hi")
    variables = {"user": user_id(bob), "post": post_id(post)}
    before = (await world.ask(SEEN, alice, **variables)).data
    assert before["user"] == before["named"] == before["node"] == {"id": user_id(bob)}
    await world.ask(DELETE % "", bob, password=PASSWORD)

    found = await world.ask(SEEN, alice, **variables)

    assert found.errors == []
    assert [found.data[name] for name in ("user", "named", "node", "post")] == [None] * 4
    assert found.data["searchUsers"] == {"nodes": []}
    viewer = found.data["viewer"]
    assert viewer["user"]["followers"]["nodes"] == viewer["user"]["following"]["nodes"] == []
    assert viewer["homeTimeline"]["entries"]["nodes"] == []


async def test_a_deleted_login_is_refused(world: World) -> None:
    """Log-ins treat it like an unknown login, sign-ups like a taken one."""
    [bob] = await world.users("bob")
    await world.ask(DELETE % "", bob, password=PASSWORD)

    log_in = (await world.ask(LOG_IN, None, login="bob", password=PASSWORD)).data["logIn"]
    sign_up = (await world.ask(SIGN_UP, None, login="Bob", password=PASSWORD)).data["signUp"]

    assert [error["code"] for error in log_in["userErrors"]] == ["WRONG_CREDENTIALS"]
    assert [error["code"] for error in sign_up["userErrors"]] == ["LOGIN_TAKEN"]
