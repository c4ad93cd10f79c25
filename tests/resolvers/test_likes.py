"""Likes through the API: mutations, counts, lists, and what a viewer likes."""

from typing import Any

import pytest

from graph.model import Post, User
from resolvers import ids
from tests.resolvers.conftest import World, post_id, texts, user_id

LIKE = """mutation Like($postId: ID!) { likePost(input: { postId: $postId }) {
    post { id likesCount viewerHasLiked } userErrors { code field message params { name } } } }"""
UNLIKE = LIKE.replace("likePost", "unlikePost")
LIKES = """query Likes($id: ID!, $first: Int, $after: String, $last: Int, $before: String) { post(id: $id) {
    likesCount viewerHasLiked
    likes(first: $first, after: $after, last: $last, before: $before) {
        totalCount nodes { login } edges { cursor likedAt node { login } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    } } }"""
LIKED = """query Liked($first: Int, $after: String, $last: Int, $before: String) {
    viewer {
      likedPosts(first: $first, after: $after, last: $last, before: $before) {
          nodes { text } edges { cursor likedAt node { text viewerHasLiked } }
          pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    } }"""
HOME = """{ viewer { homeTimeline { entries(first: 30) { nodes {
    id author { login relationship { state } } ... on Post { text likesCount viewerHasLiked } } } } } }"""


async def like(world: World, user: User, *posts: Post) -> None:
    """Like posts in this order."""
    for post in posts:
        await world.graph.likes.like(user.id, post.id)


async def shown(world: World, viewer: User | None, post: Post) -> tuple[int, bool | None, list[str]]:
    """Return the count of likes, whether the viewer likes the post, and the users who do, as the API shows them."""
    found = (await world.ask(LIKES, viewer, id=post_id(post), first=10)).data["post"]
    assert found["likes"]["totalCount"] == found["likesCount"]
    assert [edge["node"] for edge in found["likes"]["edges"]] == found["likes"]["nodes"]
    return found["likesCount"], found["viewerHasLiked"], [user["login"] for user in found["likes"]["nodes"]]


async def test_a_like_and_an_unlike_are_shown_at_once(world: World) -> None:
    """Everybody sees the count. Only the viewer sees their own like. Users can like their own posts."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")

    answer = await world.ask(LIKE, alice, postId=post_id(post))
    liked = {"id": post_id(post), "likesCount": 1, "viewerHasLiked": True}
    assert answer.data["likePost"] == {"post": liked, "userErrors": []}
    await like(world, bob, post)
    assert await shown(world, bob, post) == (2, True, ["bob", "alice"])
    assert await shown(world, None, post) == (2, None, ["bob", "alice"])

    answer = await world.ask(UNLIKE, alice, postId=post_id(post))
    assert answer.data["unlikePost"]["post"] == liked | {"viewerHasLiked": False}
    assert await shown(world, alice, post) == (1, False, ["bob"])


async def test_a_repeated_like_or_unlike_has_the_same_answer_and_writes_nothing(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    for document in (LIKE, UNLIKE):
        first = await world.ask(document, alice, postId=post_id(post))
        last = await world.graph.log.last()

        assert (await world.ask(document, alice, postId=post_id(post))).data == first.data
        assert await world.graph.log.last() == last


@pytest.mark.parametrize("document", [LIKE, UNLIKE])
async def test_unknown_malformed_and_deleted_posts_are_not_found(world: World, document: str) -> None:
    """All get the same answer, and nothing is written."""
    alice, bob = await world.users("alice", "bob")
    post, gone = await world.post(bob, "hi", "bye")
    await world.graph.posts.delete(bob.id, gone.id)
    last = await world.graph.log.last()
    answers = [
        await world.ask(document, alice, postId=bad)
        for bad in ("", "nonsense", post_id(post)[:-1], user_id(bob), ids.encode(ids.Kind.POST, 3), post_id(gone))
    ]
    assert len({str(answer.data) for answer in answers}) == 1
    [payload] = answers[0].data.values()
    assert payload["post"] is None
    assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [("NOT_FOUND", ["postId"])]
    assert await world.graph.log.last() == last


@pytest.mark.parametrize("document", [LIKE, UNLIKE])
async def test_anonymous_requests_cannot_like(world: World, document: str) -> None:
    [bob] = await world.users("bob")
    [post] = await world.post(bob, "hi")
    answer = await world.ask(document, None, postId=post_id(post))
    assert [code for _, code in answer.errors] == ["UNAUTHENTICATED"]


async def test_a_like_takes_four_round_trips_with_the_payload(world: World) -> None:
    """They read the session and the post, append the event, update both sets, and read the payload."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await world.graph.binding.token()

    answer = await world.ask(LIKE, alice, postId=post_id(post))
    assert answer.round_trips == 4
    answer = await world.ask(UNLIKE, alice, postId=post_id(post))
    assert answer.round_trips == 4


@pytest.mark.counts_reads
async def test_a_page_of_home_with_likes_takes_no_round_trip_more(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    await world.follow(alice, bob)
    posts = await world.post(bob, *map(str, range(10)))
    await like(world, alice, *posts[::3])
    await like(world, bob, posts[0])
    await world.ask(HOME, alice)
    await world.graph.timelines.wait_for_rebuilds()

    answer = await world.ask(HOME, alice)

    nodes = answer.data["viewer"]["homeTimeline"]["entries"]["nodes"]
    assert {node["text"]: (node["likesCount"], node["viewerHasLiked"]) for node in nodes} == {
        text: {"0": (2, True), "3": (1, True), "6": (1, True), "9": (1, True)}.get(text, (0, False))
        for text in map(str, range(10))
    }
    without = await world.ask(HOME.replace("likesCount viewerHasLiked", ""), alice)
    assert answer.round_trips == without.round_trips


async def pages(world: World, document: str, viewer: User, path: tuple[str, ...], **variables: Any) -> list[Any]:
    """Return the edges of a whole list, newest first, read from both ends in pages of two."""
    downwards: list[Any] = []
    upwards: list[Any] = []
    for window, found in ({"first": 2}, downwards), ({"last": 2}, upwards):
        cursor: dict[str, Any] = {}
        while True:
            page = (await world.ask(document, viewer, **variables, **window, **cursor)).data
            for name in path:
                page = page[name]
            if "first" in window:
                found += page["edges"]
                cursor = {"after": page["pageInfo"]["endCursor"]}
                more = page["pageInfo"]["hasNextPage"]
            else:
                found[:0] = page["edges"]
                cursor = {"before": page["pageInfo"]["startCursor"]}
                more = page["pageInfo"]["hasPreviousPage"]
            if not more:
                break
            assert len(page["edges"]) == 2
    assert downwards == upwards
    return downwards


async def test_likes_are_read_in_pages_from_both_ends(world: World) -> None:
    """The newest like comes first, and each like has its time."""
    bob, *fans = await world.users("bob", *(f"fan_{n}" for n in range(5)))
    [post] = await world.post(bob, "hi")
    for fan in fans:
        await like(world, fan, post)
    edges = await pages(world, LIKES, bob, ("post", "likes"), id=post_id(post))
    assert [edge["node"]["login"] for edge in edges] == [f"fan_{n}" for n in range(4, -1, -1)]
    assert sorted(edge["likedAt"] for edge in edges) == [edge["likedAt"] for edge in edges[::-1]]


async def test_liked_posts_are_ordered_by_the_like_and_lack_deleted_posts(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    posts = await world.post(bob, *map(str, range(7)))
    await like(world, alice, *(posts[n] for n in (3, 0, 6, 1, 5)))
    await world.graph.posts.delete(bob.id, posts[6].id)

    edges = await pages(world, LIKED, alice, ("viewer", "likedPosts"))

    assert [edge["node"] for edge in edges] == [{"text": text, "viewerHasLiked": True} for text in "5103"]
    page = (await world.ask(LIKED, alice, first=2)).data["viewer"]["likedPosts"]
    assert texts(page) == [node["text"] for node in page["nodes"]] == ["5", "1"]
    assert (await world.ask(LIKED, bob, first=2)).data["viewer"]["likedPosts"]["edges"] == []
    assert (await world.ask(LIKED, None, first=2)).data == {"viewer": None}


async def test_a_deleted_post_loses_its_likes(world: World) -> None:
    """No data about the likes is left with the post."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await like(world, alice, post)
    await world.graph.posts.delete(bob.id, post.id)

    for key in (f"likes:{{{post.id}}}", f"likes:{{{post.id}}}:gone", f"likes:{{{post.id}}}:cold"):
        assert await world.graph.store.run("EXISTS", key) == 0
    assert await world.graph.store.run("HKEYS", f"post:{{{post.id}}}") == ["deleted"]


@pytest.mark.parametrize("arguments", [{}, {"first": 0}, {"first": 101}, {"first": 1, "after": "post-1"}])
async def test_bad_paging_is_an_error_of_the_field(world: World, arguments: dict[str, Any]) -> None:
    [bob] = await world.users("bob")
    [post] = await world.post(bob, "hi")
    for document, path in ((LIKES, ("post", "likes")), (LIKED, ("viewer", "likedPosts"))):
        answer = await world.ask(document, bob, id=post_id(post), **arguments)
        assert answer.errors == [(path, "BAD_USER_INPUT")]
