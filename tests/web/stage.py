"""A server with the built web app, and browsers that show it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from graph import Graph
from graph.visibility.views import SYSTEM
from server.app import create_app
from server.auth import Tokens
from server.setting_values import Env
from server.settings import Settings
from server.web_app import WebApp
from tests.clients.outages import Proxy, proxied
from tests.clients.programs import Program
from tests.server.conftest import KEY, served, until
from tests.support.graph_worlds import PASSWORD, home

FOLDER = Path(__file__).parent
DIST = FOLDER.parents[1] / "examples" / "web" / "dist"
TIMEOUT = 50.0
COMMAND_TIMEOUT = 120.0
COOKIE = "__Host-fanline_session"


class BrowserError(Exception):
    """A command that failed in the browser."""


class Browser:
    """A Chromium whose pages are driven by commands. They are closed with the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = asyncio.Lock()

    async def do(self, action: str, page: str = "", **values: Any) -> Any:
        """Run a command in a page, and return its value."""
        async with self._lock:
            self._writer.write(json.dumps({"action": action, "page": page, **values}).encode() + b"\n")
            line = await asyncio.wait_for(self._reader.readline(), COMMAND_TIMEOUT)
        answer = json.loads(line or '{"error": "the browser has exited"}')
        if "error" in answer:
            raise BrowserError(answer["error"])
        return answer["value"]


@dataclass(frozen=True)
class Chromium:
    """The browser of all tests, and the socket of the app: always on the same port, so its files stay in the cache."""

    program: Program
    listening: socket.socket

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Browser]:
        """Return the browser without pages."""
        reader, writer = await asyncio.open_unix_connection(self.program.socket(), limit=2**24)
        try:
            browser = Browser(reader, writer)
            yield browser
            await browser.do("reset")
        finally:
            writer.close()


@dataclass
class Stage:
    """The server behind a proxy, and the browser."""

    graph: Graph
    settings: Settings
    proxy: Proxy
    browser: Browser
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        """The address of the app."""
        return f"{self.proxy.url}/"

    async def start(self) -> None:
        """Start the server, which also has the files of the app, and let the proxy forward to it."""
        self.app = app = create_app(self.settings)
        app.router.routes.extend(WebApp(DIST, self.settings.media_hosts).routes())
        api = await self.stack.enter_async_context(served(app, self.graph))
        self.proxy.target = int(api.url.rsplit(":", 1)[1])

    async def restart(self) -> None:
        """Stop the server, and start another on a new port."""
        await self.stack.aclose()
        self.stack = AsyncExitStack()
        await self.start()

    async def open(self, page: str, login: str, **options: Any) -> None:
        """Open the app in a new page with a session of a user."""
        [user] = await self.graph.users.ids_of_logins([login])
        assert user is not None
        token = Tokens([KEY]).issue(await self.graph.sessions.start(user))
        place = {"domain": "127.0.0.1", "path": "/", "httpOnly": True, "secure": True, "sameSite": "Lax"}
        cookie = {"name": COOKIE, "value": token, **place}
        await self.browser.do("open", page, user=page, url=self.url, cookie=cookie, **options)
        await self.browser.do("see", page, role="button", name="Publish")

    async def log_in(self, page: str, login: str, password: str = PASSWORD, **options: Any) -> None:
        """Open the app in a new page and log in."""
        await self.browser.do("open", page, user=page, url=self.url, **options)
        await self.browser.do("fill", page, label="Login", text=login)
        await self.browser.do("fill", page, label="Password", text=password)
        await self.browser.do("click", page, role="button", name="Log in")
        await self.browser.do("see", page, role="button", name="Publish")

    async def hears(self, pages: int, more: int = 0) -> None:
        """Wait until so many pages listen to posts, followers and notifications, and for `more` other streams."""
        await until(lambda: len(self.app.state.graph.feed) == 3 * pages + more)

    async def check(self, page: str, viewer: int) -> None:
        """Assert that the page shows each post of the home timeline once, in order, within some seconds."""
        deadline = asyncio.get_running_loop().time() + TIMEOUT
        while asyncio.get_running_loop().time() < deadline:
            if not await self.differs(page, viewer):
                break
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)  # for what must not arrive any more
        difference = await self.differs(page, viewer)
        assert not difference

    async def differs(self, page: str, viewer: int) -> str:
        """Scroll through the home timeline. Return how it differs from the server's, or an empty string."""
        found = await self.graph.posts.get_many(SYSTEM, await home(self.graph, viewer))
        expected = [post.text for post in found if post]
        shown = await self.browser.do("posts", page, enough=len(expected))
        if shown == expected:
            return ""
        first = next((at for at, (one, other) in enumerate(zip(shown, expected, strict=False)) if one != other), "end")
        return f"{len(shown)} posts instead of {len(expected)}; the first difference is at {first}: {shown[:50]}"

    async def outage(self) -> None:
        """Reset all connections, including new ones, until cancelled."""
        assert self.proxy.cut() > 0
        while True:
            await asyncio.sleep(0.05)
            self.proxy.cut()


@asynccontextmanager
async def staged(graph: Graph, settings: Settings, chromium: Chromium) -> AsyncIterator[Stage]:
    """Serve the built app as in production, but over HTTP, so its origin must be listed."""
    async with proxied(0, chromium.listening) as proxy, chromium.connected() as browser:
        origins = (*settings.allowed_origins, proxy.url)
        patient = {"load_shedding": False, "deadline": timedelta(minutes=1)}  # on a busy machine
        own = settings.model_copy(update={"worker": True, "env": Env.PRODUCTION, "allowed_origins": origins, **patient})
        stage = Stage(graph, own, proxy, browser)
        await stage.start()
        try:
            yield stage
        finally:
            await stage.stack.aclose()
