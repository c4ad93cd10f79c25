"""The public timeline: what it shows to whom, its pages, and what they cost."""

from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ArchiveUnavailable
from graph.model import MAX_NUMBER, Post, TimelineKind
from graph.paging import Window
from graph.public_timeline import PublicTimeline
from graph.scanning import MOST_READS
from graph.visibility import SYSTEM, View
from tests.support.graph_worlds import archive_log, counted, ids, newest, people, posts


async def settle(graph: Graph) -> int:
    """Project and archive the log, and return the archive watermark of the public timeline."""
    await graph.worker().drain()
    await archive_log(graph)
    return (await graph.public_timeline.begin()).watermark


async def shown(
    timeline: PublicTimeline, view: View, watermark: int, *, size: int = 100, forward: bool = True
) -> list[int]:
    """Return the ids of the whole timeline, newest first, read page by page."""
    found: list[int] = []
    low, high = 0, MAX_NUMBER + 1
    while True:
        page = await timeline.page(view, watermark, Window(size, forward, low, high))
        some = ids(page.items)
        assert some == sorted(some, reverse=True)
        assert len(some) <= size
        found = found + some if forward else some + found
        if forward:
            assert page.has_previous == (high <= MAX_NUMBER)
        if not (page.has_next if forward else page.has_previous):
            return found
        if forward:
            high = page.reached or some[-1]
        else:
            low = page.reached or some[0]


async def test_it_shows_the_listed_posts_of_all_users(graph: Graph) -> None:
    """Newest first: with quotes and with replies to oneself, without replies to others, reposts and deleted posts."""
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    own = await graph.posts.publish(alice, "own reply", reply_to=root.id)
    await graph.posts.publish(bob, "reply", reply_to=root.id)
    quote = await graph.posts.publish(bob, "quote", quote_of=root.id)
    await graph.reposts.repost(SYSTEM, bob, root.id)
    gone = await graph.posts.publish(bob, "gone")
    late = await graph.posts.publish(bob, "late")
    watermark = await settle(graph)
    await graph.posts.delete(bob, gone.id)

    timeline = await graph.public_timeline.begin()
    assert (timeline.owner, timeline.kind, timeline.watermark) == (0, TimelineKind.PUBLIC, watermark)
    assert await shown(graph.public_timeline, SYSTEM, watermark) == [late.id, quote.id, own.id, root.id]


async def test_it_ends_at_its_watermark(graph: Graph) -> None:
    """Later posts are not on its pages: a stream from its live cursor on sends them."""
    [alice] = await people(graph, "alice")
    [first] = await posts(graph, alice, "first")
    before = await settle(graph)
    [second] = await posts(graph, alice, "second")
    after = await settle(graph)

    assert await shown(graph.public_timeline, SYSTEM, before) == [first]
    assert await shown(graph.public_timeline, SYSTEM, after) == [second, first]
    assert first <= before < second


async def test_silenced_users_are_left_out(graph: Graph, raw: Redis) -> None:
    """Those whom the viewer mutes or blocks, and those who block the viewer."""
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    for author in (bob, carol, dave, erin):
        await posts(graph, author, "hello")
    for key, user in ((keys.muting, bob), (keys.blocking, carol), (keys.blockers, dave)):
        await raw.zadd(key(alice), {str(user): 1})
    watermark = await settle(graph)

    async def authors(view: View) -> list[int]:
        page = await graph.public_timeline.page(view, watermark, newest(10))
        return [post.author for post in page.items]

    assert await authors(graph.visibility.of(alice)) == [erin]
    assert await authors(graph.visibility.of(None)) == [erin, dave, carol, bob]


async def test_a_page_looks_at_so_many_posts_only(graph: Graph, raw: Redis) -> None:
    """It may be empty with more to come, and the next page continues."""
    alice, bob = await people(graph, "alice", "bob")
    [wanted] = await posts(graph, alice, "wanted")
    await posts(graph, bob, *["muted"] * 20)
    await raw.zadd(keys.muting(alice), {str(bob): 1})
    watermark = await settle(graph)
    timeline = PublicTimeline(graph.binding, graph.posts, scanned=8)

    pages, window = [], newest(3)
    while True:
        page = await timeline.page(graph.visibility.of(alice), watermark, window)
        pages.append(ids(page.items))
        if not page.has_next:
            break
        assert page.reached is not None
        window = newest(3, after=page.reached)

    assert pages == [[], [], [wanted]]


async def test_pages_equal_a_plain_scan(graph: Graph, raw: Redis, long_profile: bool) -> None:
    """Of any size, in both directions, for viewers who silence others, while posts come and go."""
    random = Random(11)  # noqa: S311 - reproducible
    readers, users = await people(graph, "ann", "ben", "cat"), await people(graph, *(f"user{n}" for n in range(5)))
    for viewer in readers[:2]:
        await raw.zadd(keys.muting(viewer), {str(random.choice(users)): 1})
        await raw.zadd(keys.blockers(viewer), {str(random.choice(users)): 1})
    live: list[Post] = []
    for _ in range(40 if long_profile else 4):
        for _ in range(25):
            author, other = random.choice(users), random.choice([None, *live])
            if other is not None and random.random() < 0.2:
                live.remove(other)
                await graph.posts.delete(other.author, other.id)
                continue
            use: dict[str, Any] = {random.choice(["reply_to", "quote_of"]): other and other.id}
            live.append(await graph.posts.publish(author, "text", **use))
            if random.random() < 0.1:
                await graph.reposts.repost(SYSTEM, author, live[-1].id)
        watermark = await settle(graph)
        for viewer in readers:
            view = graph.visibility.of(viewer)
            silenced = await view.silenced(users)
            expected = [post.id for post in live if post.listed and post.author not in silenced][::-1]
            size, forward = random.choice([1, 3, 7, 100]), random.random() < 0.5
            assert await shown(graph.public_timeline, view, watermark, size=size, forward=forward) == expected


async def test_a_page_costs_one_round_trip(graph: Graph) -> None:
    """The rest is read from the archive, in one transaction."""
    [alice] = await people(graph, "alice")
    await posts(graph, alice, *(f"post {n}" for n in range(40)))
    watermark = await settle(graph)
    view = graph.visibility.of(alice)

    async with counted(graph) as cost:
        page = await graph.public_timeline.page(view, watermark, newest(30))
    assert (len(page.items), page.has_next) == (30, True)
    assert cost.round_trips == 1


async def test_a_page_makes_a_bounded_number_of_reads(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    for _ in range(MOST_READS + 3):
        await graph.posts.publish(bob, "reply", reply_to=root.id)
    watermark = await settle(graph)
    reads = 0
    published = graph.archive.published

    async def one_by_one(window: Window) -> Any:
        nonlocal reads
        reads += 1
        return await published(Window(1, window.forward, window.low, window.high))

    monkeypatch.setattr(graph.archive, "published", one_by_one)
    page = await graph.public_timeline.page(SYSTEM, watermark, newest(3))

    assert (ids(page.items), page.has_next, reads) == ([], True, MOST_READS)


async def test_without_the_archive_it_cannot_be_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(graph.archive, "_transaction", fail)
    with pytest.raises(ArchiveUnavailable):
        await graph.public_timeline.begin()
    with pytest.raises(ArchiveUnavailable):
        await graph.public_timeline.page(SYSTEM, 100, newest(10))
