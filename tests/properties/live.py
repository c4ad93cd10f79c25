"""Clients of the live feed that follow its documentation."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from graph import Graph
from graph.errors import StoreUnavailable
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.handover import Courier
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    AuthorRemoved,
    Checkpoint,
    Gap,
    GapReason,
    PostAdded,
    PostChanged,
    PostRemoved,
    ReplyAdded,
    TimelineChanged,
)
from graph.log.events import Event, PostDeleted, PostPublished
from graph.model import Counts
from tests.properties.executed import EVENTS
from tests.properties.live_subjects import Subject, Thread, World

POLL_SECONDS = 0.004
PATIENCE = 60.0

Streaming = Callable[[Feed, int | None], AsyncGenerator[Any]]


class Client:
    """Takes updates one by one, checks their order, and resumes from its position."""

    def __init__(self, world: World, streaming: Streaming) -> None:
        self.world = world
        self.position: int | None = None
        self.lost: list[tuple[int, int]] = []
        self.history: list[object] = []
        self._streaming = streaming
        self._stream: AsyncGenerator[Any] | None = None
        self._next: asyncio.Task[Any] | None = None

    async def connect(self, graph: Graph, feed: Feed) -> None:
        """Subscribe, or resume."""
        await self.disconnect()
        if self.position is None:
            await self.begin(graph)
        self._stream = self._streaming(feed, self.position)

    async def disconnect(self) -> None:
        if self._next is not None:
            self._next.cancel()
            with suppress(asyncio.CancelledError, StoreUnavailable, StopAsyncIteration):
                await self._next
            self._next = None
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None

    async def poll(self, graph: Graph, feed: Feed, limit: int = 1, seconds: float = POLL_SECONDS) -> bool:
        """Take up to `limit` updates. Return False if one of them does not arrive in time."""
        for _ in range(limit):
            try:
                if self._stream is None:
                    await self.connect(graph, feed)
            except StoreUnavailable:
                return False
            assert self._stream is not None
            self._next = self._next or asyncio.ensure_future(anext(self._stream))
            await asyncio.wait([self._next], timeout=seconds)
            if not self._next.done():
                return False
            taken, self._next = self._next, None
            try:
                update = taken.result()
            except StoreUnavailable:
                await self.disconnect()
                continue
            await self._take(update, graph)
        return True

    async def _take(self, update: Any, graph: Graph) -> None:
        before = self.position
        self.history.append(update)
        if isinstance(update, Checkpoint | Gap):
            assert before is None or update.number >= before, "cursors never go back"
        else:
            least = update.number + 1 if isinstance(update, PostChanged) else update.number
            assert before is None or least > before, f"{update} came after {before}"
        if isinstance(update, Gap) and update.reason is GapReason.RETENTION:
            assert before is not None
            assert before < self.world.trimmed, "only retention loses events"
            assert before < update.number, "one gap reports them"
            self.lost.append((before, update.number))
        self.position = update.number
        await self.apply(update, graph)

    async def begin(self, graph: Graph) -> None:
        """Prepare the first subscription."""

    async def apply(self, update: Any, graph: Graph) -> None:
        """Handle an update."""
        raise NotImplementedError

    async def check(self, graph: Graph) -> None:
        """Assert that the client has the expected content after it has finished."""
        raise NotImplementedError

    async def finish(self, graph: Graph, feed: Feed, last: int) -> None:
        """Take updates until the position is `last`."""
        async with asyncio.timeout(PATIENCE):
            while self.position is None or self.position < last:
                await self.poll(graph, feed, seconds=1.0)
        await self.disconnect()


class TimelineClient(Client):
    """Holds a timeline: fetches it once, applies every update, and fetches it again if an update demands it."""

    def __init__(
        self, world: World, subject: Subject, viewer: int | None, *, own: bool = False, by_courier: bool = False
    ) -> None:
        def stream(feed: Feed, after: int | None) -> AsyncGenerator[Any]:
            def subscribe(courier: Courier) -> AsyncGenerator[Any]:
                return subject.stream(feed, after, courier)

            return world.executed[feed].stream(subscribe, subject.document, viewer, own=own, by_courier=by_courier)

        super().__init__(world, stream)
        self.subject = subject
        self.held: dict[int, int | None] | None = None
        self._waiting: list[Any] = []

    async def begin(self, graph: Graph) -> None:
        """Fetch the timeline. The position is the watermark before the fetch: the `liveCursor` of the page."""
        watermark = await graph.log.recent_watermark()
        await self._read(graph)
        self.position = watermark

    async def apply(self, update: Any, graph: Graph) -> None:
        """Apply an update to the held posts, or fetch them again.

        While the page cannot be read, updates wait for it: it may lack posts that are not projected.
        """
        if isinstance(update, AuthorAdded | TimelineChanged | Gap):
            self.held, self._waiting = None, []
        else:
            self._waiting.append(update)
        if self.held is None:
            with suppress(StoreUnavailable):
                await self._read(graph)
        if self.held is not None:
            self._apply_waiting(self.held)

    def _apply_waiting(self, held: dict[int, int | None]) -> None:
        waiting, self._waiting = self._waiting, []
        for update in waiting:
            match update:
                case PostAdded() | ReplyAdded():
                    held[update.post.id] = update.post.author
                case PostRemoved():
                    held.pop(update.post, None)
                case AuthorRemoved() | AuthorHidden():
                    for post in [post for post, author in held.items() if author == update.user]:
                        del held[post]
                case _:
                    pass

    async def _read(self, graph: Graph) -> None:
        authors = {
            event.number: event.body.author for event in self.world.events if isinstance(event.body, PostPublished)
        }
        self.held = {post: authors[post] for post in await self.subject.read(graph)}
        self.history.append(f"holds {sorted(self.held)}")

    async def check(self, graph: Graph) -> None:
        """Assert that the client holds the expected timeline."""
        if self.held is None:
            await self._read(graph)
        assert self.held is not None
        self._apply_waiting(self.held)
        held, true = set(self.held), self.subject.expected(self.world)
        assert held == true, f"{self.subject} lacks {true - held} and has {held - true}: {self.history}"


class ThreadClient(TimelineClient):
    """Holds the replies to a post and its counts, which it reads again when the stream reports that they changed."""

    def __init__(self, world: World, post: int, viewer: int | None) -> None:
        super().__init__(world, Thread(post, viewer), viewer)
        self.post = post
        self.counts: Counts | None = None

    async def begin(self, graph: Graph) -> None:
        """Fetch the replies and the counts."""
        await super().begin(graph)
        await self._count(graph)

    async def apply(self, update: Any, graph: Graph) -> None:
        """Apply an update. Read the counts if they have changed or the last read has failed."""
        await super().apply(update, graph)
        if self.counts is None or isinstance(update, PostChanged | Gap):
            await self._count(graph)

    async def _count(self, graph: Graph) -> None:
        self.counts = None
        with suppress(StoreUnavailable):
            [self.counts] = await graph.posts.counts([self.post])

    async def check(self, graph: Graph) -> None:
        """Assert that the client holds the expected replies and counts."""
        await super().check(graph)
        if self.counts is not None:
            assert [self.counts] == await graph.posts.counts([self.post]), self.history


class EventsClient(Client):
    """Collects the events that match a filter. After a Gap of a slow client, resumes to get the missing events."""

    def __init__(self, world: World, filter_: EventFilter, *, by_courier: bool = False) -> None:
        def stream(feed: Feed, after: int | None) -> AsyncGenerator[Any]:
            def subscribe(courier: Courier) -> AsyncGenerator[Any]:
                return feed.events(None, filter_, after, courier=courier)

            return world.executed[feed].stream(subscribe, EVENTS, None, own=False, by_courier=by_courier)

        super().__init__(world, stream)
        self.filter = filter_
        self.began: int | None = None
        self.received: list[int] = []
        self.replayed: list[tuple[int, int]] = []
        self._known = 0

    async def connect(self, graph: Graph, feed: Feed) -> None:
        """Subscribe or resume, and note the end of the log."""
        self._known = self.world.events[-1].number if self.world.events else 0
        await super().connect(graph, feed)

    async def _take(self, update: Any, graph: Graph) -> None:
        if self.position is not None:
            self.replayed.append((self.position, min(update.number, self._known)))
        await super()._take(update, graph)

    async def apply(self, update: Any, graph: Graph) -> None:
        """Collect an update."""
        if self.began is None:
            self.began = update.number
        if isinstance(update, Gap):
            if update.reason is GapReason.SLOW_CONSUMER:
                await self.disconnect()
        elif not isinstance(update, Checkpoint):
            self.received.append(update.number)

    def _may_be_hidden(self, event: Event) -> bool:
        """Return whether a stream may omit an event because of a suspension. Streams always send deletions."""
        if isinstance(event.body, PostDeleted):
            return False
        users = {getattr(event.body, name, None) for name in ("author", "follower", "followee")}
        return not users.isdisjoint(self.world.suspected)

    async def check(self, graph: Graph) -> None:
        """Assert that each matching event was received once, unless hidden, deleted or removed by retention.

        Deletions that were in the log when the client subscribed match, whatever the content of the post is.
        """
        events = [event for event in self.world.events if event.number > (self.began or 0)]
        deletions = {
            event.number for event in events if isinstance(event.body, PostDeleted) and self.filter.may_match(event)
        }
        past = {number for number in deletions if any(low < number <= high for low, high in self.replayed)}
        matching = past.union(event.number for event in events if self.filter.matches(event))
        assert len(self.received) == len(set(self.received))
        assert set(self.received) <= matching | deletions
        allowed = self.world.deleted | {event.number for event in events if self._may_be_hidden(event)}
        missing = matching - {*self.received} - allowed
        assert all(any(low <= number <= high for low, high in self.lost) for number in missing), (missing, self.lost)
