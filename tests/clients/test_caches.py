"""The client kit keeps timelines in the caches of Relay, Apollo Client and urql equal to the server's."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph import Graph
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from graph.paging import CursorKind, encode_cursor
from graph.visibility import SYSTEM
from server.auth import Tokens
from server.embedded import EmbeddedStore
from server.settings import Settings
from tests.clients.outages import Proxy, proxied, restart_store
from tests.clients.test_clients import FOLDER, node
from tests.conftest import need
from tests.server.conftest import KEY, serving, settings
from tests.support.graph_worlds import PATIENCE, append_events, befriend, home, many_posts, people, posts
from tests.support.graphs import archive_url_of, open_graph

pytestmark = pytest.mark.slow

__all__ = ["node", "settings"]

KIT = FOLDER / "kit"
CACHES = ("relay", "apollo", "urql")
DELAY = 2.5  # seconds that a response is held back


@dataclass
class Timeline:
    """A running program with a timeline in its cache, of which it prints the texts after each command."""

    name: str
    process: asyncio.subprocess.Process
    texts: list[str] = field(default_factory=list)
    has_next: bool = True
    refetches: int = 0
    unread: int | None = None
    quotes: int = 0

    async def read(self) -> None:
        """Read the list that the program prints next."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        assert line, f"{self.name} has exited: {await self.problem()}"
        answer: dict[str, Any] = json.loads(line)
        self.texts, self.has_next, self.refetches = answer["texts"], answer["hasNext"], answer["refetches"]
        self.unread, self.quotes = answer.get("unread"), answer["quotes"]

    async def send(self, command: str, **values: int) -> None:
        """Send a command and read the list."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"command": command, **values}).encode() + b"\n")
        await self.read()

    async def ended(self) -> None:
        """Wait until the program exits because of the end of the session."""
        try:
            async with asyncio.timeout(PATIENCE):
                problem = await self.problem()
        except TimeoutError:
            pytest.fail(f"{self.name} goes on")
        assert await self.process.wait() == 1
        assert "4403" in problem, problem

    async def problem(self) -> str:
        """Return the standard error of the program, which ends."""
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def sees(self, text: str) -> None:
        """Wait until a post is at the top of the list."""
        async with asyncio.timeout(PATIENCE):
            while self.texts[:1] != [text]:
                await asyncio.sleep(0.05)
                await self.send("list")

    async def shows(self, texts: list[str]) -> None:
        """Wait until the list begins with these texts, then load all other pages. Assert that they are the same."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self.texts[: len(texts)] != texts[: len(self.texts)]:
                    await asyncio.sleep(0.05)
                    await self.send("list")
        except TimeoutError:
            pass  # the comparison shows the difference
        async with asyncio.timeout(PATIENCE):
            while self.has_next and len(self.texts) <= len(texts):
                await self.send("next")
        assert self.texts == texts, self.name


def kill(process: asyncio.subprocess.Process) -> None:
    """End a program that may have exited."""
    with suppress(ProcessLookupError):
        process.kill()


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
    artifacts: Path
    timelines: list[Timeline] = field(default_factory=list)
    server: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Start the server, and let the proxy forward to it."""
        api = await self.server.enter_async_context(serving(self.settings, self.graph))
        self.proxy.target = int(api.url.rsplit(":", 1)[1])

    async def restart(self, **changed: int) -> None:
        """End the server, and start another on a port of its own, with some settings changed."""
        await self.server.aclose()
        self.settings = self.settings.model_copy(update=changed)
        await self.start()

    @asynccontextmanager
    async def open(self, *arguments: str, caches: Sequence[str] = CACHES, shows: str = "home") -> AsyncIterator[None]:
        """Run the programs until the block ends."""
        async with AsyncExitStack() as stack:
            for name in caches:
                process = await asyncio.create_subprocess_exec(
                    "node",
                    f"{name}.mjs",
                    f"http://127.0.0.1:{self.proxy.port}/graphql",
                    f"ws://127.0.0.1:{self.proxy.port}/graphql",
                    self.token,
                    *arguments,
                    cwd=KIT,
                    env=os.environ | {"ARTIFACTS": str(self.artifacts), "SHOWS": shows},
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                stack.push_async_callback(process.wait)
                stack.callback(kill, process)
                self.timelines.append(Timeline(name, process))
            await self.each(Timeline.read)
            yield

    async def each(self, action: Callable[[Timeline], Awaitable[None]]) -> None:
        """Do something with all timelines at once."""
        await asyncio.gather(*(action(timeline) for timeline in self.timelines))

    async def check(self) -> None:
        """Assert that each cache has each post of the server once, in order."""
        await asyncio.sleep(0.3)  # for what must not arrive any more
        records = await self.graph.posts.get_many(SYSTEM, await home(self.graph, self.viewer))
        texts = [post.text for post in records if post]
        await self.each(lambda timeline: timeline.shows(texts))


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the documents of the Relay program."""
    need((FOLDER.parents[1] / "client" / "dist" / "index.js").exists(), "`npm install` in client")
    app = tmp_path_factory.mktemp("relay")
    (app / "package.json").write_text('{"type": "module"}')
    shutil.copy(FOLDER.parents[1] / "schema.graphql", app)
    shutil.copytree(KIT / "relay", app / "src")
    config = {"src": "./src", "schema": "./schema.graphql", "language": "javascript", "eagerEsModules": True}
    (app / "relay.config.json").write_text(json.dumps(config))
    command = ["node", str(FOLDER / "node_modules/relay-compiler/cli.js"), "relay.config.json"]
    compiled = subprocess.run(command, cwd=app, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return app / "src" / "__generated__"


@asynccontextmanager
async def staged(graph: Graph, settings: Settings, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts: three pages."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await many_posts(graph, bob, 50)
    token = Tokens([KEY]).issue(await graph.sessions.start(alice))
    async with proxied(0) as proxy, AsyncExitStack() as server:
        stage = Stage(graph, settings, proxy, alice, bob, carol, token, artifacts, server=server)
        await stage.start()
        yield stage


@pytest.fixture
async def stage(graph: Graph, settings: Settings, node: str, artifacts: Path) -> AsyncIterator[Stage]:
    """Serve fifty posts, with a worker."""
    async with staged(graph, settings.model_copy(update={"worker": True}), artifacts) as stage:
        yield stage


async def test_no_post_is_lost_while_a_refetched_page_is_delayed(stage: Stage) -> None:
    """The page overwrites the posts that arrived meanwhile; the new subscription sends them again."""
    await posts(stage.graph, stage.stranger, "before the follow")
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("delay", milliseconds=int(DELAY * 1000)))
        await befriend(stage.graph, stage.viewer, stage.stranger)
        for number in range(10):
            await asyncio.sleep(DELAY / 11)
            await posts(stage.graph, stage.author if number % 2 else stage.stranger, f"meanwhile {number}")
        await asyncio.sleep(DELAY / 5)
        await stage.check()
        assert {timeline.refetches for timeline in stage.timelines} <= {2, 3}


async def test_a_next_page_that_comes_after_a_new_first_page_is_ignored(stage: Stage) -> None:
    """It continues the old list. The new list is shown, and the user scrolls on from its end."""
    await posts(stage.graph, stage.stranger, "before the follow")
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("delay next", milliseconds=1000))
        scrolls = asyncio.ensure_future(stage.each(lambda timeline: timeline.send("next")))
        await asyncio.sleep(0.2)
        await befriend(stage.graph, stage.viewer, stage.stranger)
        await scrolls
        await stage.each(lambda timeline: timeline.send("delay next", milliseconds=0))
        await stage.check()


async def test_no_post_is_lost_while_sockets_are_down(stage: Stage) -> None:
    """25 posts arrive meanwhile, more than a page, and the user scrolls."""
    async with stage.open():
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        assert stage.proxy.refuse_websockets() == len(CACHES)
        for number in range(25):
            await posts(stage.graph, stage.author, f"meanwhile {number}")
            if number == 10:
                await stage.each(lambda timeline: timeline.send("next"))
        await asyncio.sleep(0.5)
        stage.proxy.accept_websockets()
        await stage.check()


async def test_posts_older_than_the_page_are_left_to_the_next_pages(stage: Stage) -> None:
    """Sixty posts lie between the cursor and the page. The subscription sends all of them again."""
    await stage.graph.worker().drain()
    old = encode_cursor(CursorKind.LOG, await stage.graph.log.last())
    for number in range(60):
        await posts(stage.graph, stage.author, f"more {number}")
    async with stage.open(old):
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        assert {len(timeline.texts) for timeline in stage.timelines} == {21}
        await stage.check()


async def test_a_post_that_comes_late_goes_where_it_belongs(
    graph: Graph, settings: Settings, node: str, artifacts: Path
) -> None:
    """The page has a post, but not the one before it, which no worker has projected yet."""
    async with staged(graph, settings, artifacts) as stage:
        await graph.worker().drain()
        await append_events(graph, [PostPublished(stage.author, "late")])
        await posts(graph, stage.author, "in time")
        async with stage.open():
            await posts(graph, stage.author, "live")
            await stage.each(lambda timeline: timeline.sees("live"))
            assert [timeline.texts[:3] for timeline in stage.timelines] == [["live", "in time", "late"]] * len(CACHES)
            await graph.worker().drain()
            await stage.check()


async def test_a_gap_replaces_the_list(stage: Stage) -> None:
    """The cursor is older than the log, and the user has scrolled: the list starts again at the first page."""
    await stage.graph.worker().drain()
    last = await stage.graph.log.last()
    trimmed = [("SET", "{log}:trimmed", last), ("XTRIM", "{log}", "MINID", entry_id(last + 1))]
    await stage.graph.store.send(trimmed)
    async with stage.open(encode_cursor(CursorKind.LOG, 1)):
        await stage.each(lambda timeline: timeline.send("next"))
        await posts(stage.graph, stage.author, "live")
        await stage.check()
        assert [timeline.refetches for timeline in stage.timelines] == [2] * len(CACHES)


async def test_deletions_and_unfollows_remove_posts(stage: Stage) -> None:
    """They remove posts of all pages, and the user continues to scroll."""
    await befriend(stage.graph, stage.viewer, stage.stranger)
    await posts(stage.graph, stage.stranger, "one", "two")
    old = await home(stage.graph, stage.viewer)
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("next"))
        [new] = await posts(stage.graph, stage.author, "soon deleted")
        for post in (old[3], old[19], old[30], old[39], new):
            await stage.graph.posts.delete(stage.author, post)
        await stage.graph.follows.unfollow(stage.viewer, [stage.stranger])
        await stage.check()


async def test_a_quote_stays_without_the_post_that_was_deleted(stage: Stage) -> None:
    """No page is fetched again for it, so a list that the user has scrolled stays as long as it is."""
    [quoted] = await posts(stage.graph, stage.author, "quoted")
    await stage.graph.posts.publish(stage.author, "a quote", quote_of=quoted)
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("next"))
        assert [timeline.quotes for timeline in stage.timelines] == [1] * len(CACHES)
        await stage.graph.posts.delete(stage.author, quoted)
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        await stage.check()
        assert [timeline.refetches for timeline in stage.timelines] == [1] * len(CACHES)
        assert [timeline.quotes for timeline in stage.timelines] == [0] * len(CACHES)


async def test_no_post_is_lost_while_the_app_fetches_the_page_on_its_own(stage: Stage) -> None:
    """Its page, older than a post that has arrived, overwrites it: the subscription begins again at the page."""
    async with stage.open(caches=["apollo", "urql"]):
        await stage.each(lambda timeline: timeline.send("delay", milliseconds=int(DELAY * 1000)))
        await stage.each(lambda timeline: timeline.send("refresh"))
        await asyncio.sleep(DELAY / 5)
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.sees("meanwhile"))
        await asyncio.sleep(DELAY)
        await stage.check()
        assert {timeline.refetches for timeline in stage.timelines} == {2}


async def test_an_event_arrives_while_the_cache_lacks_a_field(stage: Stage) -> None:
    """The page cannot be read from Apollo's cache until it was fetched again, which takes a while."""
    async with stage.open(caches=["apollo"]):
        [timeline] = stage.timelines
        await posts(stage.graph, stage.author, "live")
        await timeline.sees("live")
        await timeline.send("delay", milliseconds=int(DELAY * 1000))
        await timeline.send("forget")
        await posts(stage.graph, stage.author, "meanwhile")
        await asyncio.sleep(DELAY)
        await stage.check()
        assert timeline.refetches == 2


async def test_a_mute_removes_posts_and_reposts_of_them(stage: Stage) -> None:
    """Those of the muted user, and those that a followed user reposted; not a quote."""
    graph, viewer, author, muted = stage.graph, stage.viewer, stage.author, stage.stranger
    await befriend(graph, viewer, muted)
    reposted, quoted, _ = await posts(graph, muted, "reposted", "quoted", "another")
    await graph.posts.publish(author, "a quote", quote_of=quoted)
    await graph.reposts.repost(graph.visibility.of(author), author, reposted)
    async with stage.open():
        await graph.blocks.mute(viewer, muted)
        await stage.check()


async def test_no_post_is_lost_when_the_server_and_its_store_restart(
    node: str, artifacts: Path, tmp_path: Path
) -> None:
    """The store is killed and starts again with its data."""
    data = tmp_path / "data"
    with EmbeddedStore(data) as store:
        url = archive_url_of(store.url)
        own = Settings(data_dir=data, archive_url=url, secret=(KEY,), worker=True, rate_limits=False)
        graph = await open_graph(store.url)
        try:
            async with staged(graph, own, artifacts) as stage, stage.open():
                await posts(graph, stage.author, "before")
                await stage.each(lambda timeline: timeline.sees("before"))
                await stage.restart()
                await posts(graph, stage.author, "between")
                await restart_store(store)
                await posts(graph, stage.author, "after")
                await stage.check()
        finally:
            await graph.close()


@pytest.mark.parametrize("cache", CACHES)
async def test_no_post_is_lost_when_subscriptions_are_refused(stage: Stage, cache: str) -> None:
    """Again and again, with the same cursor: another subscription of the viewer uses up the quota meanwhile."""
    await stage.restart(max_streams=1)
    headers = {"authorization": f"Bearer {stage.token}", "accept": "text/event-stream"}
    other = {"query": "subscription { homeTimeline { cursor } }"}
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{stage.proxy.target}", headers=headers) as client,
        client.stream("POST", "/graphql", json=other) as stream,
    ):
        lines = stream.aiter_lines()
        await anext(lines)
        async with stage.open(caches=[cache]):
            await posts(stage.graph, stage.author, "missed")
            await asyncio.sleep(DELAY)  # for four refusals or so
            await stream.aclose()
            await stage.check()


async def test_a_session_that_ends_elsewhere_ends_the_timeline(stage: Stage) -> None:
    """`onEnd` is called, so that the application can ask for a log-in."""
    async with stage.open():
        await stage.graph.sessions.end(stage.viewer)
        await stage.each(Timeline.ended)


async def test_the_state_machine_and_the_iterator(node: str) -> None:
    """The kit's own tests pass: when it fetches again, and when it gives up."""
    process = await asyncio.create_subprocess_exec(
        node, "--test", "test/", cwd=FOLDER.parents[1] / "client", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
