"""The web app in Chromium, with a real server: its list equals the server's whatever happens."""

import pytest

from graph.log.numbers import entry_id
from graph.paging import CursorKind, encode_cursor
from tests.support.graph_worlds import background, befriend, many_posts, people, posts
from tests.web.stage import Stage

pytestmark = pytest.mark.slow

MEDIAN_FRAME = 100.0  # milliseconds, without a graphics card on a busy machine


async def test_two_users(stage: Stage) -> None:
    """One user's follow, post and deletion appear for the other, while the refetched page is delayed."""
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, alice, carol)
    await many_posts(stage.graph, bob, 5)
    await posts(stage.graph, carol, "from carol")
    do = stage.browser.do
    await stage.open("a", "alice")
    await stage.open("b", "bob")

    await stage.hears(2)
    await do("hold", "a", operation="HomeFeedPagesQuery")
    await do("go", "a", hash="#/@bob")
    await do("click", "a", role="button", name="Follow bob")
    await do("read", "b", text="follows you now")
    for number in range(6):
        await posts(stage.graph, bob if number % 2 else carol, f"meanwhile {number}")
        if number == 2:
            await do("held", "a")
    await do("fill", "b", label="What is new?", text="from the composer")
    await do("click", "b", role="button", name="Publish")
    await do("go", "a", hash="#/")
    await do("release", "a")
    await stage.check("a", alice)

    await do("click", "b", role="button", name="Delete")
    await stage.check("b", bob)
    await stage.check("a", alice)
    assert "from the composer" not in await do("shown", "a")

    await do("go", "a", hash="#/@bob")
    await do("click", "a", role="button", name="Following bob")
    await do("go", "a", hash="#/")
    await stage.check("a", alice)
    assert await do("errors") == []


async def test_outages(stage: Stage) -> None:
    """Sockets are reset while 25 posts arrive and the user scrolls; then the server restarts."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await many_posts(stage.graph, bob, 50)
    do = stage.browser.do
    await stage.open("a", "alice")
    await do("read", "a", text="post 49")
    await posts(stage.graph, bob, "live")
    await do("see", "a", role="button", name="1 new post")

    async with background(stage.outage()):
        await posts(stage.graph, bob, *(f"meanwhile {number}" for number in range(25)))
    await stage.check("a", alice)

    await stage.restart()
    await posts(stage.graph, bob, "after the restart")
    await stage.check("a", alice)


async def test_an_old_cursor(stage: Stage) -> None:
    """The log no longer has the event of the cursor: the list is fetched again, and stays live."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await many_posts(stage.graph, bob, 30)
    await stage.graph.worker().drain()
    last = await stage.graph.log.last()
    do = stage.browser.do
    await stage.open("a", "alice")
    await stage.graph.store.send([("SET", "{log}:trimmed", last), ("XTRIM", "{log}", "MINID", entry_id(last + 1))])
    old = encode_cursor(CursorKind.LOG, 1)
    await do("forge", "a", operation="HomeScreenQuery", field="liveCursor", value=old)
    await do("reload", "a")
    await do("see", "a", role="button", name="Publish")
    await posts(stage.graph, bob, "live")
    await stage.check("a", alice)
    assert await do("errors") == []


async def test_a_user_scrolls_without_a_socket(stage: Stage) -> None:
    """Next pages come over HTTP. What was published meanwhile comes when the socket is back."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    old = await many_posts(stage.graph, bob, 90)
    await stage.open("a", "alice")
    await stage.hears(1)
    await posts(stage.graph, bob, "live")
    await stage.browser.do("see", "a", role="button", name="1 new post")

    assert stage.proxy.refuse_websockets() == 1
    await posts(stage.graph, bob, *(f"meanwhile {number}" for number in range(25)))
    assert len(await stage.browser.do("posts", "a", enough=len(old) + 1)) == len(old) + 1
    stage.proxy.accept_websockets()
    await stage.check("a", alice)


async def test_a_list_stays_as_long_when_it_is_fetched_again(stage: Stage) -> None:
    """The user has scrolled and follows another user: as many posts are fetched as were loaded."""
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, alice, bob)
    await many_posts(stage.graph, bob, 60)
    await posts(stage.graph, carol, "from carol")
    do = stage.browser.do
    await stage.open("a", "alice")
    await stage.check("a", alice)
    await do("top", "a")
    await do("fail", "a", operation="HomeFeedNextQuery", status=502)  # the list cannot grow by scrolling
    await befriend(stage.graph, alice, carol)
    await do("read", "a", text="from carol")
    assert len(await do("shown", "a")) == 60
    await do("free", "a")
    await stage.check("a", alice)


async def test_a_cursor_from_before_many_posts(stage: Stage) -> None:
    """The subscription resends posts that are older than the page. They wait for their pages, not in the pill."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await stage.graph.worker().drain()
    old = encode_cursor(CursorKind.LOG, await stage.graph.log.last())
    await many_posts(stage.graph, bob, 60)
    do = stage.browser.do
    await stage.open("a", "alice")
    await do("forge", "a", operation="HomeScreenQuery", field="liveCursor", value=old)
    await do("reload", "a")
    await do("read", "a", text="post 59")
    await posts(stage.graph, bob, "live")
    await do("see", "a", role="button", name="1 new post")
    await do("bottom", "a")
    await do("read", "a", text="post 0")
    await do("see", "a", role="button", name="1 new post")
    await stage.check("a", alice)


async def test_many_posts_scroll_smoothly(stage: Stage, long_profile: bool) -> None:
    """Frames take as long as with few posts, because only what is near the screen is laid out."""
    if not long_profile:
        pytest.skip("measures times, which needs an idle machine: run with --long")
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await many_posts(stage.graph, bob, 2000)
    await stage.graph.worker().drain()
    await stage.graph.log.watermark()
    await stage.open("a", "alice")
    await stage.check("a", alice)
    assert await stage.browser.do("scroll", "a") < MEDIAN_FRAME


async def test_log_outs(stage: Stage) -> None:
    """A log-out ends the other tabs of the browser; one on all devices also ends other browsers."""
    await people(stage.graph, "alice")
    do = stage.browser.do
    await stage.open("a", "alice")
    await do("open", "tab", user="a", url=stage.url)
    await do("see", "tab", role="button", name="Publish")
    await do("menu", "a")
    await do("click", "a", role="button", name="Log out")
    for page in ("a", "tab"):
        await do("see", page, role="heading", name="Log in")

    await stage.open("c", "alice")
    await stage.open("d", "alice")
    await do("menu", "c")
    await do("click", "c", role="button", name="Log out on all devices")
    for page in ("c", "d"):
        await do("see", page, role="heading", name="Log in")


async def test_forms_on_a_phone(stage: Stage) -> None:
    """Errors appear at their fields, every control has a name, and nothing is wider than the screen."""
    bob, carol = await people(stage.graph, "bob", "carol")
    await many_posts(stage.graph, bob, 3)
    await stage.graph.users.update_profile(carol, bio="A long text about this user. " * 5)
    await befriend(stage.graph, carol, bob)
    do = stage.browser.do
    await do("open", "p", user="p", url=stage.url, width=390, height=780)
    await do("click", "p", role="button", name="Create an account")
    await do("fill", "p", label="Login", text="bob")
    await do("fill", "p", label="Password", text="long enough 1")
    await do("click", "p", role="button", name="Sign up")
    await do("read", "p", text="This login is already taken.")
    await do("fill", "p", label="Login", text="dora")
    await do("fill", "p", label="Password", text="long enough 1")
    await do("click", "p", role="button", name="Sign up")
    await do("see", "p", role="heading", name="Your timeline is empty")

    await do("fill", "p", label="What is new?", text="x" * 1001)
    await do("read", "p", text="1 character too many")
    await do("press", "p", key="Control+Enter")
    await do("see", "p", role="button", name="Publish", disabled=True)
    await do("fill", "p", label="What is new?", text="hello")
    await do("press", "p", key="Control+Enter")
    await do("see", "p", role="article", name="Post by dora")

    await do("go", "p", hash="#/@dora")
    await do("click", "p", role="button", name="Edit profile")
    await do("fill", "p", label="Name", text=" ")
    await do("click", "p", role="button", name="Save")
    await do("read", "p", text="name")
    await do("fill", "p", label="Name", text="Dora the Great")
    await do("click", "p", role="button", name="Save")
    await do("see", "p", role="heading", name="Dora the Great")
    for route, role, name in (
        ("#/", "button", "Publish"),
        ("#/@bob", "list", "posts"),
        ("#/@bob/followers", "list", "followers"),
        ("#/@dora", "heading", "Dora the Great"),
    ):
        await do("go", "p", hash=route)
        await do("see", "p", role=role, name=name)
        assert await do("overflow", "p") == []
        assert await do("nameless", "p") == []

    await do("go", "p", hash="#/")
    await do("reload", "p")
    await do("see", "p", role="button", name="Publish")
    await do("press", "p", key="Tab")
    await do("focused", "p", name="Skip to the content")
    await do("press", "p", key="Enter")
    for name in ("What is new?", "Publish", "Dora the Great @dora"):
        await do("press", "p", key="Tab")
        await do("focused", "p", name=name)
    assert await do("errors") == []
