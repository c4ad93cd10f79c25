"""Readers of subscriptions in one process, with or without sockets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import orjson
import pytest

from graph import Graph
from graph.model import User
from graph.store.near_cache import Moment
from resolvers.context import Viewer
from server.app import make_execution
from server.auth import Tokens
from server.operations.caller import Caller
from server.operations.execution import Execution
from server.operations.observation import Observation
from server.operations.quotas import Quotas
from server.operations.subscriptions import SendNow, StreamedResult
from server.settings import Settings
from tests.server.conftest import KEY
from tests.support.graph_worlds import PATIENCE

SHARED = """subscription ($after: String) {
  homeTimeline(after: $after) { __typename ... on PostAdded { post { text author { login followersCount } } } }
}"""
TIMELINE = """subscription ($timelineId: ID!) { timeline(timelineId: $timelineId) {
  __typename ... on PostAdded { post { text author { login followersCount } } } } }"""
OWN = SHARED.replace("followersCount", "relationship { state }")


class Readers:
    """Readers of one process."""

    def __init__(self, graph: Graph, settings: Settings, stack: AsyncExitStack) -> None:
        self.graph = graph
        self.execution = make_execution(settings, Observation())
        self.quotas = Quotas.of(settings)
        self.stack = stack

    async def users(self, *logins: str) -> list[User]:
        """Sign users up."""
        return [await self.graph.users.sign_up(login, "correct horse", login.title()) for login in logins]

    async def subscribe(
        self, user: User, document: str = SHARED, send_now: SendNow | None = None, **variables: Any
    ) -> "Reader":
        """Subscribe, and wait for the first event."""
        session = await self.graph.sessions.start(user.id)
        caller = Caller(self.graph, Tokens([KEY]), self.quotas, f"of {user.login}", "127.0.0.1")
        caller.viewer = Viewer(user.id, session.id, session.expires_at)
        results = self.execution.stream(caller, document, variables, send_now=send_now)
        reader = Reader(await self.stack.enter_async_context(aclosing(results)))
        await reader.next()
        return reader

    async def _live(self, count: int) -> None:
        """Wait at most a second until the streams of readers are live: streams that replay share no executions."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while len(self.graph.feed) < count:  # noqa: ASYNC110 - the feed does not announce it
                    await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    async def tell(self, author: User, readers: Sequence["Reader"], text: str = "hello") -> list[StreamedResult]:
        """Publish a post and return what each reader gets."""
        waiting = [asyncio.create_task(reader.next()) for reader in readers]
        await self._live(len(readers))
        await self.graph.posts.publish(author.id, text)
        return await asyncio.gather(*waiting)


class Reader:
    """The results of one subscription."""

    def __init__(self, results: Any) -> None:
        self.results = results

    async def next(self) -> StreamedResult:
        """Return the next result that is not a checkpoint."""
        async with asyncio.timeout(PATIENCE):
            result: StreamedResult = await anext(self.results)
        return result


def data_of(result: StreamedResult) -> Any:
    """Return the data of a result."""
    return orjson.loads(result.payload)["data"] if result.payload else result.result.data or {}


def node(result: StreamedResult) -> Any:
    """Return the post of an event, or the post that it reposts."""
    [event] = data_of(result).values()
    return event.get("post") or event.get("repost", {}).get("post")


class Pause:
    """An execution that pauses at its start until it is resumed."""

    def __init__(self) -> None:
        self.reached, self.go_on, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.cancelled = False

    async def __call__(self) -> None:
        self.reached.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self.ended.set()


@asynccontextmanager
async def paused(execution: Execution) -> AsyncIterator[Pause]:
    """Pause the executions that start during the block."""
    pause, executor = Pause(), execution.executor
    run = executor._run

    async def run_later(*arguments: Any) -> Any:
        await pause()
        return await run(*arguments)

    executor._run = run_later  # type: ignore[method-assign, assignment]
    try:
        yield pause
    finally:
        executor._run = run  # type: ignore[method-assign]


def fail_once(monkeypatch: pytest.MonkeyPatch, graph: Graph, error: Exception) -> None:
    """Make the next look-up of users fail."""
    get_many = graph.users.get_many

    def fail(ids: Sequence[int], moment: Moment | None = None) -> Any:
        monkeypatch.setattr(graph.users, "get_many", get_many)
        raise error

    monkeypatch.setattr(graph.users, "get_many", fail)
