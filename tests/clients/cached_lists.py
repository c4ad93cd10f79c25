"""Live lists in the caches of Relay, Apollo Client and urql, on a server behind a proxy."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from graph import Graph
from graph.model import Repost
from graph.visibility.views import SYSTEM
from server.auth import Tokens
from server.settings import Settings
from tests.clients.outages import Proxy, proxied
from tests.clients.programs import Program
from tests.server.conftest import KEY, Api, serving
from tests.support.graph_worlds import PATIENCE, befriend, home, many_posts, people, posts

CACHES = ("relay", "apollo", "urql")

Hosts: TypeAlias = Mapping[str, Program]
"""The program that shows lists, once for each cache: the kit tells all caches of a program about a page."""

ListSettings: TypeAlias = Mapping[str, str | int | Sequence[str]]
"""What a list shows: `home`, a `timeline` or `thread` with an `id`, or `notifications` of some `kinds`; and the size of
its `first` page.
"""


@dataclass
class Timeline:
    """A timeline in a cache of the host program, which returns its texts and some counts after each command."""

    name: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    texts: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # without what reposts repeat
    has_next: bool = True
    unread: int | None = None
    likes: int | None = None
    quotes: int = 0
    latest: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    async def read(self) -> None:
        """Read the list that the program returns next."""
        answer = await self.answer()
        assert "problem" not in answer, f"{self.name}: {answer['problem']}"
        self.texts, self.shown, self.has_next = answer.pop("texts"), answer.pop("shown"), answer.pop("hasNext")
        self.unread, self.likes = answer.pop("unread", None), answer.pop("likes", None)
        self.quotes = answer.pop("quotes")
        self.latest, self.counts = answer.pop("latest"), answer

    async def answer(self) -> dict[str, Any]:
        """Return the next answer."""
        line = await asyncio.wait_for(self.reader.readline(), PATIENCE)
        assert line, f"{self.name} has exited"
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def send(self, command: str) -> None:
        """Send a command and read the list."""
        self.writer.write(command.encode() + b"\n")
        await self.read()

    async def ended(self) -> None:
        """Wait until the program reports the end of the session."""
        answer = await self.answer()
        assert "4403" in answer["problem"], answer

    async def until(self, condition: Callable[["Timeline"], object]) -> None:
        """Wait until the list fulfils a condition."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition(self):
                    await asyncio.sleep(0.02)
                    await self.send("list")
        except TimeoutError:
            pytest.fail(f"{self.name}: {self.texts[:5]} {self.counts}")

    async def sees(self, text: str) -> None:
        """Wait until an entry is at the top of the list."""
        await self.until(lambda each: each.texts[:1] == [text])

    async def hears(self, text: str) -> None:
        """Wait until an event has delivered a post. The list may not show it yet."""
        await self.until(lambda each: each.latest == text)

    async def counted(self, name: str, number: int) -> None:
        """Wait until a count of driver.mjs has reached a number."""
        await self.until(lambda each: each.counts[name] == number)

    async def holds(self) -> None:
        """Wait until a page is held back."""
        await self.counted("held", 1)

    async def shows(self, texts: list[str]) -> None:
        """Wait until the list begins with these texts, and load all other pages. Assert that the texts are equal."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self.texts[: len(texts)] != texts[: len(self.texts)]:
                    await asyncio.sleep(0.02)
                    await self.send("list")
        except TimeoutError:
            pass  # the comparison shows the difference
        async with asyncio.timeout(PATIENCE):
            while self.has_next and len(self.texts) <= len(texts):
                await self.send("next")
        assert self.texts == texts, self.name


async def release(timeline: Timeline, lists: int = 1) -> None:
    """Deliver the delayed page, and wait until the subscriptions of its lists restart from it."""
    await timeline.holds()
    subscriptions = timeline.counts["subscriptions"]
    await timeline.send("release")
    await timeline.counted("subscriptions", subscriptions + lists)


@dataclass
class Stage:
    """A server behind a proxy, and the users: the viewer follows the author."""

    graph: Graph
    settings: Settings
    proxy: Proxy
    viewer: int
    author: int
    stranger: int
    token: str
    hosts: Hosts
    artifacts: Path
    timelines: list[Timeline] = field(default_factory=list)
    server: AsyncExitStack = field(default_factory=AsyncExitStack)
    api: Api = field(init=False)

    async def start(self) -> None:
        """Start the server, and let the proxy forward to it."""
        self.api = await self.server.enter_async_context(serving(self.settings, self.graph))
        self.proxy.target = int(self.api.url.rsplit(":", 1)[1])

    async def restart(self, **changed: int) -> None:
        """Stop the server, and start another one on a new port, with some settings changed."""
        await self.server.aclose()
        self.settings = self.settings.model_copy(update=changed)
        await self.start()

    @asynccontextmanager
    async def open(
        self, forged: str = "", caches: Sequence[str] = CACHES, lists: Sequence[ListSettings] = ({},)
    ) -> AsyncIterator[None]:
        """Show lists in each of these caches until the block ends.

        The first page has the cursor `forged`, if there is one.
        """
        url = f"http://127.0.0.1:{self.proxy.port}/graphql"
        options = {"url": url, "token": self.token, "forged": forged, "artifacts": str(self.artifacts), "lists": lists}
        await self.api.app.state.graph.log.watermark()  # otherwise, the cursor of the page may be up to a second old
        async with AsyncExitStack() as stack:
            for name in caches:
                reader, writer = await asyncio.open_unix_connection(self.hosts[name].socket(), limit=2**20)
                stack.callback(writer.close)
                writer.write(json.dumps({"cache": name, **options}).encode() + b"\n")
                self.timelines.append(Timeline(name, reader, writer))
            await self.each(Timeline.read)
            yield

    async def each(self, action: Callable[[Timeline], Awaitable[None]]) -> None:
        """Run an action on all timelines at once."""
        await asyncio.gather(*(action(timeline) for timeline in self.timelines))

    async def send(self, *commands: str) -> None:
        """Send commands to all timelines, one after the other."""
        for command in commands:
            await self.each(partial(Timeline.send, command=command))

    async def check(self) -> None:
        """Assert that each cache has each entry of the server once, in order, even after another one has arrived."""
        for last in ([], ["the last post"]):
            await posts(self.graph, self.author, *last)
            texts = await self.expected()
            await self.each(lambda timeline: timeline.shows(texts))  # noqa: B023 - awaited at once

    async def expected(self) -> list[str]:
        """Return what the home timeline shows, newest first: the texts of posts and of reposted posts."""
        entries = await self.graph.posts.get_many(SYSTEM, await home(self.graph, self.viewer))
        reposted = await self.graph.posts.get_many(
            SYSTEM, [each.repost_of for each in entries if each and each.repost_of]
        )
        texts = {post.id: post.text for post in reposted if post}
        return [
            f"repost of {texts[entry.repost_of or 0]}" if isinstance(entry, Repost) else entry.text
            for entry in entries
            if entry
        ]


@asynccontextmanager
async def staged(graph: Graph, settings: Settings, hosts: Hosts, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts: three pages."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await many_posts(graph, bob, 50)
    await graph.worker().drain()
    token = Tokens([KEY]).issue(await graph.sessions.start(alice))
    async with proxied(0) as proxy, AsyncExitStack() as server:
        stage = Stage(graph, settings, proxy, alice, bob, carol, token, hosts, artifacts, server=server)
        await stage.start()
        yield stage
