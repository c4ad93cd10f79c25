"""A hand-written ASGI application with the hand-written answers: token, session, body, JSON, and nothing else."""

import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import jwt
import orjson
import uvicorn

from benchmarks.peers.handwritten import Answers, Client, Ended
from benchmarks.peers.raw_client import RawClient
from benchmarks.peers.redis_py import RedisPyClient

Message: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Claims: TypeAlias = tuple[str, str, float]

JSON = (b"content-type", b"application/json")


class CountingClient(Client, Protocol):
    """A client that counts its round trips and finds users by login."""

    round_trips: int

    async def find(self, login: str) -> str:
        """Return a user's id."""


class Application:
    """Answers the known documents for users with a token. A verified token is remembered until it expires."""

    def __init__(self, connected: AbstractAsyncContextManager[CountingClient], key: str) -> None:
        self._connected = connected
        self._key = key
        self._claims: dict[bytes, Claims] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        if scope["path"] == "/stats":
            return await self._send(send, 200, {"round_trips": self._client.round_trips})
        for name, value in scope["headers"]:
            if name == b"authorization":
                claims = self._claims.get(value) or self._verify(value)
                break
        else:
            claims = None
        if claims is None or claims[2] <= time.time():
            return await self._send(send, 401, {"errors": [{"message": "Log in."}]})
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        asked = orjson.loads(body)
        try:
            data = await self._answers[asked["query"]](claims[0], claims[1], asked.get("variables"))
        except Ended:
            return await self._send(send, 401, {"errors": [{"message": "The session has ended."}]})
        return await self._send(send, 200, {"data": data})

    async def _send(self, send: Send, status: int, content: Message) -> None:
        body = orjson.dumps(content)
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _verify(self, authorization: bytes) -> Claims | None:
        try:
            claims = jwt.decode(authorization.removeprefix(b"Bearer "), self._key, ["HS256"])
            found = self._claims[authorization] = (claims["sub"], claims["sid"], claims["exp"])
        except (jwt.InvalidTokenError, KeyError):
            return None
        return found

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._connected as client:
            self._client = client
            self._answers = Answers(client, client.find).by_document
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def raw_client(url: str) -> AsyncIterator[RawClient]:
    """Yield the raw client."""
    client = await RawClient.connect(url)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def redis_py_client(url: str) -> AsyncIterator[RedisPyClient]:
    """Yield redis-py's client."""
    client = RedisPyClient(url)
    try:
        yield client
    finally:
        await client.close()


def ceiling(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of the application with the raw client."""
    return configured(Application(raw_client(url), key))


def asgi_redis_py(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of the application with redis-py."""
    return configured(Application(redis_py_client(url), key))


def configured(app: Application) -> uvicorn.Config:
    """Return a uvicorn configuration for speed, and make garbage collections rare, as Fanline does."""
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    return config
