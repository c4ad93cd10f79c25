"""Attachments over the API."""

from dataclasses import replace
from typing import Any

import pytest

from graph import Graph
from graph.log.events import PostPublished
from resolvers import ids
from tests.resolvers.conftest import World
from tests.support.graphs import CHEAP, open_graph

PUBLISH = """mutation ($input: PublishPostInput!) { publishPost(input: $input) {
    post { id text attachments { __typename url previewUrl width height alt sensitive } }
    userErrors { code field message params { name value } } } }"""
URL = "https://media.example.org/a"


@pytest.fixture
async def world(store_url: str, graph: Graph) -> Any:
    """Return a world of a server that accepts files from a host."""
    own = await open_graph(store_url, replace(CHEAP, media_hosts=frozenset({"media.example.org"})))
    yield World(own)
    await own.close()


async def test_a_post_with_attachments_and_without_text(world: World) -> None:
    """Omitted fields are null, empty or false."""
    [alice] = await world.users("alice")
    first = {"kind": "IMAGE", "url": URL}
    second = {"kind": "VIDEO", "url": URL, "previewUrl": URL, "width": 9, "height": 5, "alt": "x", "sensitive": True}

    answer = await world.ask(PUBLISH, alice, input={"attachments": [first, second]})

    assert answer.errors == []
    assert answer.data["publishPost"]["userErrors"] == []
    assert answer.data["publishPost"]["post"]["text"] == ""
    assert answer.data["publishPost"]["post"]["attachments"] == [
        {"__typename": "ImageAttachment", "url": URL, "previewUrl": None, "width": None, "height": None}
        | {"alt": "", "sensitive": False},
        {"__typename": "VideoAttachment"} | {name: value for name, value in second.items() if name != "kind"},
    ]
    plain = await world.ask(PUBLISH, alice, input={"text": "hi", "attachments": None})
    assert plain.data["publishPost"]["post"]["attachments"] == []


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({}, "TEXT_EMPTY", ["text"]),
        ({"text": None, "attachments": []}, "TEXT_EMPTY", ["text"]),
        ({"attachments": [{"kind": "IMAGE", "url": URL}] * 5}, "TOO_MANY", ["attachments"]),
        (
            {"attachments": [{"kind": "IMAGE", "url": URL}, {"kind": "IMAGE", "url": "https://evil.example"}]},
            "INVALID",
            ["attachments", "1", "url"],
        ),
    ],
)
async def test_refused_attachments(world: World, given: dict[str, Any], code: str, field: list[str]) -> None:
    """Nothing is written."""
    [alice] = await world.users("alice")
    last = await world.graph.log.last()

    answer = await world.ask(PUBLISH, alice, input=given)

    assert answer.data["publishPost"]["post"] is None
    [error] = answer.data["publishPost"]["userErrors"]
    assert (error["code"], error["field"]) == (code, field)
    assert await world.graph.log.last() == last


async def test_attachments_on_hosts_that_are_no_longer_listed_are_not_shown(world: World, store_url: str) -> None:
    """Nor are previews on such hosts. The record keeps both, in case a host is listed again."""
    [alice] = await world.users("alice")
    other = "https://old.example.org/a"
    files = [
        {"kind": "IMAGE", "url": URL, "preview_url": other},
        {"kind": "IMAGE", "url": other},
        {"kind": "IMAGE", "url": URL, "preview_url": URL},
    ]
    [event] = await world.graph.commit([PostPublished(alice.id, "hi", attachments=tuple(files))])
    ask = f'{{ post(id: "{ids.encode(ids.Kind.POST, event.number)}") {{ attachments {{ url previewUrl }} }} }}'
    answer = await world.ask(ask, alice)
    assert answer.data["post"]["attachments"] == [{"url": URL, "previewUrl": None}, {"url": URL, "previewUrl": URL}]
    own = await open_graph(store_url, replace(CHEAP, media_hosts=frozenset({"media.example.org", "old.example.org"})))
    assert len((await World(own).ask(ask, None)).data["post"]["attachments"]) == 3
    await own.close()
