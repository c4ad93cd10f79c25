"""A user deletes the account in the web app, on a desktop; a follower sees it on a phone in the dark theme."""

import asyncio

import pytest

from tests.support.graph_worlds import PASSWORD, befriend, people, posts
from tests.web.stage import Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


async def test_an_account_is_deleted(stage: Stage, tour: Tour) -> None:
    """The password is required. Then all tabs are logged out, and the posts and the open profile vanish for others."""
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, bob, alice, carol)
    await posts(stage.graph, alice, "from alice")
    await posts(stage.graph, carol, "from carol")
    do = stage.browser.do
    await asyncio.gather(stage.open("p", "alice", **DESKTOP), stage.open("b", "bob", **PHONE, dark=True))
    await do("open", "tab", user="p", url=stage.url)
    await do("see", "tab", role="button", name="Publish")
    await do("read", "b", text="from alice")
    await do("go", "b", hash="#/@alice")
    await do("see", "b", role="button", name="Following alice")

    await do("menu", "p")
    await do("click", "p", role="link", name="Settings")
    await do("see", "p", role="heading", name="Delete your account")
    await do("fill", "p", label="Your password", text="not this one")
    await do("click", "p", role="button", name="Delete account")
    await do("read", "p", text="The password is wrong.")
    await do("focused", "p", name="Your password")
    await tour.shoot("account-deletion")
    await do("fill", "p", label="Your password", text=PASSWORD)
    await do("press", "p", key="Enter")
    for page in ("p", "tab"):
        await do("see", page, role="heading", name="Log in")
    assert await do("cookies", "p") == []
    await do("see", "b", role="heading", name="There is no user @alice")
    await do("go", "b", hash="#/")
    await do("read", "b", text="from carol")
    await do("shows", "b", texts=["from carol"])
    assert await do("errors") == []
    assert tour.found == []
