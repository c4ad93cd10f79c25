"""The public timeline: its content for different viewers, its pages, and their cost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archive.usage import USAGE, Usage, used_by
from graph.errors import ArchiveUnavailable
from graph.log.events import PostPublished
from graph.model import MAX_NUMBER, Post, Timeline, TimelineKind
from graph.pages.scanning import MOST_READS
from graph.paging import Window
from graph.recording import RECORDING, Recording
from graph.search.post_search import post_filter
from graph.store.store import Store
from graph.timelines.public_timeline import PublicTimeline
from graph.visibility.views import SYSTEM, View
from tests.graph.rebuild.stores import empty_store
from tests.support.databases import PATIENCE
from tests.support.graph_worlds import archive_log, counted, ids, many_posts, newest, people, posts
from tests.support.graphs import CHEAP, open_graph


async def settle(graph: Graph) -> int:
    """Project and archive the log, and return the watermark of the public timeline."""
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
    """Posts are newest first, with quotes and self-replies, without replies to others, reposts and deleted posts."""
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
    """Later posts are not on its pages; a stream from its live cursor sends them."""
    [alice] = await people(graph, "alice")
    [first] = await posts(graph, alice, "first")
    before = await settle(graph)
    [second] = await posts(graph, alice, "second")
    after = await settle(graph)

    assert await shown(graph.public_timeline, SYSTEM, before) == [first]
    assert await shown(graph.public_timeline, SYSTEM, after) == [second, first]
    assert first <= before < second


async def test_silenced_users_are_left_out(graph: Graph, raw: Redis) -> None:
    """These are users whom the viewer mutes or blocks, and users who block the viewer."""
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
    """A page may be empty although more posts follow, and the next page continues."""
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
    """This holds for any page size, both directions and viewers who silence others, while posts come and go."""
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


async def test_a_page_makes_a_bounded_number_of_reads(
    graph: Graph, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await posts(graph, bob, *["muted"] * (MOST_READS + 3))
    await raw.zadd(keys.muting(alice), {str(bob): 1})
    watermark = await settle(graph)
    reads = 0
    published = graph.archive.published

    async def one_by_one(window: Window, hidden: frozenset[int]) -> Any:
        nonlocal reads
        reads += 1
        return await published(Window(1, window.forward, window.low, window.high), hidden)

    monkeypatch.setattr(graph.archive, "published", one_by_one)
    page = await graph.public_timeline.page(graph.visibility.of(alice), watermark, newest(3))

    assert (ids(page.items), page.has_next, reads) == ([], True, MOST_READS)


@pytest.fixture
async def on_each_database(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph with an archive in SQLite, PostgreSQL or MariaDB, and thirty posts by ann."""
    await empty_store(store_url)
    archive = Archive(archive_url, timeout=PATIENCE)
    graph = await open_graph(store_url, CHEAP, partial(Store, single_slot=True), archive)
    [ann] = await people(graph, "ann")
    await posts(graph, ann, *(f"post {n}" for n in range(30)))
    yield graph
    await graph.close()


async def page_of_20(graph: Graph, viewer: int | None = None) -> list[Post]:
    """Return the newest page of 20 posts. Assert that it is full, has more to come and costs one transaction."""
    timeline = await graph.public_timeline.begin()
    view = graph.visibility.of(viewer)
    await view.suspended(())  # a process that does not know of a suspension takes two transactions
    with used_by(Usage("reader", anonymous=True)):
        recording = Recording()
        token = RECORDING.set(recording)
        page = await graph.public_timeline.page(view, timeline.watermark, newest(20))
        RECORDING.reset(token)
    assert (len(page.items), page.has_next) == (20, True)
    assert len(recording.transactions) == 1
    return list(page.items)


async def test_replies_and_suspended_authors_take_no_place(
    on_each_database: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates exclude unlisted replies and, at once, posts of a suspended author. A page examines 100 posts."""
    graph = on_each_database
    monkeypatch.setattr(graph.public_timeline, "_scan_limit", 100)
    monkeypatch.setattr("graph.archive.public_posts.SCANNED_EVENTS", 100)
    flooder, spammer = await people(graph, "flooder", "spammer")
    root = (await graph.posts.publish(flooder, "root")).id
    reply = PostPublished(flooder, "reply", reply_to=root + 1, root=root + 1, listed=False)
    await graph.commit([reply] * 120)
    await settle(graph)

    assert {post.author for post in await page_of_20(graph)} > {flooder}
    await graph.moderation.suspend(flooder)
    assert flooder not in {post.author for post in await page_of_20(graph)}
    await settle(graph)
    assert flooder not in {post.author for post in await page_of_20(graph)}

    await many_posts(graph, spammer, 120)
    await settle(graph)
    assert {post.author for post in await page_of_20(graph)} == {spammer}
    await graph.moderation.suspend(spammer)
    ann_only = await page_of_20(graph)
    assert len({post.author for post in ann_only}) == 1
    await settle(graph)
    assert await page_of_20(graph) == ann_only
    await graph.moves.finish()
    assert await page_of_20(graph) == ann_only

    await graph.moderation.unsuspend(spammer)
    await settle(graph)
    await graph.moves.finish()
    assert {post.author for post in await page_of_20(graph)} == {spammer}


async def test_readers_of_a_page_share_one_read(graph: Graph, raw: Redis) -> None:
    """Thirty readers cost two transactions, and each sees its permitted posts. Each one pays for the rows."""
    [alice, bob, carol] = await people(graph, "alice", "bob", "carol")
    for author in (alice, bob):
        await posts(graph, author, *(f"post {n}" for n in range(5)))
    await raw.zadd(keys.muting(carol), {str(bob): 1})
    await settle(graph)
    usages = [Usage(f"reader {n}", anonymous=True) for n in range(30)]

    async def read(usage: Usage, viewer: int | None) -> list[Post]:
        with used_by(usage):
            timeline = await graph.public_timeline.begin()
            page = await graph.public_timeline.page(graph.visibility.of(viewer), timeline.watermark, newest(20))
            return list(page.items)

    with transactions_of(graph) as begun:
        pages = await asyncio.gather(*(read(usage, carol if n == 7 else None) for n, usage in enumerate(usages)))

    assert len(begun) == 2, "one for the watermark, one for the page"
    assert set(begun) == {"reader 0"}, "the first one waits for the connection"
    assert [len(page) for page in pages] == [10] * 7 + [5] + [10] * 22
    assert {usage.rows for usage in usages} == {10}
    assert sorted(usage.statements for usage in usages)[-2:] != [0, 0]


async def test_nobody_waits_for_the_connections_of_another_reader(graph: Graph) -> None:
    """A read serves others once it has its connection. Until then, only readers with the same name wait for it."""
    await settle(graph)
    gate, reads = graph.archive.database.gate, graph.binding.shared_reads
    busy, other = Usage("busy", anonymous=True), Usage("other", anonymous=True)
    with used_by(busy):
        leave = [await gate.enter(PATIENCE) for _ in range(2)]
        waiting = [asyncio.ensure_future(graph.public_timeline.begin()) for _ in range(2)]
    while gate.waiting < 1:  # noqa: ASYNC110 - a few turns of the event loop
        await asyncio.sleep(0)
    assert len(reads.unfinished) == 1
    with used_by(other):
        served = await graph.public_timeline.begin()
    assert not any(task.done() for task in waiting)
    for give_back in leave:
        give_back()
    assert await asyncio.gather(*waiting) == [served] * 2


async def test_searches_and_public_timelines_share_the_watermark(graph: Graph) -> None:
    await settle(graph)
    filter_ = post_filter(keywords=["word"])

    with transactions_of(graph) as begun:
        timelines = (graph.public_timeline.begin() for _ in range(3))
        await asyncio.gather(graph.searches.begin(filter_), *timelines)

    assert len(begun) == 1


async def test_a_cancelled_reader_takes_nothing_from_the_others(graph: Graph) -> None:
    """Cancelling the reader whose call began the read does not end the read, and that reader still pays for it."""
    await settle(graph)
    first = Usage("first", anonymous=True)
    with used_by(first):
        begun = asyncio.ensure_future(graph.public_timeline.begin())
    with used_by(Usage("other", anonymous=True)):
        others = [asyncio.ensure_future(graph.public_timeline.begin()) for _ in range(3)]
    while not graph.binding.shared_reads.unfinished:  # noqa: ASYNC110 - a few turns of the event loop
        await asyncio.sleep(0)
    begun.cancel()
    others[0].cancel()

    results = await asyncio.gather(begun, *others, return_exceptions=True)

    assert [type(result) for result in results] == [asyncio.CancelledError] * 2 + [Timeline] * 2
    assert first.statements > 0
    assert (await graph.public_timeline.begin()) == results[-1]


async def test_a_failure_reaches_all_who_share_it_and_nobody_else(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settle(graph)
    with monkeypatch.context() as patch:

        async def fail(*_: Any) -> None:
            await asyncio.sleep(0)
            raise ArchiveUnavailable("down")

        patch.setattr(graph.archive, "_transaction", fail)
        failed = await asyncio.gather(*(graph.public_timeline.begin() for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in failed] == [ArchiveUnavailable] * 3
    assert await graph.public_timeline.begin()


@contextmanager
def transactions_of(graph: Graph) -> Iterator[list[str]]:
    """Collect the callers of the archive's transactions."""
    begun: list[str] = []
    transaction = graph.archive.database.transaction

    async def note(work: Any) -> Any:
        usage = USAGE.get()
        begun.append(usage.caller if usage else "")
        return await transaction(work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph.archive.database, "transaction", note)
        yield begun


async def test_without_the_archive_it_cannot_be_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(graph.archive, "_transaction", fail)
    with pytest.raises(ArchiveUnavailable):
        await graph.public_timeline.begin()
    with pytest.raises(ArchiveUnavailable):
        await graph.public_timeline.page(SYSTEM, 100, newest(10))
