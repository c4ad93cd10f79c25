"""The stage of a measurement: a store, viewers with sessions, authors whom they follow, and a server for them."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.inserts import TEXT, Audience
from benchmarks.live_clients import PATIENCE, stamped
from benchmarks.live_server import KEY, Holdings, Server, allow_many_files, served
from benchmarks.stores import private_store, raw
from benchmarks.worlds import FIRST_LONER, STEP, Authors, Crowd, parts, write_people
from graph import Graph
from graph.log.events import PostPublished
from server.auth import Tokens
from server.embedded import Durability

AUTHORS = Authors(100, 5)
SESSIONS_AT_ONCE = 500
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Stage:
    """All that stands: the graph of this process, the server, and the access tokens of the viewers in their order."""

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
        """Publish so many posts at a steady rate a second, authors taking turns; tell the rate that was kept.

        Each is sent at its time, whether or not the one before has been answered; but not before those who listen are
        `keeping_up` with so many posts, where that matters.
        """
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for place in range(count):
                await asyncio.sleep(start + place / rate - time.monotonic())
                if keeping_up:
                    await until(partial(keeping_up, place))
                group.create_task(self._publish(authors[place % len(authors)], text))
            lasted = time.monotonic() - start
        return (count - 1) / lasted if count > 1 else rate

    async def _publish(self, author: int, text: str) -> None:
        await self.graph.posts.publish(author, stamped(text))

    async def quiet(self, tasks: int | None = None, streams: int = 0) -> Holdings:
        """Wait until the server has so many streams, and no more tasks; tell what it holds without its garbage.

        What is still not so after some patience is told as it is.
        """
        until, now = time.monotonic() + PATIENCE, await self.server.look()
        while now.streams != streams or (tasks is not None and now.tasks > tasks):
            if time.monotonic() > until:
                break
            await asyncio.sleep(POLL_SECONDS)
            now = await self.server.look()
        return await self.server.look(collect=True)


@asynccontextmanager
async def stage(viewers: int, audiences: Sequence[tuple[int, int]]) -> AsyncIterator[Stage]:
    """Build a stage whose viewers follow 20 authors each, and one more for each audience: its start and its size."""
    allow_many_files()
    with (
        private_store(Durability.SAFE) as url,
        raw(url) as client,
        tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder,
    ):
        crowd = Crowd(viewers, 0, AUTHORS)
        AUTHORS.build(client)
        crowd.build(client)
        followed = [Audience(FIRST_LONER + (1 + place) * STEP, *part) for place, part in enumerate(audiences)]
        write_people(client, [FIRST_LONER, *(audience.author for audience in followed)])
        for audience in followed:
            crowd.follow(client, audience.author, audience.start, audience.followers)
        graph = await Graph.open(url)
        try:
            await graph.log.append([PostPublished(FIRST_LONER, TEXT)])
            tokens = await log_in(graph, [crowd.viewer(index) for index in range(viewers)])
            async with served(url, Path(folder)) as server:
                yield Stage(graph, server, tokens, followed)
        finally:
            await graph.close()


async def log_in(graph: Graph, viewers: Sequence[int]) -> list[str]:
    """Start a session for each viewer; give their access tokens."""
    tokens, issued = Tokens([KEY]), []
    for start, some in parts(len(viewers), SESSIONS_AT_ONCE):
        sessions = await asyncio.gather(*map(graph.sessions.start, viewers[start : start + some]))
        issued += [tokens.issue(session) for session in sessions]
    return issued


async def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - what comes in wakes nobody, so that it costs little
            await asyncio.sleep(POLL_SECONDS)
