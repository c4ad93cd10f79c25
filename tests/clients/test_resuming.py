"""Third-party clients lose their connections while posts are published, resume, and miss nothing."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

from graph import Graph
from server.auth import Tokens
from tests.clients.outages import Proxy, Server, proxied
from tests.clients.programs import FOLDER, node
from tests.support.graph_worlds import background, befriend, people
from tests.support.graphs import archive_url_of

pytestmark = pytest.mark.slow

__all__ = ["node"]

PINGING = ("graphql-ws.mjs", "events.mjs", "urql.mjs", "apollo.mjs", "with_gql.py")
CLIENTS = (*PINGING, "graphql-sse.mjs", "urql-fetch.mjs")
ALL = (*CLIENTS, "eventsource.mjs")  # EventSource reconnects after three seconds
SECRET = "a-key-for-tests-that-is-long-enough-for-servers"
TIMEOUT = 60.0  # seconds for a client to start, or to reconnect after an outage
PAUSE = 0.05  # seconds between posts


@dataclass
class Client:
    """A running program, the posts' texts (numbers) that it has printed, and its standard error."""

    name: str
    process: asyncio.subprocess.Process
    shown: list[int] = field(default_factory=list)
    errors: str = ""
    errors_closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Collect the numbers that the program prints until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.shown.append(int(json.loads(line)))

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
    """The servers, clients and users of a test.

    The author publishes numbers and the viewer follows the author. The stranger's posts must not arrive.
    """

    graph: Graph
    server: Server
    second: Server
    proxy: Proxy
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
    async def listening(self, port: int, *names: str) -> AsyncIterator[None]:
        """Run programs that subscribe at a port, and kill them when the block ends."""
        async with AsyncExitStack() as stack:
            for name in names:
                program = (sys.executable, "-W", "error") if name.endswith(".py") else ("node",)
                process = await asyncio.create_subprocess_exec(
                    *program,
                    name,
                    f"http://127.0.0.1:{port}/graphql",
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
        """Wait until every client has printed a post from its subscription, not only those of its page."""
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
async def stage(graph: Graph, store_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """Serve from a separate process, like the store."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    token = Tokens([SECRET]).issue(await graph.sessions.start(alice))
    environment = {
        "FANLINE_STORE_URL": store_url,
        "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
        "FANLINE_DATA_DIR": str(tmp_path),
        "FANLINE_SECRET": SECRET,
    }
    servers = [Server(tmp_path / f"{n}.log", **environment) for n in range(2)]
    try:
        await servers[0].start()
        async with proxied(servers[0].port) as proxy:
            yield Stage(graph, servers[0], servers[1], proxy, alice, bob, carol, token)
    finally:
        for server in servers:
            await server.end(signal.SIGKILL)


Outage: TypeAlias = Callable[[Stage], Awaitable[None]]


async def the_network_fails(stage: Stage) -> None:
    """Freeze all connections, as when a phone changes its network, so that only pings detect it.

    Then reset all connections, and all new ones for a second.
    """
    stage.proxy.freeze()
    await stage.see(stage.published + 2, PINGING)
    assert stage.proxy.cut() >= len(CLIENTS)
    for _ in range(20):
        await asyncio.sleep(0.05)
        stage.proxy.cut()


async def the_server_is_killed(stage: Stage) -> None:
    """Kill the server with SIGKILL and restart it on the same port."""
    await stage.server.end(signal.SIGKILL)
    await stage.server.start()


async def the_server_is_replaced(stage: Stage) -> None:
    """Do a rolling restart: point the proxy to the other server, then end the first with SIGTERM."""
    await stage.second.start()
    stage.proxy.target = stage.second.port
    await stage.server.end(signal.SIGTERM)
    stage.server, stage.second = stage.second, stage.server


@pytest.mark.parametrize(
    ("outage", "programs"),
    [
        (the_network_fails, CLIENTS),
        (the_server_is_killed, ALL),
        (the_server_is_replaced, ALL),
    ],
    ids=["network", "killed", "replaced"],
)
@pytest.mark.timeout(300)
async def test_every_client_resumes_and_misses_nothing(
    stage: Stage, node: str, outage: Outage, programs: Sequence[str]
) -> None:
    """A page with its subscription, or a stream of one user's events, has every post once, in order, and no others."""
    port = stage.server.port if outage is the_server_is_killed else stage.proxy.port
    async with stage.listening(port, *programs):
        async with stage.publishing():
            await stage.see_live()
            await outage(stage)
            await stage.see(stage.published + 2)
        await stage.see(stage.published)

    stage.check()


@pytest.mark.parametrize(("program", "said"), [("with_gql.py", "log in again"), ("graphql-ws.mjs", "4403")])
async def test_a_client_exits_when_its_session_ends(stage: Stage, node: str, program: str, said: str) -> None:
    """A log-out closes the socket with 4403, and the program does not reconnect."""
    async with stage.listening(stage.server.port, program):
        async with stage.publishing():
            await stage.see_live()
        await stage.graph.sessions.end(stage.viewer)
        assert said in await stage.clients[0].exit()


async def test_a_client_exits_when_its_token_is_invalid(stage: Stage, node: str) -> None:
    """The first connection fails, and the program does not try again."""
    stage.token = "bad"
    async with stage.listening(stage.server.port, "with_gql.py"):
        assert "log in again" in await stage.clients[0].exit()
