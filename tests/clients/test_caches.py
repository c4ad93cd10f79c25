"""The client kit keeps timelines in the caches of Relay, Apollo Client and urql equal to the server's."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from graph import Graph
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from graph.paging import CursorKind, encode_cursor
from graph.visibility.views import SYSTEM
from server.embedded import EmbeddedStore
from server.settings import Settings
from tests.clients.cached_lists import CACHES, Hosts, Stage, Timeline, release, staged
from tests.clients.outages import restart_store
from tests.server.conftest import KEY, until
from tests.support.graph_worlds import append_events, befriend, home, posts, reconnected
from tests.support.graphs import archive_url_of, open_graph

pytestmark = pytest.mark.slow


async def test_no_post_is_lost_while_a_refetched_page_is_delayed(stage: Stage) -> None:
    """The page overwrites the posts that arrived meanwhile; the new subscription sends them again."""
    await posts(stage.graph, stage.stranger, "before the follow")
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("hold"))
        await befriend(stage.graph, stage.viewer, stage.stranger)
        for number in range(10):
            await posts(stage.graph, stage.author if number % 2 else stage.stranger, f"meanwhile {number}")
            if number == 4:
                await stage.each(Timeline.holds)
        await stage.each(lambda timeline: timeline.hears("meanwhile 9"))
        await stage.each(release)
        await stage.check()
        assert {timeline.counts["refetches"] for timeline in stage.timelines} <= {2, 3}


async def test_a_next_page_that_comes_after_a_new_first_page_is_ignored(stage: Stage) -> None:
    """It continues the old list. The new list is shown, and the user scrolls on from its end."""
    await posts(stage.graph, stage.stranger, "before the follow")
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("hold next"))
        await stage.each(lambda timeline: timeline.send("scroll"))
        await stage.each(Timeline.holds)
        await befriend(stage.graph, stage.viewer, stage.stranger)
        await stage.each(lambda timeline: timeline.sees("before the follow"))
        await stage.each(lambda timeline: timeline.send("release"))
        await stage.check()


async def test_a_next_page_that_comes_before_a_delayed_first_page_leaves_no_hole(stage: Stage) -> None:
    """It continues the old list, which ends further down than the new first page."""
    async with stage.open():
        stage.proxy.refuse_websockets()
        await posts(stage.graph, stage.author, "missed")
        await stage.graph.worker().drain()
        await stage.send("hold", "fetch")
        await stage.each(Timeline.holds)
        await stage.send("next", "release")
        await stage.each(lambda timeline: timeline.sees("missed"))
        stage.proxy.accept_websockets()
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
        stage.proxy.accept_websockets()
        await stage.check()


async def test_posts_older_than_the_page_are_left_to_the_next_pages(stage: Stage) -> None:
    """Sixty posts lie between the cursor and the page. The subscription sends all of them again."""
    await stage.graph.worker().drain()
    old = encode_cursor(CursorKind.LOG, await stage.graph.log.last())
    await posts(stage.graph, stage.author, *(f"more {number}" for number in range(60)))
    async with stage.open(old):
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        assert {len(timeline.texts) for timeline in stage.timelines} == {21}
        await stage.check()


async def test_a_post_that_comes_late_goes_where_it_belongs(
    graph: Graph, settings: Settings, hosts: Hosts, artifacts: Path
) -> None:
    """The page has a post, but not the one before it, which no worker has projected yet."""
    async with staged(graph, settings, hosts, artifacts) as stage:
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
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [2] * len(CACHES)


async def test_deletions_and_unfollows_remove_posts(stage: Stage) -> None:
    """They remove posts from all pages, and the user continues to scroll."""
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


async def test_reposts_come_and_go(stage: Stage) -> None:
    """One repost is undone, and another is removed with its post. No page is fetched again."""
    graph, author = stage.graph, stage.author
    kept, undone, deleted = await posts(graph, stage.stranger, "kept", "undone", "deleted")
    await graph.reposts.repost(SYSTEM, author, kept)
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("next"))
        for post, text in ((undone, "undone"), (deleted, "deleted")):
            await graph.reposts.repost(SYSTEM, author, post)
            await stage.each(lambda timeline: timeline.sees(f"repost of {text}"))  # noqa: B023 - awaited at once
        await graph.reposts.unrepost(SYSTEM, author, undone)
        await graph.posts.delete(stage.stranger, deleted)
        await stage.each(lambda timeline: timeline.sees("repost of kept"))
        await stage.check()
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [1] * len(CACHES)


async def test_a_post_that_was_reposted_is_shown_once(stage: Stage) -> None:
    """Only its newest occurrence on all pages is shown. The list contains all of them, so it has no hole."""
    graph, author = stage.graph, stage.author
    old = (await home(graph, stage.viewer))[-1]
    [post] = await graph.posts.get_many(SYSTEM, [old])
    assert post
    async with stage.open():
        await graph.reposts.repost(SYSTEM, author, old)
        await stage.each(lambda timeline: timeline.sees(f"repost of {post.text}"))
        await stage.check()
        for timeline in stage.timelines:
            assert post.text in timeline.texts
            assert timeline.shown == [text for text in timeline.texts if text != post.text]
        await graph.reposts.unrepost(SYSTEM, author, old)
        await stage.check()
        assert [timeline.shown for timeline in stage.timelines] == [timeline.texts for timeline in stage.timelines]


async def test_a_quote_stays_without_the_post_that_was_deleted(stage: Stage) -> None:
    """No page is fetched again for it, so a list that the user has scrolled keeps its length."""
    [quoted] = await posts(stage.graph, stage.author, "quoted")
    await stage.graph.posts.publish(stage.author, "a quote", quote_of=quoted)
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("next"))
        assert [timeline.quotes for timeline in stage.timelines] == [1] * len(CACHES)
        await stage.graph.posts.delete(stage.author, quoted)
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        await stage.check()
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [1] * len(CACHES)
        assert [timeline.quotes for timeline in stage.timelines] == [0] * len(CACHES)


async def test_no_post_is_lost_while_the_app_fetches_the_page_on_its_own(stage: Stage) -> None:
    """The page overwrites a newer post that has already arrived, so the subscription restarts from the page."""
    async with stage.open():
        await stage.each(lambda timeline: timeline.send("hold"))
        await stage.each(lambda timeline: timeline.send("refresh"))
        await stage.each(Timeline.holds)
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.hears("meanwhile"))
        await stage.each(release)
        await stage.check()
        assert {timeline.counts["refetches"] for timeline in stage.timelines} == {2}


async def test_no_post_is_lost_after_the_app_has_emptied_the_cache(stage: Stage) -> None:
    """Apollo Client then fetches the page. The pages of later fetches are also watched."""
    async with stage.open(caches=["apollo"]):
        [timeline] = stage.timelines
        for number, command in enumerate(("reset", "refresh")):
            await timeline.send("hold")
            await timeline.send(command)
            await timeline.holds()
            await posts(stage.graph, stage.author, f"meanwhile {number}")
            await timeline.hears(f"meanwhile {number}")
            await release(timeline)
            await timeline.sees(f"meanwhile {number}")
        await stage.check()


async def test_no_post_is_lost_when_the_app_fetches_a_newer_cursor(stage: Stage) -> None:
    """The app does so without the list, while sockets are down. The subscription continues from its own cursor."""
    async with stage.open():
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        stage.proxy.refuse_websockets()
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.graph.worker().drain()
        await stage.api.app.state.graph.log.watermark()  # otherwise, cursors may be up to a second old
        await stage.each(lambda timeline: timeline.send("badge"))
        stage.proxy.accept_websockets()
        await stage.check()


async def test_an_event_arrives_while_the_cache_lacks_a_field(stage: Stage) -> None:
    """The page cannot be read from the cache until it has been fetched again, which takes a while."""
    async with stage.open(caches=["relay", "apollo"]):
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        await stage.send("hold", "forget")
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.hears("meanwhile"))
        await stage.each(release)
        await stage.check()
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [2, 2]


async def test_a_mute_removes_posts_and_reposts_of_them(stage: Stage) -> None:
    """The muted user's posts and a followed user's repost of one are removed, but not a quote."""
    graph, viewer, author, muted = stage.graph, stage.viewer, stage.author, stage.stranger
    await befriend(graph, viewer, muted)
    reposted, quoted, _ = await posts(graph, muted, "reposted", "quoted", "another")
    await graph.posts.publish(author, "a quote", quote_of=quoted)
    await graph.reposts.repost(graph.visibility.of(author), author, reposted)
    async with stage.open():
        await graph.blocks.mute(viewer, muted)
        await stage.check()


async def test_no_post_is_lost_when_the_server_and_its_store_restart(
    hosts: Hosts, artifacts: Path, tmp_path: Path
) -> None:
    """The store is killed and starts again with its data."""
    data = tmp_path / "data"
    with EmbeddedStore(data) as store:
        url = archive_url_of(store.url)
        own = Settings(data_dir=data, archive_url=url, secret=(KEY,), worker=True, rate_limits=False)
        graph = await open_graph(store.url)
        try:
            async with staged(graph, own, hosts, artifacts) as stage, stage.open():
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


async def test_no_post_is_lost_when_subscriptions_are_refused(stage: Stage) -> None:
    """They are retried with the same cursor while other subscriptions of the viewer use up the quota."""
    await stage.restart(max_streams=len(CACHES))
    async with AsyncExitStack() as others:
        for _ in CACHES:
            await others.enter_async_context(stage.api.stream("subscription { homeTimeline { cursor } }", stage.token))
        await until(lambda: stage.api.quotas.streams.held == len(CACHES))
        async with stage.open():
            await posts(stage.graph, stage.author, "missed")
            await stage.each(lambda timeline: timeline.until(lambda each: each.counts["refusals"] >= 3))
            await others.aclose()
            await stage.check()


async def test_a_session_that_ends_elsewhere_ends_the_timeline(stage: Stage) -> None:
    """`onEnd` is called, so that the application can ask the user to log in."""
    async with stage.open():
        await stage.graph.sessions.end(stage.viewer)
        await stage.each(Timeline.ended)
