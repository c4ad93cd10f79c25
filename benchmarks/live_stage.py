"""The stage of a measurement: a store, viewers with sessions, the authors whom they follow, and a server."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.inserts import TEXT, Audience
from benchmarks.live_clients import TIMEOUT_SECONDS, stamped
from benchmarks.live_server import KEY, Resources, Server, allow_many_files, served
from benchmarks.stores import open_graph, private_store, raw
from benchmarks.worlds import FIRST_LONER, STEP, Authors, Crowd, parts, write_users
from graph import Graph
from graph.log.events import PostPublished
from server.auth import Tokens
from server.embedded import Durability
from tests.support.graph_worlds import append_events

AUTHORS = Authors(100, 5)
SESSIONS_AT_ONCE = 500
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Stage:
    """A graph in this process, the server, and the access tokens of the viewers in order."""

    graph: Graph
    server: Server
    tokens: Sequence[str]
    audiences: Sequence[Audience]

    async def publish(
        self,
        authors: Sequence[int],
        rate: float,
        count: int,
        text: str = "",
        *,
        keeping_up: Callable[[int], bool] | None = None,
    ) -> float:
        """Publish posts at a steady rate per second, by the authors in turn. Return the actual rate.

        Each post is sent on time, even if the previous request is not answered yet, but only while the subscribers are
        `keeping_up`.
        """
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for index in range(count):
                await asyncio.sleep(start + index / rate - time.monotonic())
                if keeping_up:
                    await until(partial(keeping_up, index))
                group.create_task(self._publish(authors[index % len(authors)], text))
            lasted = time.monotonic() - start
        return (count - 1) / lasted if count > 1 else rate

    async def _publish(self, author: int, text: str) -> None:
        await self.graph.posts.publish(author, stamped(text))

    async def quiet(self, tasks: int | None = None, streams: int = 0) -> Resources:
        """Wait until the server has this number of streams and no other tasks. Return its resources without garbage.

        After a timeout, return the current resources.
        """
        until, now = time.monotonic() + TIMEOUT_SECONDS, await self.server.resources()
        while now.streams != streams or (tasks is not None and now.tasks > tasks):
            if time.monotonic() > until:
                break
            await asyncio.sleep(POLL_SECONDS)
            now = await self.server.resources()
        return await self.server.resources(collect=True)


@asynccontextmanager
async def stage(viewers: int, audiences: Sequence[tuple[int, int]]) -> AsyncIterator[Stage]:
    """Build a stage. Viewers follow 20 authors each, and the authors of their audiences (first viewer, size)."""
    allow_many_files()
    with (
        private_store(Durability.SAFE) as url,
        raw(url) as client,
        tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder,
    ):
        crowd = Crowd(viewers, 0, AUTHORS)
        AUTHORS.build(client)
        crowd.build(client)
        followed = [Audience(FIRST_LONER + (1 + index) * STEP, *part) for index, part in enumerate(audiences)]
        write_users(client, [FIRST_LONER, *(audience.author for audience in followed)])
        for audience in followed:
            crowd.follow(client, audience.author, audience.start, audience.followers)
        graph = await open_graph(url)
        try:
            await append_events(graph, [PostPublished(FIRST_LONER, TEXT)])
            tokens = await log_in(graph, [crowd.viewer(index) for index in range(viewers)])
            async with served(url, Path(folder)) as server:
                yield Stage(graph, server, tokens, followed)
        finally:
            await graph.close()


async def log_in(graph: Graph, viewers: Sequence[int]) -> list[str]:
    """Create a session for each viewer and return the access tokens."""
    tokens, issued = Tokens([KEY]), []
    for start, some in parts(len(viewers), SESSIONS_AT_ONCE):
        sessions = await asyncio.gather(*map(graph.sessions.start, viewers[start : start + some]))
        issued += [tokens.issue(session) for session in sessions]
    return issued


async def until(reached: Callable[[], bool]) -> None:
    """Wait until a condition is true. Raises TimeoutError."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not reached():  # noqa: ASYNC110 - a notification per message would cost too much
            await asyncio.sleep(POLL_SECONDS)
