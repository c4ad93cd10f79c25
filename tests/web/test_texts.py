"""Links in the texts of posts, pictures, and searches in the web app."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph import Graph
from graph.posts.attachments import Attachment, ImageAttachment
from server.settings import Settings
from tests.support.graph_worlds import befriend, people, posts
from tests.support.graphs import CHEAP, open_graph
from tests.web.stage import Chromium, staged
from tests.web.tour import PHONE, Tour

pytestmark = pytest.mark.slow

HOST = "media.example.org"
TEXT = "👩‍👩‍👧‍👦 @Bob and @nobody look at #Rain#, see https://example.com/a?b=c."


@pytest.fixture
async def tour(
    store_url: str, graph: Graph, settings: Settings, chromium: Chromium, tour_folder: Path | None
) -> AsyncIterator[Tour]:
    """Serve the app with a host for pictures."""
    own = await open_graph(store_url, replace(CHEAP, media_hosts=frozenset({HOST})))
    async with staged(own, settings.model_copy(update={"media_hosts": (HOST,)}), chromium) as stage:
        yield Tour(stage, tour_folder)
    await own.close()


def picture(name: str, alt: str = "", *, sensitive: bool = False) -> Attachment:
    """Return a picture on the host."""
    return ImageAttachment(f"https://{HOST}/{name}", None, 640, 360, alt, sensitive)


async def test_entities_attachments_and_searches(tour: Tour) -> None:
    """Entity ranges count UTF-16 code units. Sensitive pictures wait for a click. A search continues live."""
    stage, do = tour.stage, tour.do
    publish = stage.graph.posts.publish
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    several = [picture("1", "A green field"), picture("2", sensitive=True, alt="A wound")]
    await publish(bob, "Two pictures", attachments=several)
    await publish(bob, TEXT, attachments=[picture("3", "Clouds over a green field")])
    await stage.open("p", "alice", **PHONE)
    await do("pictures", host=HOST)
    await do("reload")
    await do("see", role="img", name="A green field")
    await do("loaded", count=2)
    await tour.shoot("texts")
    assert await do("overflow") == []
    await do("click", role="button", name="Sensitive picture A wound Show")
    await do("see", role="img", name="A wound")
    await do("loaded", count=3)

    await do("see", role="link", name="https://example.com/a?b=c")
    await do("see", role="link", name="@Bob")
    await do("miss", role="link", name="@nobody")
    await do("click", role="link", name="@Bob")
    await do("see", role="heading", name="bob")
    await do("click", role="link", name="#Rain#")
    await do("see", role="heading", name="Results for #rain")
    await do("see", role="article", name="Post by bob")
    await stage.hears(1, more=1)
    [_, wet] = await posts(stage.graph, bob, "No weather", "More #rain is coming")
    await do("click", role="button", name="1 new post")
    await do("read", text="More #rain is coming")
    await tour.shoot("search")
    await stage.graph.posts.delete(bob, wet)
    await do("missing", text="More #rain is coming")

    await do("fill", label="Search for posts and users, or go to a @user", text="bob")
    await do("press", key="Enter")
    await do("see", role="list", name="users")
    await do("click", role="button", name="Following bob")
    await do("click", role="button", name="Follow bob")
    await tour.shoot("search-users")
    assert await do("overflow") == []
    await do("fill", label="Search for posts and users, or go to a @user", text="@bob")
    await do("press", key="Enter")
    await do("see", role="heading", name="bob")
    assert await do("errors") == []
    await do("fill", label="Search for posts and users, or go to a @user", text="...")  # no words
    await do("press", key="Enter")
    await do("see", role="heading", name="The search could not be loaded")
    await do("read", text="The entry '...' of 'keywords' has no word, hashtag or phrase.")
    await do("miss", role="button", name="Try again")
    assert tour.found == []
