"""Reports and suspensions through the API."""

from typing import Any

import pytest

from graph.model import User
from resolvers import ids
from tests.resolvers.conftest import PASSWORD, World, post_id, texts, user_id

REPORT = """mutation Report($input: ReportInput!) { report(input: $input) {
    reported userErrors { code field message params { name value } } } }"""
LOG_IN = """mutation LogIn($login: String!, $password: String!) {
    logIn(input: { login: $login, password: $password }) { credentials { token } userErrors { code field } } }"""
EVERYTHING = """query Everything($id: ID!, $post: ID!) {
    user(by: { id: $id }) { login }
    named: user(by: { login: "bob" }) { login }
    node(id: $id) { id }
    post(id: $post) { text }
    carol: user(by: { login: "carol" }) {
      followers(first: 9) { totalCount nodes { login } }
      following(first: 9) { nodes { login } }
      followersYouKnow(first: 9) { totalCount nodes { login } }
      timeline { entries(first: 9) { edges { node { author { login }
        ... on Post { text
          quotedPost { text }
          entities { ... on MentionEntity { user { login } } }
          likes(first: 9) { totalCount nodes { login } }
          replies(first: 9) { nodes { text } } }
        ... on Repost { post { text } }
      } } } }
    }
    viewer {
      homeTimeline { entries(first: 9) { edges { node { author { login } ... on Post { text } } } } }
      notifications { entries(first: 9) { nodes { __typename actors { login } } } }
      mutedUsers(first: 9) { nodes { login } }
      blockedUsers(first: 9) { nodes { login } }
    } }"""


async def report(world: World, by: User | None, subject: str, **fields: Any) -> Any:
    """Report something, and return the payload."""
    given = {"subjectId": subject, "reason": "SPAM", **fields}
    return (await world.ask(REPORT, by, input=given)).data["report"]


async def test_users_and_posts_are_reported(world: World) -> None:
    """A repeated report gets the same answer."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "buy this")

    for subject in (post_id(post), user_id(bob)):
        for _ in range(2):
            payload = await report(world, alice, subject, reason="OTHER", comment="look")
            assert payload == {"reported": True, "userErrors": []}

    found = [each async for each in world.graph.moderation.reports()]
    assert [(each.user, each.subject, each.author) for each in found] == [
        (alice.id, post.id, bob.id),
        (alice.id, bob.id, None),
    ]


@pytest.mark.parametrize("subject", ["x", ids.encode(ids.Kind.USER, 7), ids.encode(ids.Kind.POST, 7), "timeline"])
async def test_what_does_not_exist_cannot_be_reported(world: World, subject: str) -> None:
    [alice] = await world.users("alice")
    subject = ids.encode(ids.Kind.USER_TIMELINE, alice.id) if subject == "timeline" else subject

    payload = await report(world, alice, subject)

    assert not payload["reported"]
    assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [("NOT_FOUND", ["subjectId"])]


async def test_invalid_reports_name_the_field(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    for subject, comment, field in ((alice, "", "subjectId"), (bob, "x" * 1001, "comment")):
        payload = await report(world, alice, user_id(subject), comment=comment)
        assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [("INVALID", [field])]
    answer = await world.ask(REPORT, None, input={"subjectId": user_id(bob), "reason": "SPAM"})
    assert [code for _, code in answer.errors] == ["UNAUTHENTICATED"]


async def test_nothing_of_a_suspended_user_is_shown(world: World) -> None:
    """No field fails. After the suspension, everything is shown as before."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    graph = world.graph
    await world.follow(alice, bob, carol)
    await world.follow(bob, carol, alice)
    await world.follow(carol, bob)
    [by_bob] = await world.post(bob, "by bob")
    [by_carol] = await world.post(carol, "hi @bob")
    await graph.posts.publish(carol.id, "look", quote_of=by_bob.id)
    await graph.reposts.repost(graph.visibility.of(carol.id), carol.id, by_bob.id)
    await graph.posts.publish(bob.id, "re", reply_to=by_carol.id)
    await graph.likes.like(bob.id, by_carol.id)
    [by_alice] = await world.post(alice, "by alice")
    await graph.likes.like(bob.id, by_alice.id)
    await graph.blocks.mute(alice.id, bob.id)
    variables = {"id": user_id(bob), "post": post_id(by_bob)}
    before = await world.ask(EVERYTHING, alice, **variables)

    await graph.moderation.suspend(bob.id)

    for viewer in (alice, None):
        answer = await world.ask(EVERYTHING, viewer, **variables)
        assert answer.errors == []
        found = answer.data
        assert [found[name] for name in ("user", "named", "node", "post")] == [None] * 4
        assert found["carol"]["following"]["nodes"] == []
        edges = [edge["node"] for edge in found["carol"]["timeline"]["entries"]["edges"]]
        assert [(post["text"], post["quotedPost"]) for post in edges] == [("look", None), ("hi @bob", None)]
        assert edges[1]["likes"] == {"totalCount": 1, "nodes": []}
        assert edges[1]["replies"] == {"nodes": []}
        assert edges[1]["entities"] == [{"user": None}]
        assert "bob" not in str(found).replace("@bob", "")
    found = (await world.ask(EVERYTHING, alice, **variables)).data
    assert texts(found["viewer"]["homeTimeline"]["entries"]) == ["by alice", "look", "hi @bob"]
    assert found["carol"]["followersYouKnow"] == {"totalCount": 0, "nodes": []}
    await graph.moderation.unsuspend(bob.id)
    after = await world.ask(EVERYTHING, alice, **variables)
    assert (after.data, after.errors) == (before.data, [])


async def test_a_suspended_user_cannot_log_in(world: World) -> None:
    [bob] = await world.users("bob")
    await world.graph.moderation.suspend(bob.id)

    payload = (await world.ask(LOG_IN, None, login="bob", password=PASSWORD)).data["logIn"]

    assert payload == {"credentials": None, "userErrors": [{"code": "NOT_ALLOWED", "field": None}]}
