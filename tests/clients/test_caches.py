"""The client kit keeps timelines in the caches of Relay, Apollo Client and urql equal to the server's."""

import asyncio
from pathlib import Path

import httpx
import pytest

from graph import Graph
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from graph.paging import CursorKind, encode_cursor
from server.embedded import EmbeddedStore
from server.settings import Settings
from tests.clients.cached_lists import CACHES, DELAY, Stage, Timeline, artifacts, stage, staged
from tests.clients.outages import restart_store
from tests.clients.test_clients import FOLDER, node
from tests.server.conftest import KEY, settings
from tests.support.graph_worlds import append_events, befriend, home, posts, reconnected
from tests.support.graphs import archive_url_of, open_graph

pytestmark = pytest.mark.slow

__all__ = ["artifacts", "node", "settings", "stage"]


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


async def test_no_post_is_lost_after_the_app_has_emptied_the_cache(stage: Stage) -> None:
    """Apollo Client then fetches the page. Those of later fetches are watched, too."""
    async with stage.open(caches=["apollo"]):
        [timeline] = stage.timelines
        await timeline.send("delay", milliseconds=int(DELAY * 1000))
        for number, command in enumerate(("reset", "refresh")):
            await timeline.send(command)
            await asyncio.sleep(DELAY / 5)
            await posts(stage.graph, stage.author, f"meanwhile {number}")
            await asyncio.sleep(DELAY)
            await timeline.sees(f"meanwhile {number}")
        await stage.check()


async def test_no_post_is_lost_when_the_app_fetches_a_newer_cursor(stage: Stage) -> None:
    """Without the list, while the sockets are down: the subscription continues from its own cursor."""
    async with stage.open(caches=["apollo", "urql"]):
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        stage.proxy.refuse_websockets()
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.graph.worker().drain()
        await asyncio.sleep(1.2)  # the cursor of a page is up to a second old
        await stage.each(lambda timeline: timeline.send("badge"))
        stage.proxy.accept_websockets()
        await stage.check()


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
                await reconnected(graph)
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
