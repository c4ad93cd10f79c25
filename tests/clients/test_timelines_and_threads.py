"""The client kit keeps timelines of users and lists, and threads, equal to the server's in all caches.

The hooks for Apollo Client and urql use their default documents here.
"""

from functools import partial

import pytest

from graph import Graph
from graph.visibility.views import SYSTEM
from resolvers.ids import Kind, encode
from tests.clients.cached_lists import CACHES, ListSettings, Stage, Timeline, release
from tests.support.graph_worlds import posts

pytestmark = pytest.mark.slow


def timeline(kind: Kind, number: int) -> list[ListSettings]:
    """Return the settings of a list that shows a timeline."""
    return [{"shows": "timeline", "id": encode(kind, number)}]


def thread(post: int) -> list[ListSettings]:
    """Return the settings of a list that shows a thread."""
    return [{"shows": "thread", "id": encode(Kind.POST, post)}]


async def reply(graph: Graph, author: int, post: int, *texts: str) -> list[int]:
    """Publish replies to a post."""
    return [(await graph.posts.publish(author, text, reply_to=post)).id for text in texts]


async def all_show(stage: Stage, texts: list[str]) -> None:
    """Wait until all lists, with all their pages, have exactly these texts."""
    await stage.each(lambda each: each.until(lambda each: each.texts and each.texts == texts[: len(each.texts)]))
    await stage.each(lambda each: each.shows(texts))


async def is_gone(timeline: Timeline) -> None:
    """Wait until a list is empty, because its owner no longer exists."""
    await timeline.until(lambda each: not each.texts)


async def test_the_timeline_of_a_user(stage: Stage) -> None:
    """Posts and reposts come and go, even while sockets are down."""
    graph, carol = stage.graph, stage.stranger
    await graph.worker().drain()
    [old] = await posts(graph, stage.author, "by bob")
    async with stage.open(lists=timeline(Kind.USER_TIMELINE, carol)):
        await posts(graph, stage.author, "elsewhere")
        numbered = await posts(graph, carol, *(str(number) for number in range(25)))
        await graph.reposts.repost(SYSTEM, carol, old)
        await stage.each(lambda each: each.sees("repost of by bob"))
        expected = ["repost of by bob", *(str(number) for number in range(24, -1, -1))]
        await all_show(stage, expected)

        assert stage.proxy.refuse_websockets() == len(CACHES)
        await graph.posts.delete(carol, numbered[3])
        await graph.posts.delete(stage.author, old)
        await posts(graph, carol, "missed")
        stage.proxy.accept_websockets()
        await all_show(stage, ["missed", *(text for text in expected[1:] if text != "3")])
        assert [each.counts["refetches"] for each in stage.timelines] == [1] * len(CACHES)


async def test_a_list_whose_members_change(stage: Stage) -> None:
    """`TimelineChanged` fetches the page. Nothing is lost while it is held back; then the list is deleted."""
    graph, alice, bob, carol = stage.graph, stage.viewer, stage.author, stage.stranger
    await posts(graph, carol, "before")
    friends = (await graph.lists.create(alice, "friends", [carol])).id
    await graph.worker().drain()
    async with stage.open(lists=timeline(Kind.LIST_TIMELINE, friends)):
        await stage.each(lambda each: each.sees("before"))
        await stage.send("hold")
        await graph.lists.update(alice, friends, removed=[carol], added=[bob])
        await stage.each(Timeline.holds)
        await posts(graph, bob, "meanwhile")
        await stage.each(release)
        await posts(graph, bob, "live")
        await posts(graph, carol, "not in the list")
        await stage.each(lambda each: each.sees("live"))
        await stage.each(lambda each: each.until(lambda each: each.texts[1:2] == ["meanwhile"]))
        assert all("before" not in each.texts for each in stage.timelines)

        await graph.lists.delete(alice, friends)
        await stage.each(is_gone)


async def test_a_thread(stage: Stage) -> None:
    """Replies come and go, even while sockets are down, and likes are counted."""
    graph, bob, carol = stage.graph, stage.author, stage.stranger
    [post] = await posts(graph, bob, "a thread")
    early = await reply(graph, carol, post, *(f"early {number}" for number in range(25)))
    async with stage.open(lists=thread(post)):
        await stage.send("next")
        await reply(graph, bob, post, "live")
        await graph.likes.like(carol, post)
        await stage.each(lambda each: each.sees("live"))
        await stage.each(lambda each: each.until(lambda each: each.likes == 1))
        expected = ["live", *(f"early {number}" for number in range(24, -1, -1))]
        await all_show(stage, expected)

        assert stage.proxy.refuse_websockets() == len(CACHES)
        await graph.posts.delete(carol, early[3])
        await reply(graph, stage.viewer, post, "missed")
        stage.proxy.accept_websockets()
        expected = ["missed", *(text for text in expected if text != "early 3")]
        await all_show(stage, expected)

        await graph.blocks.block(stage.viewer, carol)
        await all_show(stage, ["missed", "live"])
        await stage.send("hold")
        await graph.blocks.unblock(stage.viewer, carol)
        await stage.each(Timeline.holds)
        await reply(graph, bob, post, "meanwhile")
        await stage.each(lambda each: each.hears("meanwhile"))
        await stage.each(release)
        await all_show(stage, ["meanwhile", *expected])


async def test_a_list_that_is_deleted_while_sockets_are_down(stage: Stage) -> None:
    """The server refuses the subscription, or reports the change: there is no error, and nothing to show."""
    graph, alice = stage.graph, stage.viewer
    friends = (await graph.lists.create(alice, "friends", [stage.author])).id
    async with stage.open(lists=timeline(Kind.LIST_TIMELINE, friends)):
        await posts(graph, stage.author, "live")
        await stage.each(lambda each: each.sees("live"))
        assert stage.proxy.refuse_websockets() == len(CACHES)
        await graph.lists.delete(alice, friends)
        stage.proxy.accept_websockets()
        await stage.each(is_gone)


@pytest.mark.parametrize("how", ["deleted", "hidden"])
async def test_the_post_of_a_thread_vanishes(stage: Stage, how: str) -> None:
    """The thread is then empty, and its post is null."""
    graph, bob, carol = stage.graph, stage.author, stage.stranger
    [post] = await posts(graph, bob, "a thread")
    await reply(graph, carol, post, "a reply")
    async with stage.open(lists=thread(post)):
        await stage.each(lambda each: each.sees("a reply"))
        if how == "deleted":
            await graph.posts.delete(bob, post)
        else:
            await graph.blocks.block(bob, stage.viewer)
        await stage.each(is_gone)


async def test_a_post_is_deleted_while_its_thread_and_the_timeline_are_open(stage: Stage) -> None:
    """It disappears from both, whichever gets the event first, and from the part of the timeline in the cache."""
    [post] = await posts(stage.graph, stage.author, "short-lived")
    await reply(stage.graph, stage.stranger, post, "a reply")
    await stage.graph.worker().drain()
    async with stage.open(lists=[{}, *thread(post)]):
        await stage.each(lambda each: each.sees("short-lived"))
        await stage.send("leave", "look 1")
        await stage.each(lambda each: each.sees("a reply"))
        await stage.graph.posts.delete(stage.author, post)
        await stage.each(is_gone)
        await stage.send("look 0", "return")
        await stage.check()


async def test_threads_share_a_cache_with_a_timeline(stage: Stage) -> None:
    """Each list gets its own events: those of other lists, and of other pages, leave it unchanged."""
    graph, bob, carol = stage.graph, stage.author, stage.stranger
    one, two = await posts(graph, bob, "one", "two")
    await reply(graph, carol, one, "to one")
    await reply(graph, carol, two, "to two")
    async with stage.open(lists=[*thread(one), *thread(two), {}]):
        await reply(graph, carol, one, "again to one")
        await reply(graph, carol, two, "again to two")
        await posts(graph, bob, "live")
        lists = (["again to one", "to one"], ["again to two", "to two"])
        for number, texts in enumerate(lists):
            await stage.send(f"look {number}")
            await stage.each(partial(Timeline.sees, text=texts[0]))
            await all_show(stage, texts)
        await stage.send("look 2")
        await stage.check()
