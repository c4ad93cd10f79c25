"""Entities of posts over the API."""

from typing import Any

import pytest

from graph import keys
from tests.resolvers.conftest import World, post_id, user_id

ENTITIES = """entities { __typename start end ... on MentionEntity { user { id login } } ... on HashtagEntity { tag }
    ... on LinkEntity { url } }"""
POST = f"query ($id: ID!) {{ post(id: $id) {{ {ENTITIES} }} }}"
HOME = f"""query ($n: Int!) {{ viewer {{ homeTimeline {{ posts(first: $n) {{ nodes {{
    text author {{ login followersCount relationship {{ state }} }} {ENTITIES} }} }} }} }} }}"""


def mention(start: int, end: int, user: Any) -> dict[str, Any]:
    return {"__typename": "MentionEntity", "start": start, "end": end, "user": user}


async def test_entities_of_a_post(world: World) -> None:
    """In their order, with the user, the folded tag and the URL as written."""
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

    pages = answer.data["viewer"]["homeTimeline"]["posts"]["nodes"]
    assert [[entity["user"]["login"] for entity in post["entities"]] for post in pages] == [["bob", "carol"]] * 30
    assert answer.round_trips == plain.round_trips
    assert answer.commands == plain.commands + 1
