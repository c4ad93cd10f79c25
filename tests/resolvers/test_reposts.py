"""Reposts through the API: mutations, counts, timelines, and what a viewer has reposted."""

from typing import Any

import pytest

from executor import Executor
from graph.model import Post, User, time_of
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema import schema
from tests.resolvers.conftest import World, post_id, repost_id, user_id
from tests.resolvers.test_round_trips import ask_breadth_first
from tests.support.graph_worlds import archive_log

REPOST = """mutation Repost($postId: ID!) { repostPost(input: { postId: $postId }) {
    repost { id createdAt post { id text repostsCount viewerHasReposted } author { login postsCount } }
    timelineEdge { cursor node { __typename id ... on Repost { post { id } } } }
    userErrors { code field message params { name } } } }"""
UNREPOST = """mutation Unrepost($postId: ID!) { unrepostPost(input: { postId: $postId }) {
    deletedRepostId post { id repostsCount viewerHasReposted }
    userErrors { code field message params { name } } } }"""
POST = """query Post($id: ID!) { post(id: $id) { text repostsCount viewerHasReposted
    reposts(first: 10) { nodes { id post { text } author { login } } } } }"""
HOME = """query Home($first: Int!) { viewer { homeTimeline { entries(first: $first) { nodes {
    __typename id author { login relationship { state } }
    ... on Post { text repostsCount viewerHasReposted quotedPost { id text repostsCount author { login name } } }
    ... on Repost { post { id text repostsCount viewerHasReposted author { login name } } } } } } } }"""


async def repost(world: World, user: User, post: Post) -> Any:
    """Repost a post, and return the payload."""
    return (await world.ask(REPOST, user, postId=post_id(post))).data["repostPost"]


async def test_a_repost_is_shown_at_once(world: World) -> None:
    """The payload has the new counts and an edge for timelines."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")

    payload = await repost(world, alice, post)

    assert payload["userErrors"] == []
    number = ids.number(ids.Kind.REPOST, payload["repost"]["id"])
    assert number is not None
    assert payload["repost"] | {"id": ""} == {
        "id": "",
        "createdAt": time_of(number).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "post": {"id": post_id(post), "text": "hi", "repostsCount": 1, "viewerHasReposted": True},
        "author": {"login": "alice", "postsCount": 1},
    }
    node = {"__typename": "Repost", "id": payload["repost"]["id"], "post": {"id": post_id(post)}}
    assert payload["timelineEdge"] == {"cursor": encode_cursor(CursorKind.POST, number), "node": node}
    found = (await world.ask(POST, bob, id=post_id(post))).data["post"]
    entry = {"id": payload["repost"]["id"], "post": {"text": "hi"}, "author": {"login": "alice"}}
    assert found == {"text": "hi", "repostsCount": 1, "viewerHasReposted": False, "reposts": {"nodes": [entry]}}
    assert (await world.ask(POST, None, id=post_id(post))).data["post"]["viewerHasReposted"] is None
    own = (await world.ask(POST, alice, id=post_id(post))).data["post"]
    assert own["viewerHasReposted"] is True


async def test_reposts_and_quotes_of_a_post_are_lists_of_their_own(world: World) -> None:
    """Both are newest first."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    await world.graph.posts.publish(bob.id, "look", quote_of=post.id)
    first = await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, post.id)
    await world.graph.posts.publish(alice.id, "see", quote_of=post.id)
    second = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    query = """query ($id: ID!) { post(id: $id) { repostsCount quotesCount
        reposts(first: 9) { nodes { id } } quotes(first: 9) { nodes { text } } } }"""

    found = (await world.ask(query, alice, id=post_id(post))).data["post"]
    assert (found["repostsCount"], found["quotesCount"]) == (2, 2)
    assert [node["id"] for node in found["reposts"]["nodes"]] == [repost_id(second), repost_id(first)]
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
    assert (await world.ask(UNREPOST, alice, postId=post_id(post))).data["unrepostPost"] == answer
    assert await world.graph.log.last() == last


ON_POSTS = {
    "likePost": "{ postId: $id }",
    "unlikePost": "{ postId: $id }",
    "bookmarkPost": "{ postId: $id }",
    "removeBookmark": "{ postId: $id }",
    "repostPost": "{ postId: $id }",
    "unrepostPost": "{ postId: $id }",
    "deletePost": "{ postId: $id }",
    "publishPost reply": '{ text: "hi", replyToId: $id }',
    "publishPost quote": '{ text: "hi", quotedPostId: $id }',
    "report": "{ subjectId: $id, reason: SPAM }",
}
"""The inputs of the mutations that take the id of a post."""


@pytest.mark.parametrize("name", ON_POSTS)
async def test_no_mutation_takes_a_repost_for_a_post(world: World, name: str) -> None:
    """The reposter, the author and others can use neither the repost's own id nor a post id with its number."""
    users = alice, bob, _ = await world.users("alice", "bob", "carol")
    [post] = await world.post(bob, "hi")
    view = world.graph.visibility.of(alice.id)
    held = await world.graph.reposts.repost(view, alice.id, post.id)
    undone = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    await world.graph.reposts.unrepost(world.graph.visibility.of(bob.id), bob.id, post.id)
    last = await world.graph.log.last()
    mutation, _, variant = name.partition(" ")
    document = f"""mutation ($id: ID!) {{ payload: {mutation}(input: {ON_POSTS[name]}) {{
        userErrors {{ code field }} }} }}"""
    field = {"reply": "replyToId", "quote": "quotedPostId"}.get(variant, "subjectId" if name == "report" else "postId")

    for id_ in (repost_id(held), repost_id(undone), *(ids.encode(ids.Kind.POST, each.id) for each in (held, undone))):
        for user in users:
            answer = await world.ask(document, user, id=id_)
            assert answer.data["payload"] == {"userErrors": [{"code": "NOT_FOUND", "field": [field]}]}, ids.decode(id_)

    assert await world.graph.log.last() == last
    assert await world.graph.reposts.unrepost(view, alice.id, post.id) == held.id


TIMELINES = """query ($bob: ID!, $list: ID!) {
    viewer { homeTimeline { entries(first: 9) { ...Page } } }
    user(by: { id: $bob }) { timeline { entries(first: 9) { ...Page } } }
    node(id: $list) { ... on UserList { timeline { entries(first: 9) { ...Page } } } }
    publicTimeline { entries(first: 9) { ...Page } } }
    fragment Page on TimelineConnection { nodes { ...Item } edges { node { ...Item } } }
    fragment Item on TimelineItem { __typename id author { login } createdAt ... on Post { text }
        ... on Repost { post { id text author { login } } } }"""


def pages(data: Any) -> list[list[dict[str, Any]]]:
    """Return the entries of the home timeline, the user's timeline, the list's and the public one."""
    timelines = [data["viewer"]["homeTimeline"], *(data[name]["timeline"] for name in ("user", "node"))]
    found = [timeline["entries"] for timeline in [*timelines, data["publicTimeline"]]]
    assert all([edge["node"] for edge in page["edges"]] == page["nodes"] for page in found)
    return [page["nodes"] for page in found]


async def test_timelines_have_posts_and_reposts(world: World) -> None:
    """The home timeline, a user's and a list's have reposts; the public timeline has posts only."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    [post] = await world.post(carol, "hi")
    [own] = await world.post(bob, "own")
    made = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    mine = await world.graph.lists.create(alice.id, "list", [bob.id])
    await world.graph.worker().drain()
    await archive_log(world.graph)
    variables = {"bob": user_id(bob), "list": ids.encode(ids.Kind.LIST, mine.id)}

    answer = await world.ask(TIMELINES, alice, **variables)

    assert answer.errors == []
    home, user, of_list, public = pages(answer.data)
    for page in (home, user, of_list):
        assert [(each["__typename"], each["id"]) for each in page] == [
            ("Repost", repost_id(made)),
            ("Post", post_id(own)),
        ]
        assert page[0]["author"] == {"login": "bob"}
        assert page[0]["post"] == {"id": post_id(post), "text": "hi", "author": {"login": "carol"}}
        assert [each["createdAt"] for each in page] == [
            time_of(each.id).isoformat(timespec="milliseconds").replace("+00:00", "Z") for each in (made, own)
        ]
    assert [each["__typename"] for each in public] == ["Post", "Post"]


HIDES = ("a block by the viewer", "a block by the author", "a suspension", "a deletion")


@pytest.mark.parametrize("hide", HIDES)
async def test_a_hidden_post_takes_its_reposts_with_it(world: World, hide: str) -> None:
    """The reposts are in no timeline and no nodes. A quote stays, without the post."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    [post] = await world.post(carol, "hi")
    made = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, post.id)
    quote = await world.graph.posts.publish(bob.id, "look", quote_of=post.id)
    mine = await world.graph.lists.create(alice.id, "list", [bob.id])
    variables = {"bob": user_id(bob), "list": ids.encode(ids.Kind.LIST, mine.id)}
    document = """query ($ids: [ID!]!) { nodes(ids: $ids) {
        ... on Post { text quotedPost { text } } ... on Repost { post { text } } } }"""
    wanted = [post_id(post), repost_id(made), post_id(quote)]
    shown = {"text": "look", "quotedPost": {"text": "hi"}}
    assert (await world.ask(document, alice, ids=wanted)).data["nodes"][1:] == [{"post": {"text": "hi"}}, shown]
    graph = world.graph
    match hide:
        case "a block by the viewer":
            await graph.blocks.block(alice.id, carol.id)
        case "a block by the author":
            await graph.blocks.block(carol.id, alice.id)
        case "a suspension":
            await graph.moderation.suspend(carol.id)
        case _:
            await graph.posts.delete(carol.id, post.id)

    assert (await world.ask(document, alice, ids=wanted)).data["nodes"] == [None, None, shown | {"quotedPost": None}]
    answer = await world.ask(TIMELINES, alice, **variables)
    assert answer.errors == []
    for page in pages(answer.data)[:3]:
        assert [each["id"] for each in page] == [post_id(quote)]


async def test_a_quote_is_no_repost(world: World) -> None:
    """It is a post in all lists, and its author has not reposted the post."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hi")
    quote = await world.graph.posts.publish(alice.id, "look", quote_of=post.id)
    document = """query ($post: ID!, $quote: ID!) {
        post(id: $post) { viewerHasReposted reposts(first: 9) { nodes { id } } }
        node(id: $quote) { __typename ... on Post { quotedPostId viewerHasReposted } } }"""

    answer = await world.ask(document, alice, post=post_id(post), quote=post_id(quote))

    assert answer.data == {
        "post": {"viewerHasReposted": False, "reposts": {"nodes": []}},
        "node": {"__typename": "Post", "quotedPostId": post_id(post), "viewerHasReposted": False},
    }


async def test_the_reposts_of_a_post_are_paged(world: World) -> None:
    """Their cursors are valid in timelines, too."""
    users = await world.users("alice", "bob", "carol")
    [post] = await world.post(users[0], "hi")
    made = [await world.graph.reposts.repost(world.graph.visibility.of(each.id), each.id, post.id) for each in users]
    document = """query ($id: ID!, $after: String) { post(id: $id) { reposts(first: 2, after: $after) {
        nodes { id } edges { cursor node { id author { login } } } pageInfo { hasNextPage endCursor } } } }"""

    first = (await world.ask(document, None, id=post_id(post))).data["post"]["reposts"]
    assert [edge["node"]["author"]["login"] for edge in first["edges"]] == ["carol", "bob"]
    assert [edge["cursor"] for edge in first["edges"]] == [
        encode_cursor(CursorKind.POST, each.id) for each in made[:0:-1]
    ]
    assert first["pageInfo"] == {"hasNextPage": True, "endCursor": first["edges"][1]["cursor"]}
    after = first["pageInfo"]["endCursor"]
    rest = (await world.ask(document, None, id=post_id(post), after=after)).data["post"]["reposts"]
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == ([{"id": repost_id(made[0])}], False)


@pytest.mark.parametrize("document", [REPOST, UNREPOST])
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
    """They read the session and the ids; the posts; the originals and the relationships; and the authors of both."""
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
    nodes = answer.data["viewer"]["homeTimeline"]["entries"]["nodes"]
    assert len(nodes) == 30
    assert [node["__typename"] for node in nodes] == ["Post", "Post", "Repost"] * 10
    quote, own, repost_ = nodes[:3]
    author = {"login": "carol", "name": "Carol"}
    assert (quote["quotedPost"]["author"], own["quotedPost"], repost_["post"]["author"]) == (author, None, author)
    assert answer.round_trips == 4
