"""Plain reposts through the API: mutations, counts, timelines, and what a viewer has reposted."""

from typing import Any

import pytest

from executor import Executor
from graph.model import Post, User
from resolvers import ids
from schema import schema
from tests.resolvers.conftest import World, post_id, user_id
from tests.resolvers.test_round_trips import ask_breadth_first

REPOST = """mutation Repost($postId: ID!) { repostPost(input: { postId: $postId }) {
    repost { id text repostOfId repostOf { text repostsCount viewerHasReposted } author { login postsCount } }
    repostEdge { cursor node { id } }
    userErrors { code field message params { name } } } }"""
UNREPOST = """mutation Unrepost($postId: ID!) { unrepostPost(input: { postId: $postId }) {
    deletedRepostId post { id repostsCount viewerHasReposted }
    userErrors { code field message params { name } } } }"""
POST = """query Post($id: ID!) { post(id: $id) { text repostsCount viewerHasReposted
    reposts(first: 10) { nodes { id text author { login } } } } }"""
HOME = """query Home($first: Int!) { viewer { homeTimeline { posts(first: $first) { nodes {
    id text repostsCount viewerHasReposted author { login relationship { state } }
    repostOf { id text repostsCount author { login name } } } } } } }"""


async def repost(world: World, user: User, post: Post) -> Any:
    """Repost a post, and return the payload."""
    return (await world.ask(REPOST, user, postId=post_id(post))).data["repostPost"]


async def test_a_repost_is_shown_at_once(world: World) -> None:
    """The payload has the new counts and an edge for timelines."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")

    payload = await repost(world, alice, post)

    assert payload["userErrors"] == []
    assert payload["repost"] | {"id": ""} == {
        "id": "",
        "text": "",
        "repostOfId": post_id(post),
        "repostOf": {"text": "hi", "repostsCount": 1, "viewerHasReposted": True},
        "author": {"login": "alice", "postsCount": 1},
    }
    assert payload["repostEdge"]["node"]["id"] == payload["repost"]["id"]
    found = (await world.ask(POST, bob, id=post_id(post))).data["post"]
    entry = {"id": payload["repost"]["id"], "text": "", "author": {"login": "alice"}}
    assert found == {"text": "hi", "repostsCount": 1, "viewerHasReposted": False, "reposts": {"nodes": [entry]}}
    assert (await world.ask(POST, None, id=post_id(post))).data["post"]["viewerHasReposted"] is None
    own = (await world.ask(POST, alice, id=payload["repost"]["id"])).data["post"]
    assert own["viewerHasReposted"] is True


async def test_reposts_and_quotes_of_a_post_are_lists_of_their_own(world: World) -> None:
    """Both are newest first. A quote of a repost is a quote of the original."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await world.graph.posts.publish(bob.id, "look", quote_of=post.id)
    first = await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, post.id)
    await world.graph.posts.publish(alice.id, "see", quote_of=first.id)
    second = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    query = """query ($id: ID!) { post(id: $id) { repostsCount quotesCount
        reposts(first: 9) { nodes { id } } quotes(first: 9) { nodes { text } } } }"""

    found = (await world.ask(query, alice, id=post_id(post))).data["post"]
    assert (found["repostsCount"], found["quotesCount"]) == (2, 2)
    assert [node["id"] for node in found["reposts"]["nodes"]] == [post_id(second), post_id(first)]
    assert [node["text"] for node in found["quotes"]["nodes"]] == ["see", "look"]


async def test_the_count_of_posts_includes_quotes_and_reposts(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await repost(world, alice, post)
    await world.graph.posts.publish(alice.id, "look", quote_of=post.id)
    found = await world.ask('{ user(by: {login: "alice"}) { postsCount } }', None)
    assert found.data == {"user": {"postsCount": 2}}


async def test_repeated_mutations_have_the_same_answer_and_write_nothing(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    first = await repost(world, alice, post)
    last = await world.graph.log.last()
    assert await repost(world, alice, post) == first
    assert await world.graph.log.last() == last

    answer = (await world.ask(UNREPOST, alice, postId=post_id(post))).data["unrepostPost"]
    shown = {"id": post_id(post), "repostsCount": 0, "viewerHasReposted": False}
    assert answer == {"deletedRepostId": first["repost"]["id"], "post": shown, "userErrors": []}
    last = await world.graph.log.last()
    for named in (post_id(post), first["repost"]["id"]):
        assert (await world.ask(UNREPOST, alice, postId=named)).data["unrepostPost"] == answer
    assert await world.graph.log.last() == last


async def test_deleting_a_repost_takes_it_back(world: World) -> None:
    """The payload has the original with its new count."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    entry = (await repost(world, alice, post))["repost"]["id"]
    document = """mutation Delete($id: ID!) { deletePost(input: { postId: $id }) {
        deletedPostId viewer { user { postsCount } } repostOf { repostsCount viewerHasReposted }
        userErrors { code } } }"""
    assert (await world.ask(document, alice, id=entry)).data["deletePost"] == {
        "deletedPostId": entry,
        "viewer": {"user": {"postsCount": 0}},
        "repostOf": {"repostsCount": 0, "viewerHasReposted": False},
        "userErrors": [],
    }


@pytest.mark.parametrize("document", [REPOST, UNREPOST])
async def test_unknown_malformed_and_deleted_posts_are_not_found(world: World, document: str) -> None:
    """All in the same way, and nothing is written."""
    alice, bob = await world.users("alice", "bob")
    post, gone = await world.post(bob, "hi", "bye")
    await world.graph.posts.delete(bob.id, gone.id)
    last = await world.graph.log.last()
    answers = [
        await world.ask(document, alice, postId=bad)
        for bad in ("", "nonsense", post_id(post)[:-1], user_id(bob), ids.encode(ids.Kind.POST, 3), post_id(gone))
    ]
    assert await world.graph.log.last() == last
    [payload] = {str(answer.data) for answer in answers}
    problem = {"code": "NOT_FOUND", "field": ["postId"], "message": "This post does not exist.", "params": []}
    assert str([problem]) in payload


@pytest.mark.parametrize("document", [REPOST, UNREPOST])
async def test_reposts_require_a_viewer(world: World, document: str) -> None:
    [bob] = await world.users("bob")
    [post] = await world.post(bob, "hi")
    answer = await world.ask(document, None, postId=post_id(post))
    assert [code for _, code in answer.errors] == ["UNAUTHENTICATED"]


@pytest.mark.counts_reads
async def test_a_home_page_with_originals_takes_four_round_trips(world: World) -> None:
    """The session check and the ids; the posts; the originals and the relationships; the authors of both."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    for n in range(10):
        [post] = await world.post(carol, f"post {n}")
        await repost(world, bob, post)
        await world.post(bob, f"own {n}")
        await world.graph.posts.publish(bob.id, f"quote {n}", quote_of=post.id)
    await world.ask(HOME, alice, first=30)
    await world.graph.timelines.wait_for_rebuilds()
    await world.graph.log.watermark()

    answer = await ask_breadth_first(Executor(schema._schema), world, HOME, alice, first=30)

    assert answer.errors == []
    nodes = answer.data["viewer"]["homeTimeline"]["posts"]["nodes"]
    assert len(nodes) == 30
    assert [node["repostOf"] and node["repostOf"]["author"]["login"] for node in nodes[:3]] == ["carol", None, "carol"]
    assert answer.round_trips == 4
