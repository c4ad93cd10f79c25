"""Tests of filters that are added to the index, and removed from it, in slices."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph import Graph
from graph.errors import StoreUnavailable
from graph.feed.buffer import Buffer
from graph.feed.feed import Feed
from graph.feed.filter_source import FilterSource
from graph.feed.filters import EventFilter
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.matching import FilterIndex
from graph.feed.slices import Slices
from graph.feed.updates import FilteredChange
from graph.log.events import Event
from tests.graph.feed.filtering import events, filters, published
from tests.graph.feed.test_matching import reachable
from tests.graph.feed.watching import following
from tests.support.graph_worlds import people, posts

LARGE = EventFilter.of(users=range(1, 501), keywords=[f"word{n}" for n in range(400)])


@pytest.fixture(autouse=True, scope="module")
def small_slices() -> Iterator[None]:
    """Limit a slice to one user or one keyword."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graph.feed.indexes.USERS_PER_SLICE", 1)
        patch.setattr("graph.feed.indexes.KEYWORDS_PER_SLICE", 1)
        yield


class Holder:
    """Holds a filter, subscribes to it, and gives up at any time."""

    def __init__(self, index: FilterIndex[int], filter_: EventFilter, name: int) -> None:
        self.index = index
        self.filter = filter_
        self.name = name
        self.holding: asyncio.Task[None] | None = None
        self.is_subscribed = False

    async def advance(self) -> None:
        """Execute the next step."""
        if self.holding is None:
            self.holding = asyncio.create_task(self.index.hold(self.filter))
        elif not self.holding.done():
            await asyncio.sleep(0)
        elif not self.is_subscribed:
            self.index.add(self.filter, self.name)
            self.is_subscribed = True
        else:
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Remove the subscription, if there is one."""
        if self.is_subscribed:
            self.index.remove(self.filter, self.name)
            self.is_subscribed = False

    async def give_up(self) -> None:
        """Return to the initial state."""
        self.unsubscribe()
        holding, self.holding = self.holding, None
        if holding is None:
            return
        if holding.done():
            self.index.release(self.filter)
            return
        holding.cancel()
        await asyncio.wait([holding])


@settings(deadline=None)
@given(
    st.lists(filters, min_size=1, max_size=3),
    st.lists(events, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=40),
)
def test_an_event_reaches_the_subscribers_while_filters_come_and_go(
    some: list[EventFilter], happened: list[Event], actions: list[tuple[int, int]]
) -> None:
    """Filters that are only partly in the index, or are leaving it, do not change the updates of others."""

    async def run() -> None:
        index: FilterIndex[int] = FilterIndex()
        holders = [Holder(index, some[name % len(some)], name) for name in range(5)]
        for name, action in actions:
            await (holders[name].advance() if action else holders[name].give_up())
            check(index, holders, happened)
        for holder in holders:
            await holder.give_up()
            check(index, holders, happened)
        await end(index._slices)
        assert reachable(index) == reachable(FilterIndex())

    asyncio.run(run())


def check(index: FilterIndex[int], holders: Sequence[Holder], happened: Sequence[Event]) -> None:
    for event in happened:
        expected = {each.name for each in holders if each.is_subscribed and each.filter.matches(event)}
        assert set(index.matching(event)) == expected
        assert index.matches_any(event) == bool(expected)


async def end(slices: Slices, look: Callable[[], int] = int) -> list[int]:
    """Wait for the end of all work. Return the observations after each event-loop iteration."""
    seen = []
    while slices._waiting:
        await asyncio.sleep(0)
        seen.append(look())
    return seen


async def test_a_held_filter_is_added_and_removed_without_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    index: FilterIndex[int] = FilterIndex()
    await index.hold(LARGE)
    monkeypatch.setattr("graph.feed.indexes.PostingLists", None)
    monkeypatch.setattr("graph.feed.matching.finish", None)

    index.add(LARGE, 1)
    assert list(index.matching(published("word7", author=7))) == [1]
    index.remove(LARGE, 1)

    assert not index.matching(published("word7", author=7))
    index.release(LARGE)


async def test_work_of_several_is_done_in_turn_and_one_slice_at_a_time() -> None:
    done: list[str] = []

    def work(name: str) -> Iterator[None]:
        for _ in range(3):
            done.append(name)
            yield

    slices = Slices()
    for name in "ab":
        slices.start(work(name))
    sizes = [2, *await end(slices, lambda: len(done))]

    assert done == ["a", "b", "a", "b", "a", "b"]
    assert max(after - before for before, after in pairwise(sizes)) == 1


async def test_work_that_fails_does_not_stop_other_work() -> None:
    done: list[int] = []

    def failing() -> Iterator[None]:
        yield
        raise ValueError

    slices = Slices()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    slices.start(failing())
    slices.start(map(done.append, range(5)))
    await end(slices)

    assert done == [0, 1, 2, 3, 4]


async def test_a_stream_that_ends_is_forgotten_by_the_index(graph: Graph, feed: Feed) -> None:
    """The index forgets the stream whether it ends while it is live or earlier."""
    [alice] = await people(graph, "alice")
    filter_ = EventFilter.of(users=[alice], keywords=["rain", "sun"])
    async with following(feed, filter_) as one, following(feed, filter_) as other:
        [post] = await posts(graph, alice, "rain")
        assert [update.number for update in await one.take(1) + await other.take(1)] == [post] * 2
    stream = feed.events(None, filter_)
    await anext(stream)
    assert filter_ in feed._filter_index._filters
    await stream.aclose()

    assert filter_ not in feed._filter_index._filters


async def test_a_stream_that_cannot_join_is_forgotten_by_the_index(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    filter_ = EventFilter.of(users=[1, 2, 3])

    async def fail(_view: LiveView) -> None:
        assert filter_ in feed._filter_index._filters
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(LiveView, "load", fail)
    with pytest.raises(StoreUnavailable):
        await anext(feed.events(None, filter_))

    assert filter_ not in feed._filter_index._filters


async def test_a_stream_that_joins_again_keeps_its_filter(graph: Graph) -> None:
    index: FilterIndex[Buffer[FilteredChange]] = FilterIndex()
    filter_ = EventFilter.of(users=[1, 2, 3])
    source = FilterSource(LiveView(graph.visibility, None), LiveViews(), filter_, index)
    for _ in range(2):
        await source.load()
        buffer: Buffer[FilteredChange] = Buffer()
        source.register(buffer)
        assert list(index.matching(published(author=2))) == [buffer]
        source.unregister(buffer)
    assert filter_ in index._filters
    source.close()
    source.close()

    assert not index._filters
