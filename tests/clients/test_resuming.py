"""Clients that other people wrote lose their connections while posts are published, resume, and miss nothing."""

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
from tests.clients.test_clients import FOLDER, node
from tests.support.graph_worlds import background, befriend, people

__all__ = ["node"]

PINGING = ("graphql-ws.mjs", "events.mjs", "urql.mjs", "apollo.mjs", "with_gql.py")
CLIENTS = (*PINGING, "graphql-sse.mjs", "urql-fetch.mjs")
ALL = (*CLIENTS, "eventsource.mjs")  # which waits for three seconds before it comes back
SECRET = "a-key-for-tests-that-is-long-enough-for-servers"
PATIENCE = 60.0  # seconds, in which a client is started, or comes back after an outage
PAUSE = 0.05  # seconds between posts


@dataclass
class Client:
    """A running program and the numbers it has shown so far, which are the posts' texts, and what it complained of."""

    name: str
    process: asyncio.subprocess.Process
    shown: list[int] = field(default_factory=list)
    complaints: str = ""
    silent: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Note what it shows, until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.shown.append(int(json.loads(line)))

    async def listen_for_complaints(self) -> None:
        """Note what it complains of, until it ends."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.complaints += line.decode()
        self.silent.set()

    async def give_up(self) -> str:
        """Wait until it has ended by itself; give what it said."""
        async with asyncio.timeout(PATIENCE):
            await self.silent.wait()
            assert await self.process.wait() == 1
        return self.complaints

    async def see(self, post: int) -> None:
        """Wait until it has shown a post."""
        while not self.shown or self.shown[-1] < post:
            assert self.process.returncode is None, f"{self.name} has given up: {self.complaints}"
            await asyncio.sleep(0.02)


@dataclass
class Stage:
    """Where clients listen, for numbers that an author publishes without a pause; a stranger's posts are not theirs."""

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
        """Publish on and on, whatever happens to the servers, until the block ends."""
        enough = asyncio.Event()

        async def publish() -> None:
            while not enough.is_set():
                await self.graph.posts.publish(self.author, str(self.published + 1))
                self.published += 1
                await self.graph.posts.publish(self.stranger, "-1")
                await asyncio.sleep(PAUSE)

        async with asyncio.TaskGroup() as group:
            group.create_task(publish())
            yield
            enough.set()

    @asynccontextmanager
    async def listening(self, port: int, *names: str) -> AsyncIterator[None]:
        """Run programs that listen at a port; kill them in the end."""
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
                await stack.enter_async_context(background(self.clients[-1].listen_for_complaints()))
            yield

    async def see(self, post: int, names: Sequence[str] = ALL) -> None:
        """Wait until clients have shown a post."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(client.see(post) for client in self.clients if client.name in names))

    def check(self) -> None:
        """See that every client has shown every post once and in order, from the first that it has shown."""
        for client in self.clients:
            expected = list(range(client.shown[0], self.published + 1))
            missing, twice = {*expected} - {*client.shown}, len(client.shown) - len({*client.shown})
            assert (missing, twice, client.shown) == (set(), 0, expected), client.name
            assert client.complaints == "", client.name


def kill(process: asyncio.subprocess.Process) -> None:
    """End a program, if it has not ended by itself."""
    if process.returncode is None:
        process.kill()


@pytest.fixture
async def stage(graph: Graph, store_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """Serve from a process of its own; the store is another one."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    token = Tokens([SECRET]).issue(await graph.sessions.start(alice))
    environment = {"FANLINE_STORE_URL": store_url, "FANLINE_DATA_DIR": str(tmp_path), "FANLINE_SECRET": SECRET}
    servers = [Server(tmp_path / f"{n}.log", **environment) for n in range(2)]
    try:
        await servers[0].start()
        async with proxied(servers[0].port) as proxy:
            yield Stage(graph, *servers, proxy, alice, bob, carol, token)
    finally:
        for server in servers:
            await server.end(signal.SIGKILL)


Outage: TypeAlias = Callable[[Stage], Awaitable[None]]


async def the_network_fails(stage: Stage) -> None:
    """Connections go dead and nobody is told, as when a phone changes its network: clients that ping leave them.

    Then all are reset, and for a second whoever comes back is too, at whatever it does then.
    """
    stage.proxy.freeze()
    await stage.see(stage.published + 2, PINGING)
    assert stage.proxy.cut() >= len(CLIENTS)
    for _ in range(20):
        await asyncio.sleep(0.05)
        stage.proxy.cut()


async def the_server_is_killed(stage: Stage) -> None:
    """SIGKILL, and the same port again."""
    await stage.server.end(signal.SIGKILL)
    await stage.server.start()


async def the_server_is_replaced(stage: Stage) -> None:
    """A rolling restart: the proxy turns to the other server, and then SIGTERM ends the one before."""
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
    """Page and stream, or a stream of one person's events, give every post once and in order, and no others."""
    port = stage.server.port if outage is the_server_is_killed else stage.proxy.port
    async with stage.listening(port, *programs):
        async with stage.publishing():
            await stage.see(stage.published + 2)
            await outage(stage)
            await stage.see(stage.published + 2)
        await stage.see(stage.published)

    stage.check()


@pytest.mark.parametrize(("program", "said"), [("with_gql.py", "log in again"), ("graphql-ws.mjs", "4403")])
async def test_a_client_gives_up_when_its_session_is_over(stage: Stage, node: str, program: str, said: str) -> None:
    """A log-out closes the socket with 4403, and the program ends and says so: nothing it could come back to."""
    async with stage.listening(stage.server.port, program):
        async with stage.publishing():
            await stage.see(stage.published)
            await stage.see(stage.published + 2)  # later than its page: it listens
        await stage.graph.sessions.end(stage.viewer)
        assert said in await stage.clients[0].give_up()


async def test_a_client_gives_up_when_its_token_is_bad(stage: Stage, node: str) -> None:
    """It is told when it first connects, and says so instead of trying again."""
    stage.token = "bad"
    async with stage.listening(stage.server.port, "with_gql.py"):
        assert "log in again" in await stage.clients[0].give_up()
