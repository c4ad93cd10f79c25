"""What users do in the web app: twice, without an answer from the server, and one after another in one browser."""

import asyncio

import pytest

from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import PATIENCE, befriend, home, people
from tests.web.stage import Stage

pytestmark = pytest.mark.slow


async def texts(stage: Stage, viewer: int) -> list[str]:
    """Return the texts of the home timeline on the server, newest first."""
    await stage.graph.worker().drain()
    found = await stage.graph.posts.get_many(SYSTEM, await home(stage.graph, viewer))
    return [post.text for post in found if post]


async def follows(stage: Stage, user: int, followees: list[int]) -> None:
    """Wait until a user follows these users. The page shows a change before the server has it."""
    async with asyncio.timeout(PATIENCE):
        while list(await stage.graph.follows.followed_by(user)) != followees:  # noqa: ASYNC110 - no notification
            await asyncio.sleep(0.05)


async def test_a_post_is_published_once(stage: Stage) -> None:
    """A draft keeps its idempotency key until it is published or edited, even if the page is reloaded."""
    [alice] = await people(stage.graph, "alice")
    do = stage.browser.do
    await stage.open("a", "alice")
    await do("lose", "a", operation="ComposerMutation")
    await do("fill", "a", label="What is new?", text="once")
    for _ in range(2):
        await do("click", "a", role="button", name="Publish")
        await do("read", "a", text="Nothing is lost")
    await do("free", "a")
    await do("reload", "a")
    await do("holds", "a", label="What is new?", text="once")
    await do("doubleClick", "a", role="button", name="Publish")
    await do("see", "a", role="article", name="Post by alice")
    assert await texts(stage, alice) == ["once"]
    await do("holds", "a", label="What is new?", text="")

    await do("fill", "a", label="What is new?", text="once")
    await do("click", "a", role="button", name="Publish")
    await stage.check("a", alice)
    assert await texts(stage, alice) == ["once", "once"]
    assert await do("errors") == []


async def test_a_follow_that_fails_and_one_that_is_clicked_twice(stage: Stage) -> None:
    """The button changes at once, and changes back after a failure. A double click counts once."""
    alice, bob = await people(stage.graph, "alice", "bob")
    do = stage.browser.do
    await stage.open("a", "alice")
    for operation in ("ProfileScreenQuery", "useLiveProfileQuery"):
        pattern, text = '"state":"STRANGER"', '"state":"OF_A_LATER_VERSION"'
        await do("rewrite", "a", operation=operation, pattern=pattern, text=text)
    await do("lose", "a", operation="useFollowMutation", arrives=False)
    await do("go", "a", hash="#/@bob")
    await do("click", "a", role="button", name="Follow bob")
    await do("read", "a", text="The server did not accept the request")
    await do("see", "a", role="button", name="Follow bob")
    assert not await stage.graph.follows.followed_by(alice)
    await do("free", "a")
    await do("doubleClick", "a", role="button", name="Follow bob")
    await do("see", "a", role="button", name="Following bob")
    await do("read", "a", text="1 follower")
    await follows(stage, alice, [bob])

    await do("go", "a", hash="#/@alice/following")
    await do("doubleClick", "a", role="button", name="Following bob")
    await do("see", "a", role="button", name="Follow bob")  # the row stays, so that no other one is under the pointer
    await do("focused", "a", name="Follow bob")
    await follows(stage, alice, [])
    assert await do("errors") == []


async def test_a_follow_beyond_the_limit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button changes back, and the app shows the reason that the server gives for this user."""
    alice, bob, _ = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, alice, bob)
    monkeypatch.setattr(stage.app.state.graph.follows, "_max_following", 1)
    do = stage.browser.do
    await stage.open("a", "alice")
    await do("go", "a", hash="#/@carol")
    await do("click", "a", role="button", name="Follow carol")
    await do("read", "a", text="You can follow at most")
    await do("see", "a", role="button", name="Follow carol")
    await do("read", "a", text="0 followers")
    await follows(stage, alice, [bob])
    assert await do("errors") == []


async def test_nothing_of_a_user_is_left_for_the_next(stage: Stage) -> None:
    """After a log-out, the next user of the tab does not see the data, notices and draft of the previous one."""
    alice, bob, dora = await people(stage.graph, "alice", "bob", "dora")
    await befriend(stage.graph, alice, bob)
    do = stage.browser.do
    await stage.open("a", "alice")
    await stage.hears(1)
    await befriend(stage.graph, dora, alice)
    await do("read", "a", text="follows you now")
    await do("fill", "a", label="What is new?", text="a secret")
    await do("menu", "a")
    await do("click", "a", role="button", name="Log out")
    await do("see", "a", role="heading", name="Log in")
    assert await do("errors") == []
    assert "dora" not in await do("text", "a")
    assert "Your session has ended" not in await do("text", "a")
    await do("fill", "a", label="Login", text="bob")
    await do("fill", "a", label="Password", text="correct horse")
    await do("click", "a", role="button", name="Log in")
    await do("see", "a", role="button", name="Publish")
    await do("holds", "a", label="What is new?", text="")
    assert "alice" not in await do("text", "a")
    assert "dora" not in await do("text", "a")
