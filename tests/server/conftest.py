"""A real server on a real port, with users and simple clients."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import uvicorn
from argon2 import PasswordHasher
from starlette.routing import WebSocketRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from graph import Graph
from graph.model import Credentials
from graph.passwords.hashing import Hashing
from server.app import Application, create_app
from server.auth import Tokens
from server.endpoint.endpoint import GraphQLEndpoint
from server.endpoint.websocket_endpoint import WebSocketEndpoint
from server.operations import documents
from server.operations.quotas import Quotas
from server.operations.weights import Weights
from server.serving import configure
from server.settings import Settings
from server.transport import admission
from tests.conftest import SharedStore
from tests.support.graph_worlds import PATIENCE
from tests.support.graphs import archive_url_of, empty, open_graph

KEY = "a key for tests that is long enough"
vars(documents)["Weights"] = cache(Weights)  # walks the whole schema for each application


class Socket:
    """A WebSocket that speaks JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, **message: Any) -> None:
        """Send one message."""
        await self.connection.send(json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        """Wait for the next message that is not a ping."""
        message = {"type": "ping"}
        async with asyncio.timeout(PATIENCE):
            while message == {"type": "ping"}:
                message = json.loads(await self.connection.recv())
        return message

    async def subscribe(self, id: str, query: str, **variables: Any) -> None:
        """Start an operation."""
        await self.send(type="subscribe", id=id, payload={"query": query, "variables": variables})

    async def closed(self) -> tuple[int | None, str | None]:
        """Wait until the socket closes, skipping messages. Return its code and reason."""
        with contextlib.suppress(ConnectionClosed):
            async with asyncio.timeout(PATIENCE):
                while True:
                    await self.connection.recv()
        return self.connection.close_code, self.connection.close_reason


@dataclass(frozen=True)
class Streamed:
    """One server-sent event."""

    name: str
    data: Any
    id: str | None = None


async def events(response: httpx.Response) -> AsyncGenerator[Streamed, None]:
    """Yield the events of a stream until it ends."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            data = fields.get("data", "").strip()
            yield Streamed(fields["event"], json.loads(data) if data else None, fields.get("id"))
            fields = {}


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(0.01)


class Api:
    """A served application and a client of it."""

    def __init__(self, server: uvicorn.Server, app: Application, graph: Graph, client: httpx.AsyncClient) -> None:
        self.server = server
        self.app = app
        self.url = str(client.base_url)
        self.graph = graph
        self.client = client

    async def session(self, login: str) -> Credentials:
        """Sign up a user and start a session."""
        user = await self.graph.users.sign_up(login, "correct horse", login.title())
        return await self.graph.sessions.start(user.id)

    async def log_in(self, login: str) -> Credentials:
        """Sign up a user and start a session in the served process, which then records no use of it for an hour."""
        user = await self.graph.users.sign_up(login, "correct horse", login.title())
        served: Graph = self.app.state.graph
        return await served.sessions.start(user.id)

    async def token(self, login: str) -> str:
        """Sign up a user and return a token."""
        return Tokens([KEY]).issue(await self.session(login))

    @asynccontextmanager
    async def stream(self, query: str, token: str | None = None, **headers: str) -> AsyncIterator[httpx.Response]:
        """Post an operation whose results are streamed as server-sent events."""
        sent = {"accept": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if token:
            sent["authorization"] = f"Bearer {token}"
        async with (
            httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client,
            client.stream("POST", "/graphql", json={"query": query}, headers=sent) as response,
        ):
            yield response

    async def ask(self, query: str, token: str | None = None, /, **variables: Any) -> httpx.Response:
        """Post an operation."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        body = {"query": query, "variables": variables}
        return await self.client.post("/graphql", json=body, headers=headers)

    @property
    def endpoint(self) -> GraphQLEndpoint:
        """The endpoint that is served."""
        return self.app.endpoint

    @property
    def websockets(self) -> WebSocketEndpoint:
        """The endpoint that serves WebSockets."""
        [route] = [route for route in self.app.routes if isinstance(route, WebSocketRoute)]
        assert isinstance(route.app, WebSocketEndpoint)
        return route.app

    @property
    def quotas(self) -> Quotas:
        """The quotas of the process."""
        return self.endpoint.callers.quotas

    @asynccontextmanager
    async def open_socket(self, *protocols: str, **headers: str) -> AsyncIterator[Socket]:
        """Open a socket without sending `connection_init`."""
        url = self.url.replace("http", "ws", 1) + "/graphql"
        offered: Any = protocols or ("graphql-transport-ws",)
        async with connect(url, subprotocols=offered, additional_headers=headers, open_timeout=PATIENCE) as connection:
            yield Socket(connection)

    @asynccontextmanager
    async def socket(self, token: str | None = None) -> AsyncIterator[Socket]:
        """Open a socket and wait for its acknowledgement."""
        async with self.open_socket() as socket:
            payload = {"authorization": f"Bearer {token}"} if token else {}
            await socket.send(type="connection_init", payload=payload)
            assert await socket.receive() == {"type": "connection_ack"}
            yield socket


@asynccontextmanager
async def serving(settings: Settings, graph: Graph, **options: Any) -> AsyncIterator[Api]:
    """Serve an application on a free port. `graph` gives the test direct access to the same store."""
    async with served(create_app(settings, **options), graph) as api:
        yield api


@asynccontextmanager
async def served(app: Application, graph: Graph) -> AsyncIterator[Api]:
    """Serve this application on a free port, with cheap password hashes."""
    config = configure(app, port=0, log_config=None, timeout_graceful_shutdown=1)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    assert not server.should_exit, "the application did not start"
    app.state.graph.users.hashing = Hashing(PasswordHasher(1, 8, 1))
    await server.on_tick(0)  # as its main loop does, which sets the headers of all responses
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            yield Api(server, app, graph, client)
    finally:
        await end(server)


async def end(server: uvicorn.Server) -> None:
    """Shut a server down, immediately if nothing is open: uvicorn always waits for a tenth of a second."""
    state = server.server_state
    for _ in range(20):  # iterations of the event loop, in which it learns of closed connections
        if state.connections:
            await asyncio.sleep(0)
    if state.connections or state.tasks:
        await server.shutdown()
        return
    for each in server.servers:
        each.close()
    await server.lifespan.shutdown()


@pytest.fixture(autouse=True)
def _no_idle_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no probes while the process is idle, so that tests can count round trips."""
    monkeypatch.setattr(admission, "IDLE_SECONDS", 1e9)


class Clock:
    """The clock of the event loop, which keeps running and which tests can set forward."""

    def __init__(self) -> None:
        self._time = asyncio.get_running_loop().time
        self._ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        return self._time() + self._ahead

    def advance(self, seconds: float) -> None:
        """Set the clock forward."""
        self._ahead += seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that measures the timeouts of the server and its clients in this test."""
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    return clock


@pytest.fixture
def settings(store_url: str, tmp_path: Path) -> Settings:
    """Return settings for the shared store."""
    return Settings(
        store_url=store_url, archive_url=archive_url_of(store_url), data_dir=tmp_path, secret=(KEY,), worker=False
    )


@pytest.fixture
async def api(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that does not run a worker."""
    async with serving(settings, graph) as api:
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_api(running_store: SharedStore, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    """Serve an application to all tests of a module, in the module's event loop. The tests change nothing."""
    url = running_store.url
    empty(url)
    graph = await open_graph(url)
    folder = tmp_path_factory.mktemp("data")
    settings = Settings(store_url=url, archive_url=archive_url_of(url), data_dir=folder, secret=(KEY,), worker=False)
    async with serving(settings, graph) as api:
        yield api
    await graph.close()
