"""Programs with a live list in the cache of Relay, Apollo Client or urql, on a server behind a proxy."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from graph.visibility import SYSTEM
from server.auth import Tokens
from server.settings import Settings
from tests.clients.outages import Proxy, proxied
from tests.clients.test_clients import FOLDER, node
from tests.conftest import need
from tests.server.conftest import KEY, serving, settings
from tests.support.graph_worlds import PATIENCE, befriend, home, many_posts, people

__all__ = ["node", "settings"]

KIT = FOLDER / "kit"
CACHES = ("relay", "apollo", "urql")
DELAY = 2.5  # seconds that a response is held back


@dataclass
class Timeline:
    """A running program with a timeline in its cache, of which it prints the texts after each command."""

    name: str
    process: asyncio.subprocess.Process
    texts: list[str] = field(default_factory=list)
    has_next: bool = True
    refetches: int = 0
    unread: int | None = None
    quotes: int = 0

    async def read(self) -> None:
        """Read the list that the program prints next."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        assert line, f"{self.name} has exited: {await self.problem()}"
        answer: dict[str, Any] = json.loads(line)
        self.texts, self.has_next, self.refetches = answer["texts"], answer["hasNext"], answer["refetches"]
        self.unread, self.quotes = answer.get("unread"), answer["quotes"]

    async def send(self, command: str, **values: int) -> None:
        """Send a command and read the list."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"command": command, **values}).encode() + b"\n")
        await self.read()

    async def ended(self) -> None:
        """Wait until the program exits because of the end of the session."""
        try:
            async with asyncio.timeout(PATIENCE):
                problem = await self.problem()
        except TimeoutError:
            pytest.fail(f"{self.name} goes on")
        assert await self.process.wait() == 1
        assert "4403" in problem, problem

    async def problem(self) -> str:
        """Return the standard error of the program, which ends."""
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def sees(self, text: str) -> None:
        """Wait until a post is at the top of the list."""
        async with asyncio.timeout(PATIENCE):
            while self.texts[:1] != [text]:
                await asyncio.sleep(0.05)
                await self.send("list")

    async def shows(self, texts: list[str]) -> None:
        """Wait until the list begins with these texts, then load all other pages. Assert that they are the same."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self.texts[: len(texts)] != texts[: len(self.texts)]:
                    await asyncio.sleep(0.05)
                    await self.send("list")
        except TimeoutError:
            pass  # the comparison shows the difference
        async with asyncio.timeout(PATIENCE):
            while self.has_next and len(self.texts) <= len(texts):
                await self.send("next")
        assert self.texts == texts, self.name


def kill(process: asyncio.subprocess.Process) -> None:
    """End a program that may have exited."""
    with suppress(ProcessLookupError):
        process.kill()


@dataclass
class Stage:
    """A server behind a proxy, and the users: the viewer follows the author."""

    graph: Graph
    settings: Settings
    proxy: Proxy
    viewer: int
    author: int
    stranger: int
    token: str
    artifacts: Path
    timelines: list[Timeline] = field(default_factory=list)
    server: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Start the server, and let the proxy forward to it."""
        api = await self.server.enter_async_context(serving(self.settings, self.graph))
        self.proxy.target = int(api.url.rsplit(":", 1)[1])

    async def restart(self, **changed: int) -> None:
        """End the server, and start another on a port of its own, with some settings changed."""
        await self.server.aclose()
        self.settings = self.settings.model_copy(update=changed)
        await self.start()

    @asynccontextmanager
    async def open(self, *arguments: str, caches: Sequence[str] = CACHES, shows: str = "home") -> AsyncIterator[None]:
        """Run the programs until the block ends."""
        async with AsyncExitStack() as stack:
            for name in caches:
                process = await asyncio.create_subprocess_exec(
                    "node",
                    f"{name}.mjs",
                    f"http://127.0.0.1:{self.proxy.port}/graphql",
                    f"ws://127.0.0.1:{self.proxy.port}/graphql",
                    self.token,
                    *arguments,
                    cwd=KIT,
                    env=os.environ | {"ARTIFACTS": str(self.artifacts), "SHOWS": shows},
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                stack.push_async_callback(process.wait)
                stack.callback(kill, process)
                self.timelines.append(Timeline(name, process))
            await self.each(Timeline.read)
            yield

    async def each(self, action: Callable[[Timeline], Awaitable[None]]) -> None:
        """Do something with all timelines at once."""
        await asyncio.gather(*(action(timeline) for timeline in self.timelines))

    async def check(self) -> None:
        """Assert that each cache has each post of the server once, in order."""
        await asyncio.sleep(0.3)  # for what must not arrive any more
        records = await self.graph.posts.get_many(SYSTEM, await home(self.graph, self.viewer))
        texts = [post.text for post in records if post]
        await self.each(lambda timeline: timeline.shows(texts))


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the documents of the Relay program."""
    need((FOLDER.parents[1] / "client" / "dist" / "index.js").exists(), "`npm install` in client")
    app = tmp_path_factory.mktemp("relay")
    (app / "package.json").write_text('{"type": "module"}')
    shutil.copy(FOLDER.parents[1] / "schema.graphql", app)
    shutil.copytree(KIT / "relay", app / "src")
    config = {"src": "./src", "schema": "./schema.graphql", "language": "javascript", "eagerEsModules": True}
    (app / "relay.config.json").write_text(json.dumps(config))
    command = ["node", str(FOLDER / "node_modules/relay-compiler/cli.js"), "relay.config.json"]
    compiled = subprocess.run(command, cwd=app, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return app / "src" / "__generated__"


@asynccontextmanager
async def staged(graph: Graph, settings: Settings, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts: three pages."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await many_posts(graph, bob, 50)
    token = Tokens([KEY]).issue(await graph.sessions.start(alice))
    async with proxied(0) as proxy, AsyncExitStack() as server:
        stage = Stage(graph, settings, proxy, alice, bob, carol, token, artifacts, server=server)
        await stage.start()
        yield stage


@pytest.fixture
async def stage(graph: Graph, settings: Settings, node: str, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts, with a worker."""
    async with staged(graph, settings.model_copy(update={"worker": True}), artifacts) as stage:
        yield stage
