"""Third-party clients lose their connections while posts are published, resume, and miss nothing."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from graph import Graph
from graph.visibility.views import SYSTEM
from server.auth import Tokens
from server.settings import Settings
from tests.clients.outages import Proxy, Server, proxied
from tests.clients.programs import FOLDER
from tests.server.conftest import Api, serving
from tests.support.graph_worlds import background, befriend, people, posts
from tests.support.graphs import archive_url_of

pytestmark = pytest.mark.slow

PINGING = ("graphql-ws.mjs", "events.mjs", "urql.mjs", "apollo.mjs", "with_gql.py")
CLIENTS = (*PINGING, "graphql-sse.mjs", "urql-fetch.mjs")
ALL = (*CLIENTS, "eventsource.mjs")  # which reconnects after three seconds
SECRET = "a-key-for-tests-that-is-long-enough-for-servers"
TIMEOUT = 60.0  # seconds for a client to start, or to reconnect after an outage
PAUSE = 0.1  # seconds between posts


@dataclass
class Client:
    """A running program, the posts' texts (numbers) and the reposts that it has printed, and its standard error."""

    name: str
    process: asyncio.subprocess.Process
    shown: list[int] = field(default_factory=list)
    reposts: list[str] = field(default_factory=list)
    errors: str = ""
    errors_closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Collect the numbers and reposts that the program prints until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            text = json.loads(line)
            if "reposted" in text:
                self.reposts.append(text)
            else:
                self.shown.append(int(text))

    async def read_errors(self) -> None:
        """Collect the standard error until the program ends."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.errors += line.decode()
        self.errors_closed.set()

    async def exit(self) -> str:
        """Wait until the program exits with status 1. Return its standard error."""
        async with asyncio.timeout(TIMEOUT):
            await self.errors_closed.wait()
            assert await self.process.wait() == 1
        return self.errors

    async def see(self, post: int) -> None:
        """Wait until the program has printed a post."""
        while not self.shown or self.shown[-1] < post:
            assert self.process.returncode is None, f"{self.name} has exited: {self.errors}"
            await asyncio.sleep(0.02)


@dataclass
class Stage:
    """The clients and users of a test.

    The author publishes numbers and the viewer follows the author. The stranger's posts must not arrive.
    """

    graph: Graph
    viewer: int
    author: int
    stranger: int
    token: str
    published: int = -1
    clients: list[Client] = field(default_factory=list)

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        """Publish posts until the block ends, independently of the servers."""
        stop = asyncio.Event()

        async def publish() -> None:
            while not stop.is_set():
                await self.graph.posts.publish(self.author, str(self.published + 1))
                self.published += 1
                await self.graph.posts.publish(self.stranger, "-1")
                await asyncio.sleep(PAUSE)

        async with asyncio.TaskGroup() as group:
            group.create_task(publish())
            yield
            stop.set()

    @asynccontextmanager
    async def listening(self, url: str, *names: str) -> AsyncIterator[None]:
        """Run programs that subscribe to a server's updates, and kill them when the block ends."""
        async with AsyncExitStack() as stack:
            for name in names:
                program = (sys.executable, "-W", "error") if name.endswith(".py") else ("node",)
                process = await asyncio.create_subprocess_exec(
                    *program,
                    name,
                    f"{url}/graphql",
                    self.token,
                    "bob",
                    cwd=FOLDER,
                    env=os.environ | {"PING": "1000"},
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                stack.push_async_callback(process.wait)
                stack.callback(kill, process)
                self.clients.append(Client(name, process))
                await stack.enter_async_context(background(self.clients[-1].read()))
                await stack.enter_async_context(background(self.clients[-1].read_errors()))
            yield

    async def see(self, post: int, names: Sequence[str] = ALL) -> None:
        """Wait until clients have printed a post."""
        watched = [client for client in self.clients if client.name in names]
        try:
            async with asyncio.timeout(TIMEOUT):
                await asyncio.gather(*(client.see(post) for client in watched))
        except TimeoutError:
            raise AssertionError({client.name: (post, client.shown[-1:]) for client in watched}) from None

    async def see_live(self) -> None:
        """Wait until every client has printed a post from its subscription, not only the posts of its page."""
        await self.see(self.published)
        await self.see(self.published + 2)

    def check(self) -> None:
        """Assert that every client has printed every post once and in order, from its first one."""
        for client in self.clients:
            expected = list(range(client.shown[0], self.published + 1))
            missing, duplicates = {*expected} - {*client.shown}, len(client.shown) - len({*client.shown})
            assert (missing, duplicates, client.shown) == (set(), 0, expected), client.name
            assert client.errors == "", client.name


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a program that is still running."""
    if process.returncode is None:
        process.kill()


@pytest.fixture
async def stage(graph: Graph, node: str) -> Stage:
    """Create the users."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    return Stage(graph, alice, bob, carol, Tokens([SECRET]).issue(await graph.sessions.start(alice)))


@pytest.fixture
async def servers(store_url: str, tmp_path: Path) -> AsyncIterator[list[Server]]:
    """Return two servers in separate processes that share the store. The first one is running."""
    environment = {
        "FANLINE_STORE_URL": store_url,
        "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
        "FANLINE_DATA_DIR": str(tmp_path),
        "FANLINE_SECRET": SECRET,
    }
    servers = [Server(tmp_path / f"{n}.log", **environment) for n in range(2)]
    try:
        await servers[0].start()
        yield servers
    finally:
        for server in servers:
            await server.end(signal.SIGKILL)


async def the_network_fails(stage: Stage, proxy: Proxy) -> None:
    """Freeze all connections, as when a phone changes networks, so that only pings detect it.

    Then reset all connections, and all new ones for a second.
    """
    proxy.freeze()
    await stage.see(stage.published + 2, PINGING)
    assert proxy.cut() >= len(CLIENTS)
    for _ in range(20):
        await asyncio.sleep(0.05)
        proxy.cut()


async def the_server_is_killed(proxy: Proxy, server: Server) -> None:
    """Kill the server with SIGKILL and restart it. Meanwhile, connections are refused."""
    await server.end(signal.SIGKILL)
    await proxy.close()
    await server.start()
    await proxy.listen()


async def the_server_is_replaced(proxy: Proxy, old: Server, new: Server) -> None:
    """Do a rolling restart: point the proxy to the other server, then end the first with SIGTERM."""
    await new.start()
    proxy.target = new.port
    await old.end(signal.SIGTERM)


@pytest.mark.timeout(300)
async def test_every_client_resumes_and_misses_nothing(stage: Stage, servers: list[Server]) -> None:
    """A page with its subscription, or a stream of one user's events, has every post once, in order, and no others."""
    async with proxied(servers[0].port) as proxy, stage.listening(proxy.url, *ALL):
        async with stage.publishing():
            await stage.see_live()
            await the_network_fails(stage, proxy)
            await stage.see(stage.published + 2, CLIENTS)
            await the_server_is_killed(proxy, servers[0])
            await stage.see(stage.published + 2)
            await the_server_is_replaced(proxy, *servers)
            await stage.see(stage.published + 2)
        await stage.see(stage.published)

    stage.check()


@pytest.fixture
async def api(stage: Stage, settings: Settings) -> AsyncIterator[Api]:
    """Serve in this process."""
    async with serving(settings.model_copy(update={"secret": (SECRET,)}), stage.graph) as api:
        yield api


async def test_every_client_shows_reposts(stage: Stage, api: Api) -> None:
    """A repost on the page and one that arrives later are both shown with the user who reposted and the post."""
    old, new = await posts(stage.graph, stage.stranger, "old", "new")
    await stage.graph.reposts.repost(SYSTEM, stage.author, old)
    await stage.graph.worker().drain()
    async with stage.listening(api.url, *(name for name in ALL if name != "events.mjs")):
        async with asyncio.timeout(TIMEOUT):
            while not all(client.reposts for client in stage.clients):  # noqa: ASYNC110 - no notification
                await asyncio.sleep(0.05)
            await stage.graph.reposts.repost(SYSTEM, stage.author, new)
            while not all(len(client.reposts) > 1 for client in stage.clients):  # noqa: ASYNC110 - no notification
                await asyncio.sleep(0.05)
        for client in stage.clients:
            assert client.reposts == ["bob reposted: old", "bob reposted: new"], client.name
            assert client.errors == "", client.name


async def test_a_client_exits_when_its_session_ends(stage: Stage, api: Api) -> None:
    """A log-out closes the socket with 4403, and the program does not reconnect."""
    said = {"with_gql.py": "log in again", "graphql-ws.mjs": "4403"}
    async with stage.listening(api.url, *said):
        async with stage.publishing():
            await stage.see_live()
        await stage.graph.sessions.end(stage.viewer)
        for client in stage.clients:
            assert said[client.name] in await client.exit()


async def test_a_client_exits_when_its_token_is_invalid(stage: Stage, api: Api) -> None:
    """The first connection fails, and the program does not try again."""
    stage.token = "bad"
    async with stage.listening(api.url, "with_gql.py"):
        assert "log in again" in await stage.clients[0].exit()
