"""Replies, threads and quotes over the API, and their round trips."""

import pytest

from executor import Executor
from resolvers import ids
from schema import schema
from tests.resolvers.conftest import World, post_id, texts
from tests.resolvers.test_round_trips import ask_breadth_first

PUBLISH = """mutation Publish($input: PublishPostInput!) { publishPost(input: $input) {
    post { id text replyToId quotedPostId replyTo { text repliesCount } quotedPost { text repostsCount quotesCount } }
    postEdge { cursor node { id } } timelineEdge { cursor node { id } }
    userErrors { code field }
} }"""

DELETE = """mutation Delete($id: ID!) { deletePost(input: {postId: $id}) {
    deletedPostId replyTo { id repliesCount } quotedPost { id quotesCount } userErrors { code }
} }"""

THREAD = """query Thread($id: ID!, $first: Int!) { post(id: $id) {
    id text repliesCount repostsCount author { login }
    threadRoot { id author { login } }
    ancestors { id text repliesCount author { login } }
    liveCursor(first: $first)
    replies(first: $first) { edges { cursor node { id text repliesCount author { login } } } pageInfo { hasNextPage } }
} }"""

HOME = """query Home($first: Int!) { viewer { homeTimeline { liveCursor entries(first: $first) { nodes {
    id author { login relationship { state } }
    ... on Post { text repliesCount repostsCount
        quotedPost { id text repliesCount author { id login relationship { state } } } }
} } } } }"""

REPLIES = """query Replies($login: String!) { user(by: {login: $login}) { repliesTimeline {
    id kind liveCursor entries(first: 10) { nodes { ... on Post { text } } }
} timeline { entries(first: 10) { nodes { ... on Post { text } } } } } }"""


async def test_a_reply_and_a_quote_are_published(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [root] = await world.post(alice, "root")
    target = post_id(root)

    answer = await world.ask(PUBLISH, bob, input={"text": "hi", "replyToId": target, "quotedPostId": target})

    assert answer.errors == []
    payload = answer.data["publishPost"]
    assert payload["userErrors"] == []
    assert payload["post"]["replyToId"] == payload["post"]["quotedPostId"] == target
    assert payload["post"]["replyTo"] == {"text": "root", "repliesCount": 1}
    assert payload["post"]["quotedPost"] == {"text": "root", "repostsCount": 0, "quotesCount": 1}
    assert payload["postEdge"]["node"]["id"] == payload["post"]["id"]
    assert payload["timelineEdge"] is None


@pytest.mark.parametrize("field", ["replyToId", "quotedPostId"])
async def test_malformed_unknown_and_deleted_targets_are_not_found(world: World, field: str) -> None:
    [alice] = await world.users("alice")
    [gone] = await world.post(alice, "gone")
    await world.graph.posts.delete(alice.id, gone.id)
    user = ids.encode(ids.Kind.USER, alice.id)

    for target in (post_id(gone), user, "", "x" * 200, ids.encode(ids.Kind.POST, 7)):
        answer = await world.ask(PUBLISH, alice, input={"text": "hi", field: target})
        assert answer.data["publishPost"]["post"] is None
        assert answer.data["publishPost"]["userErrors"] == [{"code": "NOT_FOUND", "field": [field]}]


async def test_deleting_a_reply_returns_its_targets_with_their_new_counts(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [root] = await world.post(alice, "root")
    reply = await world.graph.posts.publish(bob.id, "hi", reply_to=root.id, quote_of=root.id)

    payload = (await world.ask(DELETE, bob, id=post_id(reply))).data["deletePost"]

    assert payload["replyTo"] == {"id": post_id(root), "repliesCount": 0}
    assert payload["quotedPost"] == {"id": post_id(root), "quotesCount": 0}
    again = (await world.ask(DELETE, bob, id=post_id(reply))).data["deletePost"]
    assert again == {"deletedPostId": post_id(reply), "replyTo": None, "quotedPost": None, "userErrors": []}


@pytest.mark.counts_reads
async def test_a_thread_with_ancestors_and_replies_takes_four_round_trips(world: World) -> None:
    """This includes the session check. The live cursor takes none."""
    alice, bob = await world.users("alice", "bob")
    chain = await world.post(alice, "root")
    for n in range(22):
        author = (alice, bob)[n % 2]
        chain.append(await world.graph.posts.publish(author.id, f"reply {n}", reply_to=chain[-1].id))
    for n in range(20):
        await world.graph.posts.publish(bob.id, f"answer {n}", reply_to=chain[-1].id)

    executor = Executor(schema._schema)
    answer = await ask_breadth_first(executor, world, THREAD, alice, id=post_id(chain[-1]), first=15)

    assert (answer.errors, executor.fallen_back) == ([], 0)
    post = answer.data["post"]
    assert post["threadRoot"] == {"id": post_id(chain[0]), "author": {"login": "alice"}}
    assert [each["id"] for each in post["ancestors"]] == [post_id(each) for each in chain[-21:-1]]
    assert {each["repliesCount"] for each in post["ancestors"]} == {1}
    assert post["repliesCount"] == 20
    assert [edge["node"]["text"] for edge in post["replies"]["edges"]] == [f"answer {n}" for n in range(19, 4, -1)]
    assert post["replies"]["pageInfo"]["hasNextPage"]
    assert answer.round_trips == 4


@pytest.mark.counts_reads
async def test_a_home_page_with_quoted_posts_takes_four_round_trips(world: World) -> None:
    """This includes the authors, the counts, the originals and their authors."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.graph.follows.follow(alice.id, [bob.id])
    originals = await world.post(carol, *(f"original {n}" for n in range(30)))
    for n in range(30):
        await world.graph.posts.publish(bob.id, f"quote {n}", quote_of=originals[n].id)
    await world.ask(HOME, alice, first=30)
    await world.graph.timelines.wait_for_rebuilds()

    executor = Executor(schema._schema)
    answer = await ask_breadth_first(executor, world, HOME, alice, first=30)

    assert (answer.errors, executor.fallen_back) == ([], 0)
    nodes = answer.data["viewer"]["homeTimeline"]["entries"]["nodes"]
    assert [node["quotedPost"]["text"] for node in nodes] == [f"original {n}" for n in range(29, -1, -1)]
    assert {node["quotedPost"]["author"]["login"] for node in nodes} == {"carol"}
    assert answer.round_trips == 4


async def test_deleted_posts_of_a_thread_are_null(world: World) -> None:
    """Their replies stay, and still refer to them by id."""
    alice, bob = await world.users("alice", "bob")
    [root] = await world.post(alice, "root")
    middle = await world.graph.posts.publish(bob.id, "middle", reply_to=root.id, quote_of=root.id)
    leaf = await world.graph.posts.publish(alice.id, "leaf", reply_to=middle.id, quote_of=middle.id)
    await world.graph.posts.delete(bob.id, middle.id)
    query = """query ($id: ID!) { post(id: $id) {
        replyToId replyTo { id } threadRoot { id } ancestors { id } quotedPostId quotedPost { id } } }"""

    found = (await world.ask(query, bob, id=post_id(leaf))).data["post"]

    assert found == {
        "replyToId": post_id(middle),
        "replyTo": None,
        "threadRoot": {"id": post_id(root)},
        "ancestors": [{"id": post_id(root)}, None],
        "quotedPostId": post_id(middle),
        "quotedPost": None,
    }
    plain = (await world.ask(query, bob, id=post_id(root))).data["post"]
    assert plain == dict.fromkeys(found) | {"ancestors": []}


async def test_the_quotes_of_a_post_are_paged(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [root] = await world.post(alice, "root")
    for n in range(3):
        await world.graph.posts.publish(bob.id, f"quote {n}", quote_of=root.id)
    query = """query ($id: ID!, $after: String) { post(id: $id) { quotesCount quotes(first: 2, after: $after) {
        nodes { text } edges { node { text } } pageInfo { endCursor hasNextPage } } } }"""

    first = (await world.ask(query, None, id=post_id(root))).data["post"]
    second = (await world.ask(query, None, id=post_id(root), after=first["quotes"]["pageInfo"]["endCursor"])).data

    assert first["quotesCount"] == 3
    assert texts(first["quotes"]) == ["quote 2", "quote 1"]
    assert texts(second["post"]["quotes"]) == ["quote 0"]


async def test_replies_have_a_timeline_of_their_own(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [root] = await world.post(alice, "root")
    await world.graph.posts.publish(alice.id, "own", reply_to=root.id)
    await world.graph.posts.publish(bob.id, "foreign", reply_to=root.id)

    found = {login: (await world.ask(REPLIES, None, login=login)).data["user"] for login in ("alice", "bob")}

    shown = {
        login: [[node["text"] for node in user[name]["entries"]["nodes"]] for name in ("repliesTimeline", "timeline")]
        for login, user in found.items()
    }
    assert shown == {"alice": [["own"], ["own", "root"]], "bob": [["foreign"], []]}
    timeline = found["bob"]["repliesTimeline"]
    assert timeline["kind"] == "REPLIES"
    node = """query ($id: ID!) { node(id: $id) {
        ... on Timeline { id kind entries(first: 1) { nodes { ... on Post { text } } } } } }"""
    again = (await world.ask(node, None, id=timeline["id"])).data["node"]
    assert again == {"id": timeline["id"], "kind": "REPLIES", "entries": {"nodes": [{"text": "foreign"}]}}


async def test_a_reply_has_an_edge_of_timelines_only_if_they_have_it(world: World) -> None:
    """Timelines leave out replies to others."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "a thread")
    query = """mutation ($id: ID!) { publishPost(input: { text: "a reply", replyToId: $id }) {
        postEdge { node { text } } timelineEdge { node { __typename } } userErrors { code } } }"""

    by_bob, by_alice = [(await world.ask(query, who, id=post_id(post))).data["publishPost"] for who in (bob, alice)]

    assert by_bob == {"postEdge": {"node": {"text": "a reply"}}, "timelineEdge": None, "userErrors": []}
    assert by_alice["timelineEdge"] == {"node": {"__typename": "Post"}}
