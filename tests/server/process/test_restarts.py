"""Restarts of real processes: clients reconnect with their cursor, and miss no event."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from graph import Graph
from server.auth import Tokens
from tests.server.cli.test_commands import CLEAN, FANLINE, free_port
from tests.server.conftest import Socket, events, until
from tests.support.graph_worlds import PATIENCE, background
from tests.support.graphs import archive_url_of

pytestmark = pytest.mark.slow

SECRET = "a-key-of-restarts-that-is-long-enough"
LIVE = """subscription ($after: String) {
  homeTimeline(after: $after) { __typename cursor ... on PostAdded { post { text } } }
}"""
PUBLISH = "mutation ($input: PublishPostInput!) { publishPost(input: $input) { post { text } } }"


class Served:
    """A server process that can be ended and started again on the same port."""

    def __init__(self, folder: Path, store_url: str, *options: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "log"
        self._command = [*FANLINE, "serve", "--port", str(port), *options]
        self._environment = CLEAN | {
            "FANLINE_STORE_URL": store_url,
            "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
            "FANLINE_DATA_DIR": str(folder),
            "FANLINE_SECRET": SECRET,
        }

    async def start(self) -> None:
        """Start the server and wait until it is ready."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command, env=self._environment, stderr=log, start_new_session=True
            )
        async with httpx.AsyncClient(timeout=PATIENCE) as client, asyncio.timeout(PATIENCE):
            while self.process.returncode is None:
                with suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/health/ready")).status_code == 200:
                        return
                await asyncio.sleep(0.05)
        raise AssertionError(self.log.read_text())

    async def end(self, by: signal.Signals) -> int:
        """Send a signal to the server and return its exit code."""
        self.process.send_signal(by)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def served(folder: Path, store_url: str, *options: str) -> AsyncIterator[Served]:
    """Run a server. Check at the end that it stops with exit code 0, and that its log has no traceback."""
    api = Served(folder, store_url, *options)
    try:
        await api.start()
        yield api
        assert api.process.returncode is not None or await api.end(signal.SIGTERM) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(api.process.pid, signal.SIGKILL)
    assert "Traceback" not in api.log.read_text()


class Listener:
    """A client that reconnects with the cursor of the last event, and records posts and disconnects."""

    def __init__(self, api: Served, token: str) -> None:
        self.url = f"{api.url}/graphql"
        self.authorization = f"Bearer {token}"
        self.after: str | None = None
        self.texts: list[str] = []
        self.cuts: list[object] = []

    async def listen(self) -> None:
        """Listen until cancelled, and reconnect after each disconnect."""
        while True:
            with suppress(OSError, InvalidHandshake, ConnectionClosed, httpx.TransportError):
                await self._listen()
            await asyncio.sleep(0.05)

    async def _listen(self) -> None:
        """Listen until disconnected, and record how the connection ended."""
        raise NotImplementedError

    def take(self, result: Any) -> None:
        """Record an event."""
        event = result["data"]["homeTimeline"]
        self.after = event["cursor"]
        assert event["__typename"] in ("Checkpoint", "PostAdded")
        if event["__typename"] == "PostAdded":
            self.texts.append(event["post"]["text"])


class SocketListener(Listener):
    """A client that subscribes over WebSocket, with its cursor as `after`."""

    async def _listen(self) -> None:
        url, protocols = self.url.replace("http", "ws", 1), [Subprotocol("graphql-transport-ws")]
        async with connect(url, subprotocols=protocols, open_timeout=PATIENCE) as connection:
            socket = Socket(connection)
            await socket.send(type="connection_init", payload={"authorization": self.authorization})
            try:
                assert await socket.receive() == {"type": "connection_ack"}
                await socket.subscribe("1", LIVE, after=self.after)
                while True:
                    message = json.loads(await connection.recv())
                    if message["type"] != "ping":
                        self.take(message["payload"])
            finally:
                self.cuts.append(connection.close_code)


class StreamListener(Listener):
    """A client that subscribes over server-sent events, with its cursor as `Last-Event-ID`."""

    async def _listen(self) -> None:
        headers = {"accept": "text/event-stream", "authorization": self.authorization}
        if self.after:
            headers["last-event-id"] = self.after
        async with (
            httpx.AsyncClient(timeout=PATIENCE) as client,
            client.stream("POST", self.url, json={"query": LIVE}, headers=headers) as response,
        ):
            names = []
            try:
                async for event in events(response):
                    names.append(event.name)
                    self.take(event.data)
            finally:
                if names:  # a process that ends may end a new stream before its first event
                    self.cuts.append(names[-1:])


@pytest.fixture
async def alice(graph: Graph) -> tuple[int, str]:
    """Sign alice up and return her id and a token."""
    user = await graph.users.sign_up("alice", "correct horse", "Alice")
    return user.id, Tokens([SECRET]).issue(await graph.sessions.start(user.id))


async def test_clients_miss_nothing_in_a_restart(
    graph: Graph, store_url: str, tmp_path: Path, alice: tuple[int, str]
) -> None:
    """On SIGTERM, sockets close with 1012 and streams end without `complete`; on SIGKILL, connections break."""
    author, token = alice
    async with served(tmp_path, store_url) as api, AsyncExitStack() as stack:
        listeners = [kind(api, token) for kind in (SocketListener, StreamListener) for _ in range(2)]
        for listener in listeners:
            await stack.enter_async_context(background(listener.listen()))
        published: list[str] = []

        async def publish_and_wait(text: str) -> None:
            published.append(text)
            await graph.posts.publish(author, text)
            await until(lambda: all(listener.texts == published for listener in listeners))

        await until(lambda: all(listener.after for listener in listeners))
        await publish_and_wait("before")
        for by, code, close_code in ((signal.SIGTERM, 0, 1012), (signal.SIGKILL, -signal.SIGKILL, 1006)):
            for listener in listeners:
                listener.cuts.clear()
            assert await api.end(by) == code
            published.append(f"after {by.name}")
            await graph.posts.publish(author, published[-1])
            await until(lambda: all(listener.cuts for listener in listeners))
            cuts = [listener.cuts[0] for listener in listeners]
            assert cuts == [close_code] * 2 + [["next"]] * 2
            await api.start()
            await publish_and_wait(f"restarted after {by.name}")


async def test_several_processes_are_replaced_one_by_one(
    graph: Graph, store_url: str, tmp_path: Path, alice: tuple[int, str]
) -> None:
    """During a reload by SIGHUP, every request is answered, and subscribers are told to reconnect and miss nothing."""
    _, token = alice
    async with served(tmp_path, store_url, "--workers", "2") as api, AsyncExitStack() as stack:
        answered: list[int] = []
        clients = [await stack.enter_async_context(background(ask(api, answered))) for _ in range(4)]
        listeners = [kind(api, token) for kind in (SocketListener, StreamListener) for _ in range(3)]
        for listener in listeners:
            await stack.enter_async_context(background(listener.listen()))
        await until(lambda: all(listener.after for listener in listeners))
        before = workers_of(api)
        api.process.send_signal(signal.SIGHUP)
        published: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while not all(listener.cuts for listener in listeners):
                published.append(f"post {len(published)}")
                await publish(api, token, published[-1])
                await asyncio.sleep(0.05)
        async with asyncio.timeout(PATIENCE):
            while any(listener.texts != published for listener in listeners):  # noqa: ASYNC110 - listeners signal nothing
                await asyncio.sleep(0.05)
        assert {str(cut) for listener in listeners for cut in listener.cuts} == {"1012", "['next']"}
        await replaced(api, before)
        assert await failures(clients, answered) == []


async def ask(api: Served, answered: list[int]) -> None:
    """Send one request after another over a persistent connection, without retries. Record the answers."""
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        while True:
            response = await client.post(f"{api.url}/graphql", json={"query": "{ viewer { user { login } } }"})
            assert response.status_code == 200
            answered.append(response.status_code)
            await asyncio.sleep(0.02)  # requests without pauses would leave no time for the new processes


@pytest.mark.long
async def test_reloads_answer_every_request(
    graph: Graph, store_url: str, tmp_path: Path, alice: tuple[int, str]
) -> None:
    """There are more clients, and one reload after another."""
    answered: list[int] = []
    async with served(tmp_path, store_url, "--workers", "2") as api, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(background(ask(api, answered))) for _ in range(8)]
        for _ in range(20):
            before = workers_of(api)
            api.process.send_signal(signal.SIGHUP)
            await replaced(api, before)
        lost = await failures(clients, answered)
        print(f"{len(answered)} requests, {len(lost)} lost")
        assert not lost


async def replaced(api: Served, before: set[str]) -> None:
    """Wait until all workers of a server have been replaced."""
    async with asyncio.timeout(PATIENCE):
        while before & workers_of(api) or len(workers_of(api)) < len(before):  # noqa: ASYNC110 - no signal
            await asyncio.sleep(0.05)


async def failures(clients: Sequence["asyncio.Task[None]"], answered: list[int]) -> list[str]:
    """Wait until 100 more requests are answered, or one is not. Return the reasons of those that are not."""
    goal = len(answered) + 100
    await until(lambda: len(answered) >= goal or any(client.done() for client in clients))
    return [repr(client.exception()) for client in clients if client.done()]


def workers_of(api: Served) -> set[str]:
    """Return the process ids of the workers of a server. Each of them has a name, unlike helpers of multiprocessing."""
    pid, found = api.process.pid, set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                found.add(child)
    return found


async def publish(api: Served, token: str, text: str) -> None:
    """Publish through the API. Retry with the same idempotency key if the connection breaks before the response."""
    body = {"query": PUBLISH, "variables": {"input": {"text": text, "idempotencyKey": text}}}
    async with asyncio.timeout(PATIENCE):
        while True:
            async with httpx.AsyncClient(timeout=PATIENCE) as client:
                with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
                    answer = await client.post(
                        f"{api.url}/graphql", json=body, headers={"authorization": f"Bearer {token}"}
                    )
                    assert answer.json() == {"data": {"publishPost": {"post": {"text": text}}}}
                    return
