"""The table of what people really type, through the API: who is mentioned, and what is found and streamed, agrees."""

import json
from pathlib import Path
from typing import Any

from graph.feed.filters import EventFilter
from graph.log.events import Event, PostPublished
from tests.graph.text import test_inputs
from tests.resolvers.conftest import World, texts
from tests.support.graph_worlds import archive_log

INPUTS = json.loads(Path(test_inputs.__file__).with_name("inputs.json").read_text("utf-8"))
SEARCH = """query ($keywords: [String!]!) { searchPosts(filter: { keywords: $keywords }) {
    posts(first: 100) { edges { node { text } } } } }"""


def stored(text: str) -> bool:
    """Return whether a post keeps this text: in NFC and trimmed, and not longer than usual."""
    return text == text.strip() and len(text) <= 200


async def test_entities_searches_and_streams_agree_with_the_table(world: World) -> None:
    [author, bob] = await world.users("author", "bob")
    given: list[dict[str, Any]] = [each for each in INPUTS[::4] if stored(each["text"])]
    ids = {}
    for each in given:
        post = await world.graph.posts.publish(author.id, each["text"])
        if post.text == each["text"]:
            ids[post.id] = each
    await world.graph.worker().drain()
    await archive_log(world.graph)

    mentioned = 0
    for post_id, each in ids.items():
        [found_post] = await world.graph.posts.get_many(world.graph.visibility.of(None), [post_id])
        assert found_post is not None
        logins = {entity["value"] for entity in each["entities"] if entity["kind"] == "mention"}
        assert ({bob.id} if "bob" in logins else set()) == {*found_post.mentions}, each["text"]
        mentioned += "bob" in logins
        tags = [entity["value"] for entity in each["entities"] if entity["kind"] == "hashtag"]
        for tag in tags:
            filter_ = EventFilter.of(keywords=[f"#{tag}"])
            assert filter_.matches(Event(post_id, PostPublished(author.id, each["text"]))), each["text"]
            found = texts((await world.ask(SEARCH, None, keywords=[f"#{tag}"])).data["searchPosts"]["posts"])
            assert each["text"] in found or len(found) == 100, (tag, each["text"])
    assert mentioned > 10
