"""The table of texts that users really type, through the API: entities, notifications and searches agree."""

import json
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

from graph.feed.filters import EventFilter
from graph.log.events import Event, PostPublished
from graph.model import User
from graph.text.validation import MAX_TEXT
from tests.graph.text import test_inputs
from tests.resolvers.conftest import World, texts
from tests.support.graph_worlds import archive_log

INPUTS = json.loads(Path(test_inputs.__file__).with_name("inputs.json").read_text("utf-8"))
PUBLISH = """mutation ($text: String!) { publishPost(input: {text: $text}) { userErrors { code } post { id text
    entities { __typename start end ... on MentionEntity { user { login } } ... on HashtagEntity { tag }
        ... on LinkEntity { url } } } } }"""
SEARCH = """query ($keywords: [String!]!) { searchPosts(filter: { keywords: $keywords }) {
    posts(first: 100) { edges { node { text } } } } }"""
NOTIFIED = """query ($after: String) { viewer { notifications { entries(first: 100, after: $after) {
    nodes { __typename ... on MentionNotification { post { text } } } pageInfo { hasNextPage endCursor } } } } }"""


def storable(given: dict[str, Any]) -> bool:
    """Return True if this text is neither trimmed nor too long. Normalisation to NFC may still change it."""
    text = given["text"]
    return text == text.strip() and len(text) <= MAX_TEXT


def shown(entity: dict[str, Any]) -> dict[str, Any]:
    """Convert an entity from the API to the format of the table."""
    match entity["__typename"]:
        case "MentionEntity":
            kind, value = "mention", entity["user"]["login"]
        case "HashtagEntity":
            kind, value = "hashtag", entity["tag"]
        case _:
            kind, value = "link", entity["url"]
    return {"kind": kind, "start": entity["start"], "end": entity["end"], "value": value}


def by_value(inputs: Collection[dict[str, Any]], kind: str) -> dict[str, set[str]]:
    """Return the texts by the login that they mention, or by the hashtag that they contain."""
    found = defaultdict(set)
    for given in inputs:
        for entity in given["entities"]:
            if entity["kind"] == kind:
                found[entity["value"]].add(given["text"])
    return found


async def notified(world: World, user: User) -> set[str]:
    """Return the texts of all mentions that a user was notified of."""
    found, after = set(), None
    while True:
        entries = (await world.ask(NOTIFIED, user, after=after)).data["viewer"]["notifications"]["entries"]
        assert {each["__typename"] for each in entries["nodes"]} <= {"MentionNotification"}
        found |= {each["post"]["text"] for each in entries["nodes"]}
        if not entries["pageInfo"]["hasNextPage"]:
            return found
        after = entries["pageInfo"]["endCursor"]


async def test_entities_notifications_searches_and_streams_agree_with_the_table(world: World) -> None:
    [author, bob] = await world.users("author", "bob")
    inputs = {each["text"]: each for each in INPUTS if storable(each)}
    await world.users(*by_value(inputs.values(), "mention").keys() - {"author", "bob"})
    for text, given in list(inputs.items()):
        published = (await world.ask(PUBLISH, author, text=text)).data["publishPost"]
        assert published["userErrors"] == [], text
        if published["post"]["text"] != text:
            del inputs[text]
            continue
        assert [shown(each) for each in published["post"]["entities"]] == given["entities"], text
    assert len(inputs) > 550
    await world.graph.worker().drain()
    await archive_log(world.graph)

    assert await notified(world, bob) & inputs.keys() == by_value(inputs.values(), "mention")["bob"]
    for tag, expected in by_value(inputs.values(), "hashtag").items():
        filter_ = EventFilter.of(keywords=[f"#{tag}"])
        streamed = {text for text in inputs if filter_.matches(Event(1, PostPublished(author.id, text)))}
        assert streamed == expected, tag
        found = texts((await world.ask(SEARCH, None, keywords=[f"#{tag}"])).data["searchPosts"]["posts"])
        assert {*found} & inputs.keys() == expected or len(found) == 100, tag
