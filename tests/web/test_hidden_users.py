"""Mutes and blocks in the web app, on a desktop in the light theme and a phone in the dark theme."""

import asyncio

import pytest

from tests.support.graph_worlds import befriend, people, posts
from tests.web.stage import Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


async def test_a_mute(stage: Stage, tour: Tour) -> None:
    """A mute shows at once unless it fails, and hides the user only at home. The list of muted users undoes it."""
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, alice, bob, carol)
    await posts(stage.graph, bob, "from bob")
    await posts(stage.graph, carol, "from carol")
    do = stage.browser.do
    await stage.open("p", "alice", **PHONE, dark=True)
    await do("read", "p", text="from bob")
    await tour.go("@bob", "heading", "bob")
    await do("fail", "p", operation="useMuteMutation", status=503)
    await do("menu", "p", within=".profile")
    assert await do("overflow", "p") == await do("nameless", "p") == []
    await tour.shoot("profile-menu")
    await do("click", "p", role="button", name="Mute @bob")
    await do("focused", "p", name="More about bob")
    await do("read", "p", text="The server did not accept the request")
    await do("missing", "p", text="Muted")
    await do("free", "p")
    await do("menu", "p", within=".profile")
    await do("click", "p", role="button", name="Mute @bob")
    await do("read", "p", text="You muted @bob. They are not notified.")
    await do("read", "p", text="from bob")
    await do("menu", "p", within=".profile")
    await do("see", "p", role="button", name="Unmute @bob")
    await do("press", "p", key="Escape")
    await tour.shoot("profile-muted")
    await do("go", "p", hash="#/")
    await do("read", "p", text="from carol")
    await do("missing", "p", text="from bob")

    await do("menu", "p")
    await do("click", "p", role="link", name="Muted users")
    await do("see", "p", role="list", name="muted users")
    assert await do("overflow", "p") == await do("nameless", "p") == []
    await tour.shoot("muted-users")
    await do("click", "p", role="button", name="Unmute @bob")
    await do("read", "p", text="You unmuted @bob.")
    await do("see", "p", role="button", name="Mute @bob")
    await tour.go("blocked", "heading", "Blocked users")
    await tour.go("muted", "heading", "Muted users")
    await do("read", "p", text="You have not muted anyone.")
    await tour.shoot("muted-users-empty")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_block(stage: Stage, tour: Tour) -> None:
    """The viewer must confirm. Then both see why the other's profile is empty, until the block is undone.

    The profile that the blocked user has open changes live.
    """
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await befriend(stage.graph, bob, alice)
    await posts(stage.graph, alice, "from alice")
    await posts(stage.graph, bob, "from bob")
    do = stage.browser.do
    await asyncio.gather(stage.open("p", "alice", **DESKTOP), stage.open("b", "bob", **PHONE, dark=True))
    for page, text in (("p", "from bob"), ("b", "from alice")):
        await do("read", page, text=text)
    await do("go", "b", hash="#/@alice")
    await do("see", "b", role="button", name="Following alice")
    await tour.go("@bob", "button", "Following bob")
    await do("menu", "p", within=".profile")
    await do("click", "p", role="button", name="Block @bob")
    await do("see", "p", role="dialog", name="Block @bob?")
    await tour.shoot("block")
    await do("press", "p", key="Escape")
    await do("focused", "p", name="More about bob")
    await do("see", "p", role="button", name="Following bob")
    await do("menu", "p", within=".profile")
    await do("click", "p", role="button", name="Block @bob")
    await do("click", "p", role="button", name="Block")
    await do("see", "p", role="heading", name="You have blocked @bob")
    await do("miss", "p", role="button", name="Following bob")
    await do("missing", "p", text="from bob")
    await tour.shoot("profile-blocked")
    await do("go", "p", hash="#/")
    await do("missing", "p", text="from bob")
    await do("see", "b", role="heading", name="@alice has blocked you")
    await do("miss", "b", role="button", name="Following alice")
    await do("missing", "b", text="from alice")
    assert await do("overflow", "b") == await do("nameless", "b") == []
    tour.found += await do("axe", "b")

    await do("menu", "p")
    await do("click", "p", role="link", name="Blocked users")
    await do("see", "p", role="list", name="blocked users")
    await tour.shoot("blocked-users")
    await do("click", "p", role="button", name="Unblock @bob")
    await do("read", "p", text="You unblocked @bob.")
    await do("see", "p", role="button", name="Block @bob")
    await tour.go("@bob", "button", "Follow bob")
    await do("read", "p", text="from bob")
    await do("read", "b", text="from alice")
    await do("go", "b", hash="#/")
    await do("see", "b", role="button", name="Publish")
    await do("go", "b", hash="#/@alice/followers")
    await do("read", "b", text="No followers yet.")
    await do("see", "b", role="button", name="Follow alice")
    await do("click", "b", role="link", name="1 post")
    await do("read", "b", text="from alice")
    assert await do("errors") == []
    assert tour.found == []
