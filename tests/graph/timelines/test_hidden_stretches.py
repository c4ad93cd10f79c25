"""Pages of timelines and threads with very many hidden posts: each page examines a limited number of posts."""

from collections.abc import Awaitable, Callable

import pytest

from graph import Graph
from graph.model import Page, Post
from graph.paging import Window
from graph.post_lists import REPLIES, TIMELINE
from tests.support.graph_worlds import befriend, ids, newest, oldest, people, posts

LEFT_OUT = 40
Read = Callable[[Window], Awaitable[Page[Post]]]


@pytest.fixture(autouse=True)
def few_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page examine few posts."""
    monkeypatch.setattr("graph.timelines.timelines.MOST_SCANNED", 10)


async def check_pages(read: Read, expected: list[int]) -> None:
    """Read pages in both directions, and check that some end early and that together they are complete."""
    for forward in (True, False):
        found: list[int] = []
        short = 0
        bound: int | None = None
        while True:
            window = newest(2, after=bound) if forward else oldest(2, before=bound)
            page = await read(window)
            short += page.reached is not None
            shown = ids(page.items)
            found = [*found, *shown] if forward else [*shown, *found]
            if not (page.has_next if forward else page.has_previous):
                break
            bound = page.reached or (shown[-1] if forward else shown[0])
        assert (found, short > 0) == (expected, True)


async def test_replies_of_a_suspended_user_do_not_make_a_page_read_the_whole_thread(graph: Graph) -> None:
    alice, spammer = await people(graph, "alice", "spammer")
    root = (await graph.posts.publish(alice, "root")).id
    first = (await graph.posts.publish(alice, "first", reply_to=root)).id
    for n in range(LEFT_OUT):
        await graph.posts.publish(spammer, f"spam {n}", reply_to=root)
    last = (await graph.posts.publish(alice, "last", reply_to=root)).id
    await graph.moderation.suspend(spammer)

    async def read(window: Window) -> Page[Post]:
        return (await graph.timelines.pages_of(graph.visibility.of(None), REPLIES, [root], window))[0]

    await check_pages(read, [last, first])


@pytest.mark.parametrize("is_home", [True, False])
async def test_reposts_of_hidden_posts_do_not_make_a_page_read_the_whole_timeline(graph: Graph, is_home: bool) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    [first] = await posts(graph, carol, "first")
    for post in await posts(graph, bob, *map(str, range(LEFT_OUT))):
        await graph.reposts.repost(graph.visibility.of(carol), carol, post)
    [last] = await posts(graph, carol, "last")
    await graph.blocks.block(alice, bob)

    async def read(window: Window) -> Page[Post]:
        if is_home:
            return await graph.timelines.home(alice, window)
        return (await graph.timelines.pages_of(graph.visibility.of(alice), TIMELINE, [carol], window))[0]

    await check_pages(read, [last, first])
