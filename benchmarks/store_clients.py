"""Clients that read from the store, behind one interface: Fanline's own, redis-py, coredis, valkey-glide.

coredis and valkey-glide are in the dependency group `bench`. Without them, their variants are skipped.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis

from graph.store.store import Store

OURS = "fanline"
SECONDS = 5  # the timeout of a read in Fanline; the other clients get the same
HELD_TICKS = 3
MOST_COMMANDS = 100_000
PACKAGES = {"coredis": "coredis", "glide": "valkey-glide"}


@dataclass(frozen=True, slots=True)
class Group:
    """The command `name key word…` for each of several keys. `uniform` is True if Fanline packs the group as one."""

    name: str
    keys: Sequence[str]
    words: tuple[str, ...] = ()
    uniform: bool = True


class Client(Protocol):
    """A client of the store."""

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send all commands together and return their replies in order, in one flat list."""

    async def close(self) -> None:
        """Close all connections."""


class Fanline:
    """Fanline's own read client, used as by resolvers: one call per group, from one task."""

    def __init__(self, url: str) -> None:
        self._store = Store(url)

    def _ask(self, group: Group) -> "asyncio.Future[list[Any]]":
        if group.uniform:
            return self._store.ask_each(group.name, group.keys, group.words, list)
        return self._store.ask([(group.name, key, *group.words) for key in group.keys], list)

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Request each group. The reads leave together."""
        replies: list[Any] = []
        for future in [self._ask(group) for group in groups]:
            replies += await future
        return replies

    async def close(self) -> None:
        """Close the connection."""
        await self._store.close()


class RedisPy:
    """redis-py: a pipeline, or a plain command if there is only one."""

    def __init__(self, url: str) -> None:
        self._redis: Any = Redis.from_url(url, decode_responses=True, protocol=3, socket_timeout=SECONDS)
        self._redis.response_callbacks.clear()

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send one pipeline."""
        commands = [(group.name, key, *group.words) for group in groups for key in group.keys]
        if len(commands) == 1:
            return [await self._redis.execute_command(*commands[0])]
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return list(await pipeline.execute())

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()


class Commands:
    """A client with a method for each command. The commands are sent concurrently on one connection."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send every command separately."""
        calls = call_each(self._client, groups)
        return [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)

    async def close(self) -> None:
        """Do nothing: the owner closes the client."""


class CoredisPipeline(Commands):
    """The pipeline of coredis."""

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send one pipeline."""
        async with self._client.pipeline(transaction=False) as pipeline:
            call_each(pipeline, groups)
        return list(pipeline.results)


class GlideBatch(Commands):
    """The non-atomic batch of valkey-glide."""

    def __init__(self, client: Any, batch: Callable[..., Any]) -> None:
        super().__init__(client)
        self._batch = batch

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send one batch."""
        batch = self._batch(is_atomic=False)
        call_each(batch, groups)
        replies: list[Any] = await self._client.exec(batch, raise_on_error=True)
        return replies


class Gathered:
    """Fanline's rule for collecting reads, in front of another client's batches.

    The reads of three event-loop iterations leave as one batch. Fanline would need this class if another library
    replaced its connections.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: list[tuple[Sequence[Group], asyncio.Future[list[Any]]]] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def read(self, groups: Sequence[Group]) -> list[Any]:
        """Send the commands together with all others of the next three event-loop iterations."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._hold, loop, HELD_TICKS)
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.append((groups, future))
        return await future

    def _hold(self, loop: asyncio.AbstractEventLoop, ticks: int) -> None:
        if ticks:
            loop.call_soon(self._hold, loop, ticks - 1)
            return
        task = loop.create_task(self._send(self._waiting))
        self._waiting = []
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _send(self, waiting: Sequence[tuple[Sequence[Group], "asyncio.Future[list[Any]]"]]) -> None:
        try:
            replies = await self._client.read([group for groups, _ in waiting for group in groups])
        except Exception as error:
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        start = 0
        for groups, future in waiting:
            end = start + sum([len(group.keys) for group in groups])
            if not future.done():
                future.set_result(replies[start:end])
            start = end

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def call_each(target: Any, groups: Sequence[Group]) -> list[Awaitable[Any]]:
    """Call the method of each command on a client, a pipeline or a batch."""
    calls = []
    for group in groups:
        method = getattr(target, group.name.lower())
        if group.words:
            words = list(group.words)
            calls += [method(key, words) for key in group.keys]
        else:
            calls += [method(key) for key in group.keys]
    return calls


def missing() -> list[str]:
    """Return the packages that are not installed, whose variants are skipped."""
    return [name for module, name in PACKAGES.items() if find_spec(module) is None]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[dict[str, Client]]:
    """Connect all installed clients to the store on a unix socket. Fanline's own comes first."""
    path = unquote(urlsplit(url).path)
    clients: dict[str, Client] = {OURS: Fanline(url), "redis-py pipeline": RedisPy(url)}
    async with AsyncExitStack() as stack:
        for client in clients.values():
            stack.push_async_callback(client.close)
        if find_spec("coredis"):
            coredis = importlib.import_module("coredis")
            redis = await stack.enter_async_context(
                coredis.Redis(unix_socket_path=path, decode_responses=True, stream_timeout=SECONDS)
            )
            clients["coredis pipeline"] = CoredisPipeline(redis)
            clients["coredis pipeline, gathered"] = Gathered(CoredisPipeline(redis))
            clients["coredis commands"] = Commands(redis)
        if find_spec("glide"):
            glide = importlib.import_module("glide")
            settings = glide.GlideClientConfiguration(
                [glide.NodeAddress(unix_socket_path=path)],
                request_timeout=1000 * SECONDS,
                inflight_requests_limit=MOST_COMMANDS,
            )
            valkey = await glide.GlideClient.create(settings)
            stack.push_async_callback(valkey.close)
            clients["valkey-glide batch"] = GlideBatch(valkey, glide.Batch)
            clients["valkey-glide batch, gathered"] = Gathered(GlideBatch(valkey, glide.Batch))
            clients["valkey-glide commands"] = Commands(valkey)
        yield clients
