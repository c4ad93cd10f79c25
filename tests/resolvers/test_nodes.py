"""Refetching by global id, and what each viewer can see."""

from graph.model import User
from resolvers import ids
from tests.resolvers.conftest import World, post_id, repost_id, user_id

NODE = """query ($id: ID!) { node(id: $id) { __typename id
    ... on User { login } ... on Post { text } ... on Repost { author { login } post { text } }
    ... on Timeline { kind entries(first: 5) { nodes { ... on Post { text } ... on Repost { post { text } } } } }
    ... on Relationship { state } } }"""


async def ids_of(world: World, viewer: User, subject: User) -> dict[str, str]:
    answer = await world.ask(
        """query ($id: ID!) { viewer { homeTimeline { id } }
            user(by: {id: $id}) { timeline { id } relationship { id } } }""",
        viewer,
        id=user_id(subject),
    )
    return {
        "home": answer.data["viewer"]["homeTimeline"]["id"],
        "timeline": answer.data["user"]["timeline"]["id"],
        "relationship": answer.data["user"]["relationship"]["id"],
    }


async def test_every_type_can_be_refetched(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    await world.follow(alice, bob)
    [old] = await world.post(alice, "old")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(bob.id), bob.id, old.id)
    [post] = await world.post(bob, "hello")
    entries = {"nodes": [{"text": "hello"}, {"post": {"text": "old"}}]}
    found = await ids_of(world, alice, bob)
    expected: dict[str, dict[str, object]] = {
        user_id(bob): {"__typename": "User", "login": "bob"},
        post_id(post): {"__typename": "Post", "text": "hello"},
        repost_id(repost): {"__typename": "Repost", "author": {"login": "bob"}, "post": {"text": "old"}},
        found["home"]: {
            "__typename": "Timeline",
            "kind": "HOME",
            "entries": {"nodes": [*entries["nodes"], {"text": "old"}]},
        },
        found["timeline"]: {"__typename": "Timeline", "kind": "USER", "entries": entries},
        found["relationship"]: {"__typename": "Relationship", "state": "FOLLOWING"},
    }
    for id, node in expected.items():
        assert (await world.ask(NODE, alice, id=id)).data == {"node": {"id": id, **node}}


async def test_home_timelines_and_relationships_of_others_are_null(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    found = await ids_of(world, alice, bob)
    for viewer in (bob, None):
        for name in ("home", "relationship"):
            answer = await world.ask(NODE, viewer, id=found[name])
            assert (answer.data, answer.errors) == ({"node": None}, [])
        assert (await world.ask(NODE, viewer, id=found["timeline"])).data["node"]["kind"] == "USER"


async def test_an_unknown_id_is_null(world: World) -> None:
    [alice] = await world.users("alice")
    unknown = 12345
    for kind, *numbers in (
        (ids.Kind.USER, unknown),
        (ids.Kind.POST, unknown),
        (ids.Kind.REPOST, unknown),
        (ids.Kind.USER_TIMELINE, unknown),
        (ids.Kind.HOME_TIMELINE, unknown),
        (ids.Kind.RELATIONSHIP, alice.id, unknown),
    ):
        answer = await world.ask(NODE, alice, id=ids.encode(kind, *numbers))
        assert (answer.data, answer.errors) == ({"node": None}, [])


async def test_post_of_another_kind_of_id_is_null(world: World) -> None:
    """`post` is null for the id of a user or a repost, and an error for a malformed id."""
    [alice] = await world.users("alice")
    [post] = await world.post(alice, "hello")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, post.id)
    document = "query ($id: ID!) { post(id: $id) { text } }"
    for id_ in (user_id(alice), repost_id(repost)):
        assert (await world.ask(document, id=id_)).data == {"post": None}
    assert (await world.ask(document, id="x")).errors == [(("post",), "BAD_USER_INPUT")]


async def test_an_id_with_the_number_of_another_kind_is_null(world: World) -> None:
    """A post is not found by its number as a repost, nor a repost by its number as a post."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hello")
    repost = await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, post.id)
    quote = await world.graph.posts.publish(alice.id, "quote", quote_of=post.id)
    forged = [
        ids.encode(ids.Kind.POST, repost.id),
        ids.encode(ids.Kind.REPOST, post.id),
        ids.encode(ids.Kind.REPOST, quote.id),
    ]
    document = """query ($id: ID!, $ids: [ID!]!) {
        post(id: $id) { text } node(id: $id) { __typename } nodes(ids: $ids) { __typename } }"""
    true = [repost_id(repost), post_id(post), post_id(quote)]
    types = [{"__typename": name} for name in ("Repost", "Post", "Post")]
    for viewer in (alice, bob, None):
        for id_ in forged:
            answer = await world.ask(document, viewer, id=id_, ids=[*forged, *true])
            assert answer.errors == []
            assert answer.data == {"post": None, "node": None, "nodes": [None, None, None, *types]}


async def test_nodes_are_in_the_order_of_the_ids(world: World) -> None:
    """Ids can be mixed and repeated, and a malformed one fails alone."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hello")
    wanted = [user_id(bob), post_id(post), "x", ids.encode(ids.Kind.USER, 1), user_id(alice), user_id(bob)]
    answer = await world.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=wanted)
    assert answer.data["nodes"] == [
        {"id": user_id(bob)},
        {"id": post_id(post)},
        None,
        None,
        {"id": user_id(alice)},
        {"id": user_id(bob)},
    ]
    assert answer.errors == [(("nodes", 2), "BAD_USER_INPUT")]


async def test_nodes_takes_at_most_a_hundred_ids(world: World) -> None:
    some = [ids.encode(ids.Kind.USER, n) for n in range(1, 102)]
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    assert (await world.ask(document, ids=some[:100])).data == {"nodes": [None] * 100}
    assert (await world.ask(document, ids=some)).errors == [(("nodes",), "BAD_USER_INPUT")]
