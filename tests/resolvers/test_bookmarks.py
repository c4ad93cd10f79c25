"""Bookmarks through the API: mutations, what the viewer has bookmarked, and the viewer's list."""

from graph.model import Post, User
from tests.resolvers.conftest import World, post_id

BOOKMARK = """mutation Bookmark($postId: ID!) { bookmarkPost(input: { postId: $postId }) {
    post { text viewerHasBookmarked } userErrors { code field } } }"""
REMOVE = BOOKMARK.replace("bookmarkPost", "removeBookmark")
BOOKMARKS = """query Bookmarks($first: Int!, $after: String) { viewer { bookmarks(first: $first, after: $after) {
    nodes { text } edges { cursor bookmarkedAt node { text viewerHasBookmarked } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""


async def bookmark(world: World, user: User, *posts: Post) -> None:
    """Bookmark posts in this order."""
    for post in posts:
        payload = (await world.ask(BOOKMARK, user, postId=post_id(post))).data["bookmarkPost"]
        assert payload == {"post": {"text": post.text, "viewerHasBookmarked": True}, "userErrors": []}


async def test_a_bookmark_is_shown_to_its_user_only(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await bookmark(world, alice, post)
    document = (
        "query ($id: ID!) { post(id: $id) { viewerHasBookmarked } viewer { bookmarks(first: 1) { nodes { text } } } }"
    )

    for viewer, marked, listed in (
        (alice, True, {"nodes": [{"text": "hi"}]}),
        (bob, False, {"nodes": []}),
        (None,) * 3,
    ):
        answer = await world.ask(document, viewer, id=post_id(post))
        assert answer.data == {"post": {"viewerHasBookmarked": marked}, "viewer": listed and {"bookmarks": listed}}

    removed = (await world.ask(REMOVE, alice, postId=post_id(post))).data["removeBookmark"]
    assert removed == {"post": {"text": "hi", "viewerHasBookmarked": False}, "userErrors": []}


async def test_bookmarks_are_paged_newest_first(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    first, second, third = await world.post(bob, "1", "2", "3")
    await bookmark(world, alice, second, third, first)

    page = (await world.ask(BOOKMARKS, alice, first=2)).data["viewer"]["bookmarks"]
    assert [node["text"] for node in page["nodes"]] == ["1", "3"]
    assert [edge["node"] for edge in page["edges"]] == [{"text": text, "viewerHasBookmarked": True} for text in "13"]
    assert page["edges"][0]["bookmarkedAt"] >= page["edges"][1]["bookmarkedAt"]
    assert (page["pageInfo"]["hasNextPage"], page["pageInfo"]["endCursor"]) == (True, page["edges"][1]["cursor"])
    rest = (await world.ask(BOOKMARKS, alice, first=2, after=page["pageInfo"]["endCursor"])).data["viewer"]["bookmarks"]
    assert ([node["text"] for node in rest["nodes"]], rest["pageInfo"]["hasNextPage"]) == (["2"], False)


async def test_a_malformed_id_is_not_found(world: World) -> None:
    [alice] = await world.users("alice")
    for document, name in ((BOOKMARK, "bookmarkPost"), (REMOVE, "removeBookmark")):
        answer = await world.ask(document, alice, postId="nonsense")
        assert answer.data[name] == {"post": None, "userErrors": [{"code": "NOT_FOUND", "field": ["postId"]}]}


async def test_bookmarks_of_a_page_cost_no_round_trip_of_their_own(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    await world.post(bob, *"123")
    document = '{ user(by: { login: "bob" }) { timeline { entries(first: 3) { nodes { id ... on Post { %s } } } } } }'
    await world.ask(document % "", alice)  # reads what later requests know
    without = await world.ask(document % "viewerHasLiked", alice)
    assert (await world.ask(document % "viewerHasLiked viewerHasBookmarked", alice)).round_trips == without.round_trips
