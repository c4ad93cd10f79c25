"""Profiles over the API, with pictures on hosts that the operator lists."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from graph import Graph
from graph.log.events import ProfileChanged
from tests.resolvers.conftest import World
from tests.resolvers.test_mutations import UPDATE, codes
from tests.support.graphs import CHEAP, open_graph


@pytest.fixture
async def picturing(store_url: str, graph: Graph) -> AsyncIterator[World]:
    """Return a world of a server that shows pictures from a host."""
    own = await open_graph(store_url, replace(CHEAP, media_hosts=frozenset({"example.org"})))
    yield World(own)
    await own.close()


async def test_update_profile(picturing: World) -> None:
    """Fields that are omitted do not change, and null clears a field."""
    world = picturing
    [alice] = await world.users("alice")
    answer = await world.ask(UPDATE, alice, input={"bio": "hi"})
    user = {"name": "Alice", "bio": "hi", "avatarUrl": None, "websiteUrl": None}
    assert answer.data["updateProfile"] == {"user": user, "userErrors": []}
    urls = {"avatarUrl": "https://example.org/a.png", "websiteUrl": "https://例え.example"}
    answer = await world.ask(UPDATE, alice, input={"name": "Alicia", **urls})
    assert codes(answer, "updateProfile") == [("INVALID", ["websiteUrl"])]
    urls["websiteUrl"] = "https://xn--r8jz45g.example/?a=%E3%81%82#b"
    answer = await world.ask(UPDATE, alice, input={"name": "Alicia", **urls})
    assert answer.data["updateProfile"]["user"] == {"name": "Alicia", "bio": "hi", **urls}
    answer = await world.ask(UPDATE, alice, input={"bio": None, "avatarUrl": None})
    assert answer.data["updateProfile"]["user"] == {"name": "Alicia", "bio": "", **urls, "avatarUrl": None}
    assert (await world.ask("{ viewer { user { websiteUrl avatarUrl } } }", alice)).data == {
        "viewer": {"user": {**urls, "avatarUrl": None}}
    }


async def test_a_picture_on_a_host_that_is_not_listed_is_not_shown(world: World) -> None:
    """It may have been stored before the host was removed, or by a version that permitted any host."""
    [alice] = await world.users("alice")
    url = "https://example.org/a.png"
    await world.graph.commit([ProfileChanged(alice.id, avatar_url=url, website_url=url)])
    answer = await world.ask("{ viewer { user { avatarUrl websiteUrl } } }", alice)
    assert answer.data == {"viewer": {"user": {"avatarUrl": None, "websiteUrl": url}}}
    answer = await world.ask(UPDATE, alice, input={"avatarUrl": url})
    assert codes(answer, "updateProfile") == [("INVALID", ["avatarUrl"])]
    answer = await world.ask(UPDATE, alice, input={"name": "Alicia"})
    assert answer.data["updateProfile"]["user"]["avatarUrl"] is None
