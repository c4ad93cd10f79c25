"""Entities of posts over the API."""

from typing import Any

import orjson
import pytest
from graphql import parse

from executor import Executor, Operation
from graph import keys
from graph.feed.updates import PostAdded
from graph.log.events import Blocked
from graph.visibility.views import FEW
from resolvers.context import Context
from schema import schema
from server.operations.live_events import LiveEvents
from tests.resolvers.conftest import World, post_id, user_id
from tests.resolvers.test_blocks import DIRECTIONS

ENTITIES = """entities { __typename start end ... on MentionEntity { user { id login } } ... on HashtagEntity { tag }
    ... on LinkEntity { url } }"""
POST = f"query ($id: ID!) {{ post(id: $id) {{ {ENTITIES} }} }}"
HOME = f"""query ($n: Int!) {{ viewer {{ homeTimeline {{ entries(first: $n) {{ nodes {{
    author {{ login followersCount relationship {{ state }} }} ... on Post {{ text {ENTITIES} }} }} }} }} }} }}"""


def mention(start: int, end: int, user: Any) -> dict[str, Any]:
    return {"__typename": "MentionEntity", "start": start, "end": end, "user": user}


async def test_entities_of_a_post(world: World) -> None:
    """Entities are in order, with the user, the folded tag and the URL as written."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "😀 @Bob ＃Ｆｏｏ https://Example.org/a. @nobody")

    answer = await world.ask(POST, id=post_id(post))

    assert answer.errors == []
    assert answer.data["post"]["entities"] == [
        mention(3, 7, {"id": user_id(bob), "login": "bob"}),
        {"__typename": "HashtagEntity", "start": 8, "end": 12, "tag": "foo"},
        {"__typename": "LinkEntity", "start": 13, "end": 34, "url": "https://Example.org/a"},
    ]


async def test_a_publication_returns_its_entities(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    document = (
        f"""mutation {{ publishPost(input: {{text: "@bob"}}) {{ post {{ {ENTITIES} }} userErrors {{ code }} }} }}"""
    )

    answer = await world.ask(document, alice)

    assert answer.data["publishPost"] == {
        "post": {"entities": [mention(0, 4, {"id": user_id(bob), "login": "bob"})]},
        "userErrors": [],
    }


async def test_a_mentioned_user_who_is_gone_is_null(world: World) -> None:
    """The entity remains."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(alice, "hi @bob")
    await world.graph.store.run("UNLINK", keys.user(bob.id))

    answer = await world.ask(POST, id=post_id(post))

    assert (answer.data["post"]["entities"], answer.errors) == ([mention(3, 7, None)], [])


async def test_too_many_entities_are_refused(world: World) -> None:
    [alice] = await world.users("alice")
    document = """mutation ($text: String!) { publishPost(input: {text: $text}) { post { id }
        userErrors { code field params { name value } } } }"""

    answer = await world.ask(document, alice, text="#a " * 51)

    [error] = answer.data["publishPost"]["userErrors"]
    assert (error["code"], error["field"]) == ("TOO_MANY", ["text"])


@pytest.mark.counts_reads
async def test_mentions_of_a_page_share_the_round_trip_of_the_authors(world: World) -> None:
    """They add no round trip to a page of posts."""
    alice, bob, _ = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    await world.post(bob, *(f"@bob and @carol {n}" for n in range(30)))
    without = HOME.replace(ENTITIES, "")
    await world.ask(without, alice, n=30)
    await world.graph.timelines.wait_for_rebuilds()

    plain = await world.ask(without, alice, n=30)
    answer = await world.ask(HOME, alice, n=30)

    pages = answer.data["viewer"]["homeTimeline"]["entries"]["nodes"]
    assert [[entity["user"]["login"] for entity in post["entities"]] for post in pages] == [["bob", "carol"]] * 30
    assert answer.round_trips == plain.round_trips
    assert answer.commands == plain.commands + 1


@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_a_mentioned_user_across_a_block_is_null(world: World, direction: str) -> None:
    """This holds in a third user's post until the block ends. Others and anonymous clients see the user."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    [post] = await world.post(carol, "@bob and @alice")
    pair = (alice, bob) if direction == DIRECTIONS[0] else (bob, alice)
    shown = [
        mention(0, 4, {"id": user_id(bob), "login": "bob"}),
        mention(9, 15, {"id": user_id(alice), "login": "alice"}),
    ]

    await world.graph.blocks.block(*(user.id for user in pair))

    for viewer, hidden in ((alice, 0), (bob, 1), (carol, None), (None, None)):
        expected = [{**entity, "user": None} if at == hidden else entity for at, entity in enumerate(shown)]
        answer = await world.ask(POST, viewer, id=post_id(post))
        assert (answer.data["post"]["entities"], answer.errors) == (expected, [])
    await world.graph.blocks.unblock(*(user.id for user in pair))
    assert (await world.ask(POST, alice, id=post_id(post))).data["post"]["entities"] == shown


async def test_a_mentioned_user_who_is_muted_is_shown(world: World) -> None:
    alice, bob, carol = await world.users("alice", "bob", "carol")
    [post] = await world.post(carol, "@bob")
    await world.graph.blocks.mute(alice.id, bob.id)
    answer = await world.ask(POST, alice, id=post_id(post))
    assert answer.data["post"]["entities"] == [mention(0, 4, {"id": user_id(bob), "login": "bob"})]


async def test_a_viewer_with_many_blocks_sees_no_mention_of_one_of_them(world: World) -> None:
    """Their blocks are looked up for the users of a page."""
    alice, bob, carol, dave = await world.users("alice", "bob", "carol", "dave")
    [post] = await world.post(carol, "@dave @bob")
    numbers = range(10**6, 10**6 + FEW + 1)
    await world.graph.commit([Blocked(alice.id, user) for user in (*numbers, bob.id)])
    answer = await world.ask(POST, alice, id=post_id(post))
    assert [entity["user"] for entity in answer.data["post"]["entities"]] == [
        {"id": user_id(dave), "login": "dave"},
        None,
    ]


async def test_a_live_event_hides_a_mention_from_the_viewers_across_a_block(world: World) -> None:
    """This also holds if the event is executed once for several viewers: each gets the same result as alone."""
    users = alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.graph.blocks.block(alice.id, bob.id)
    [post] = await world.post(carol, "for @bob")
    text = f"subscription {{ homeTimeline {{ ... on PostAdded {{ post {{ {ENTITIES} }} }} }} }}"
    operation = Executor(schema._schema).prepare(parse(text), {})
    assert isinstance(operation, Operation)
    group = LiveEvents().join(operation, world.graph)
    assert group is not None
    contexts = [Context(world.graph, await world.viewer(user), str) for user in (*users, None)]

    before = world.graph.store.round_trips
    outcomes = await group.execute(PostAdded(post.id, post), contexts)

    shown = {"id": user_id(bob), "login": "bob"}
    found = [orjson.loads(outcome)["data"]["homeTimeline"] for outcome in outcomes if isinstance(outcome, bytes)]
    assert [event["post"]["entities"] for event in found] == [
        [mention(4, 8, user)] for user in (None, shown, shown, shown)
    ]
    assert world.graph.store.round_trips - before <= 2  # the users who are mentioned, and all blocks
