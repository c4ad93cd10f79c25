"""Sessions of the web app in cookies: scripts cannot read the token, and pages of other origins cannot use it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from graph import Graph
from server.settings import Settings
from tests.support.graph_worlds import befriend, many_posts, people, posts
from tests.web.stage import Chromium, Stage, staged
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow

COOKIE = "__Host-fanline_session"
LIVE = "subscription { homeTimeline { __typename } }"
PUBLISH = 'mutation { publishPost(input: { text: "forged" }) { userErrors { code } } }'
JSON = {"content-type": "application/json"}
OWN = {**JSON, "fanline-session": "cookie"}
TEXT = {"content-type": "text/plain"}
UNREADABLE = ((0, ""), (0, "TypeError: Failed to fetch"))


@asynccontextmanager
async def origin() -> AsyncIterator[str]:
    """Serve an empty page from a separate origin, on the same site as the app."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\nconnection: close\r\n\r\n")
        writer.write(b"<!doctype html>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_scripts_never_see_the_token(stage: Stage) -> None:
    """The session survives a reload and ends with the log-out, even for a copy of its cookie."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    await many_posts(stage.graph, bob, 3)
    do, endpoint = stage.browser.do, f"{stage.url}graphql"
    await stage.log_in("a", "alice")
    [cookie] = await do("cookies", "a")
    assert (cookie["name"], cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (COOKIE, True, True, "Lax")
    await do("reload", "a")
    await do("see", "a", role="button", name="Publish")
    await posts(stage.graph, bob, "live")
    await stage.check("a", alice)
    seen = await do("readable", "a")
    assert any("logIn" in text for text in seen)
    assert any("PostAdded" in text for text in seen)
    assert not [text for text in seen if cookie["value"] in text]

    await do("menu", "a")
    await do("click", "a", role="button", name="Log out")
    await do("see", "a", role="heading", name="Log in")
    assert await do("cookies", "a") == []
    [refused] = await do("subscribe", "a", url=endpoint, query=LIVE)
    assert refused["extensions"]["code"] == "UNAUTHENTICATED"
    await do("keep", "a", cookies=[cookie])
    assert await do("subscribe", "a", url=endpoint, query=LIVE) == 4403


async def test_only_pages_of_allowed_origins_use_the_session(
    graph: Graph, settings: Settings, chromium: Chromium
) -> None:
    """The browser sends the cookie for all of them, because they are on the same site as the app."""
    [alice] = await people(graph, "alice")
    await posts(graph, alice, "from alice")
    async with (
        origin() as allowed,
        origin() as other,
        staged(graph, settings.model_copy(update={"allowed_origins": (allowed,)}), chromium) as stage,
    ):
        do, endpoint = stage.browser.do, f"{stage.url}graphql"
        await stage.log_in("a", "alice")
        await do("open", "friend", user="a", url=allowed)
        query = {"method": "POST", "headers": OWN, "body": json.dumps({"query": "{ viewer { user { login } } }"})}
        status, answer = await do("send", "friend", url=endpoint, options=query)
        assert (status, json.loads(answer)) == (200, {"data": {"viewer": {"user": {"login": "alice"}}}})
        event = await do("subscribe", "friend", url=endpoint, query=LIVE)
        assert event == {"data": {"homeTimeline": {"__typename": "Checkpoint"}}}

        await do("open", "stranger", user="a", url=other)
        for headers in (OWN, JSON, TEXT):
            for mode in ("cors", "no-cors"):
                options = {"method": "POST", "headers": headers, "body": json.dumps({"query": PUBLISH}), "mode": mode}
                status, answer = await do("send", "stranger", url=endpoint, options=options)
                assert (status, answer) in UNREADABLE
        assert await do("subscribe", "stranger", url=endpoint, query=LIVE) == 1006
        start, end = json.dumps({"query": PUBLISH, "padding": "="}).split("=")
        assert await do("submit", "stranger", url=endpoint, name=start, value=end) == 415
        await stage.check("a", alice)
        assert await do("shown", "a") == ["from alice"]


async def test_a_user_ends_sessions_and_changes_the_password(stage: Stage, tour: Tour) -> None:
    """One session is ended, then all others with the password. This one and its live timeline continue."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, alice, bob)
    do = stage.browser.do
    for page, size in (("b", PHONE), ("p", DESKTOP), ("c", DESKTOP)):
        await stage.log_in(page, "alice", **size)
    await do("menu", "p")
    await do("click", "p", role="link", name="Settings")
    await do("see", "p", role="heading", name="Where you are logged in")
    await tour.shoot("sessions")
    await do("click", "p", role="button", name="End the session of Chrome on Linux")  # the newest
    await do("see", "c", role="heading", name="Log in")
    await do("go", "b", hash="#/sessions")
    await do("see", "b", role="button", name="End the session of Chrome on Linux")
    assert await do("overflow", "b") == await do("nameless", "b") == []

    await do("fill", "p", label="Current password", text="not this one")
    await do("fill", "p", label="New password", text="battery staple")
    await do("click", "p", role="button", name="Change password")
    await do("read", "p", text="The password is wrong.")
    await tour.shoot("password-errors")
    await do("fill", "p", label="Current password", text="correct horse")
    await do("click", "p", role="button", name="Change password")
    await do("read", "p", text="All other sessions have ended.")
    await do("see", "b", role="heading", name="Log in")
    await do("miss", "p", role="button", name="End the session of Chrome on Linux")
    await do("go", "p", hash="#/")
    await posts(stage.graph, bob, "live")
    await stage.check("p", alice)
    assert await do("errors") == []
    assert tour.found == []
