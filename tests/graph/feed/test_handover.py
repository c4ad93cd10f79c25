"""Updates that a courier delivers in place of the subscription's task."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from graph import Graph
from graph.errors import SessionOver, StoreUnavailable
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorHidden, Change, Checkpoint, Gap, GapReason, PostRemoved
from graph.log.events import Blocked, PostPublished
from tests.graph.feed.watching import CHECKPOINT_SECONDS, feed_of
from tests.support.graph_worlds import PATIENCE, append_events, befriend, people, posts


class Bag:
    """A courier that holds an update until the test settles it, and records what the client has received."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.accepts = True
        self.left = self.overlapped = 0
        self.held: tuple[Change, Callable[[bool], None]] | None = None
        self._something = asyncio.Event()

    def take(self, update: Change, settle: Callable[[bool], None]) -> bool:
        """Take an update and hold it."""
        self.overlapped += self.held is not None
        if self.accepts:
            self.held = update, settle
            self._something.set()
        return self.accepts

    def leave(self) -> None:
        """Drop the update."""
        self.left += self.held is not None
        self.held = None

    def settle(self, *, delivered: bool = True) -> None:
        """Deliver the update, or return it."""
        assert self.held is not None
        (update, settle), self.held = self.held, None
        if delivered:
            self.received.append(("courier", update))
        settle(delivered)

    def receive(self, update: Any) -> None:
        """Receive an update from the task."""
        self.received.append(("task", update))
        self._something.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that may change when an update is taken or received."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._something.clear()
                await self._something.wait()

    async def holds(self, number: int) -> None:
        """Wait until the courier holds the update of an event."""
        await self.until(lambda: self.held is not None and self.held[0].number == number)

    async def gets(self, number: int) -> None:
        """Wait until the client has received the update of an event from the task."""
        await self.until(lambda: any(by == "task" and update.number == number for by, update in self.received))

    @property
    def changes(self) -> list[tuple[str, int]]:
        """The events that the client has received, each with its deliverer."""
        return [(by, update.number) for by, update in self.received if isinstance(update, Change)]


@pytest.fixture
async def slow_feed(graph: Graph) -> AsyncIterator[Feed]:
    """Return a feed without checkpoints during a test."""
    async with feed_of(graph, 1000.0) as feed:
        yield feed


@asynccontextmanager
async def carried(feed: Feed, subscribe: Callable[[Bag], Any]) -> AsyncIterator[Bag]:
    """Subscribe, and wait until the subscription is live. A task takes the updates that it yields."""
    bag = Bag()
    stream = subscribe(bag)

    async def take_all() -> None:
        try:
            async for update in stream:
                bag.receive(update)
        except SessionOver as over:
            bag.receive(over)

    before = len(feed)
    task = asyncio.create_task(take_all())
    try:
        await bag.until(lambda: bool(bag.received))
        async with asyncio.timeout(PATIENCE):
            while len(feed) == before:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        yield bag
        assert not bag.overlapped
    finally:
        task.cancel()
        await asyncio.wait([task])
        await stream.aclose()


@asynccontextmanager
async def at_home(graph: Graph, feed: Feed, session: str | None = None) -> AsyncIterator[tuple[Bag, int, int]]:
    """Subscribe to a home timeline, and return the viewer and an author whom the viewer follows."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    async with carried(feed, lambda bag: feed.home(alice, None, session, courier=bag)) as bag:
        yield bag, alice, bob


async def reached(feed: Feed, number: int) -> None:
    """Wait until the reader has passed on the event with this number."""
    async with asyncio.timeout(PATIENCE):
        while feed._reader.head < number:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)


async def test_updates_wait_for_the_one_that_the_courier_has(graph: Graph, slow_feed: Feed) -> None:
    async with at_home(graph, slow_feed) as (bag, _, bob):
        written = [event.number for event in await append_events(graph, [PostPublished(bob, text) for text in "abc"])]
        for number in written:
            await bag.holds(number)
            await asyncio.sleep(0.01)
            bag.settle()
        assert bag.changes == [("courier", number) for number in written]


async def test_what_the_courier_gives_back_is_sent_by_the_task_first(graph: Graph, slow_feed: Feed) -> None:
    async with at_home(graph, slow_feed) as (bag, _, bob):
        first, second = await posts(graph, bob, "a", "b")
        await bag.holds(first)
        bag.settle(delivered=False)
        await bag.gets(second)
        assert bag.changes == [("task", first), ("task", second)]
        [third] = await posts(graph, bob, "c")
        await bag.holds(third)


async def test_a_courier_that_takes_nothing_leaves_everything_to_the_task(graph: Graph, slow_feed: Feed) -> None:
    async with at_home(graph, slow_feed) as (bag, _, bob):
        bag.accepts = False
        written = await posts(graph, bob, "a", "b")
        await bag.gets(written[1])
        assert bag.changes == [("task", number) for number in written]


async def test_the_task_sends_deletions_and_remembers_them(graph: Graph, slow_feed: Feed) -> None:
    """The task sends them in order, between the updates of the courier."""
    async with at_home(graph, slow_feed) as (bag, _, bob):
        [post] = await posts(graph, bob, "a")
        await bag.holds(post)
        await graph.posts.delete(bob, post)
        [later] = await posts(graph, bob, "b")
        assert bag.changes == []
        bag.settle()
        await bag.until(lambda: len(bag.changes) == 3)
        assert [by for by, _ in bag.changes] == ["courier", "task", "task"]
        assert isinstance(bag.received[-2][1], PostRemoved)
        assert bag.received[-1][1].number == later


async def test_a_post_of_somebody_who_is_blocked_meanwhile_is_withheld(graph: Graph, slow_feed: Feed) -> None:
    """The reader passes both events on together. The courier does not get the post, and the task withholds it."""
    async with at_home(graph, slow_feed) as (bag, alice, bob):
        _, block = await append_events(graph, [PostPublished(bob, "a"), Blocked(alice, bob)])
        await bag.gets(block.number)
        assert [type(update) for _, update in bag.received] == [Checkpoint, AuthorHidden]
        assert bag.held is None


async def test_a_post_that_nobody_has_checked_is_checked_by_the_task(
    graph: Graph, slow_feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader's look-up for all subscriptions fails."""

    async def fail(*arguments: Any) -> set[int]:
        raise StoreUnavailable("a test")

    monkeypatch.setattr("graph.feed.feed.deleted_posts", fail)
    async with at_home(graph, slow_feed) as (bag, _, bob):
        [post] = await posts(graph, bob, "a")
        await bag.gets(post)
        assert bag.changes == [("task", post)]


async def test_a_post_that_is_given_back_late_is_checked_again(
    graph: Graph, slow_feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post was deleted while the courier had it. Later updates need no check."""
    monkeypatch.setattr("graph.feed.deletions.RECHECK_SECONDS", 0.2)
    async with at_home(graph, slow_feed) as (bag, _, bob):
        [post] = await posts(graph, bob, "a")
        await bag.holds(post)
        await asyncio.sleep(0.25)
        await graph.posts.delete(bob, post)
        await reached(slow_feed, await graph.log.last())
        bag.settle(delivered=False)
        await bag.until(lambda: isinstance(bag.received[-1][1], PostRemoved))
        assert len(bag.changes) == 1


async def test_a_session_ends_after_the_update_that_the_courier_has(graph: Graph, slow_feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    session = await graph.sessions.start(alice)
    async with carried(slow_feed, lambda bag: slow_feed.home(alice, None, session.id, courier=bag)) as bag:
        [post] = await posts(graph, bob, "a")
        await bag.holds(post)
        await graph.sessions.end(alice)
        await asyncio.sleep(0.05)
        bag.settle()
        await bag.until(lambda: isinstance(bag.received[-1][1], SessionOver))
        assert [by for by, _ in bag.received] == ["task", "courier", "task"]


async def test_a_full_buffer_cuts_a_subscription_off_after_the_update_that_the_courier_has(
    graph: Graph, slow_feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The courier's update counts as buffered. The Gap follows it, and the courier continues afterwards."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1000)
    monkeypatch.setattr("graph.feed.feed.THROTTLE_SECONDS", 0.01)
    async with at_home(graph, slow_feed) as (bag, _, bob):
        written = await posts(graph, bob, *"abcde")
        await bag.holds(written[0])
        async with asyncio.timeout(PATIENCE):
            while not slow_feed.cut_off:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        bag.settle()
        await bag.until(lambda: isinstance(bag.received[-1][1], Gap))
        gap = bag.received[-1][1]
        assert (gap.number, gap.reason) == (written[0], GapReason.SLOW_CONSUMER)
        await bag.until(lambda: isinstance(bag.received[-1][1], Checkpoint))
        assert len(bag.changes) == 1
        async with asyncio.timeout(PATIENCE):
            while not len(slow_feed):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        [later] = await posts(graph, bob, "g")
        await bag.holds(later)


async def test_an_update_that_is_given_back_after_a_cut_is_part_of_the_gap(
    graph: Graph, slow_feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1000)
    monkeypatch.setattr("graph.feed.feed.THROTTLE_SECONDS", 0.01)
    async with at_home(graph, slow_feed) as (bag, _, bob):
        written = await posts(graph, bob, *"abcdef")
        await bag.holds(written[0])
        async with asyncio.timeout(PATIENCE):
            while not slow_feed.cut_off:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        bag.settle(delivered=False)
        await bag.until(lambda: isinstance(bag.received[-1][1], Gap))
        assert bag.changes == []
        assert bag.received[-1][1].number < written[0]


async def test_checkpoints_follow_what_the_courier_has_delivered(graph: Graph) -> None:
    """No checkpoint overtakes the courier's update, and the next one is due an interval after that."""
    async with feed_of(graph) as feed, at_home(graph, feed) as (bag, _, bob):
        [post] = await posts(graph, bob, "a")
        await bag.holds(post)
        before = len(bag.received)
        await asyncio.sleep(2 * CHECKPOINT_SECONDS)
        assert len(bag.received) == before
        settled = time.monotonic()
        bag.settle()
        await bag.until(lambda: len(bag.received) > before + 1)
        assert time.monotonic() - settled >= CHECKPOINT_SECONDS - 0.002  # timers count milliseconds
        assert isinstance(bag.received[-1][1], Checkpoint)
        assert bag.received[-1][1].number >= post


async def test_a_subscription_that_ends_takes_its_update_from_the_courier(graph: Graph, slow_feed: Feed) -> None:
    async with at_home(graph, slow_feed) as (bag, _, bob):
        [post] = await posts(graph, bob, "a")
        await bag.holds(post)
    assert bag.left == 1
    assert bag.changes == []


async def test_filtered_events_have_couriers_too(graph: Graph, slow_feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    chosen = EventFilter.of(keywords=["rain"])
    async with carried(slow_feed, lambda bag: slow_feed.events(None, chosen, courier=bag)) as bag:
        [post] = await posts(graph, alice, "rain")
        await bag.holds(post)
