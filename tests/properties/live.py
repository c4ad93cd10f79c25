"""Clients of the live feed, as careful ones are written, and the town in which things happen to them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from graph import Graph
from graph.errors import StoreUnavailable
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.updates import AuthorAdded, AuthorRemoved, Checkpoint, Gap, GapReason, PostAdded, PostRemoved
from graph.log.events import Event, Followed, PostDeleted, PostPublished, Unfollowed
from tests.support.graph_worlds import home

GLANCE = 0.004  # seconds that a client waits for an update before it does something else
PATIENCE = 20.0

Streaming = Callable[[Feed, int | None], AsyncGenerator[Any]]


@dataclass
class Town:
    """What is true: who follows whom, whose posts live, all events, and how far retention has come."""

    people: list[int]
    follows: set[tuple[int, int]] = field(default_factory=set)
    posts: dict[int, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    trimmed: int = 0

    def note(self, event: Event) -> None:
        """Know an event."""
        self.events.append(event)
        match event.body:
            case PostPublished(author):
                self.posts[event.number] = author
            case PostDeleted(_, post):
                self.posts.pop(post, None)
                self.deleted.add(post)
            case Followed(follower, followee):
                self.follows.add((follower, followee))
            case Unfollowed(follower, followee):
                self.follows.discard((follower, followee))
            case _:
                pass

    def home(self, viewer: int) -> set[int]:
        """Give the home timeline as it is defined."""
        return {post for post, author in self.posts.items() if author == viewer or (viewer, author) in self.follows}


class Client:
    """Takes updates one by one, sees that their order is the log's, keeps its place, and resumes where it was."""

    def __init__(self, town: Town, streaming: Streaming) -> None:
        self.town = town
        self.position: int | None = None
        self.lost: list[tuple[int, int]] = []
        self.history: list[object] = []
        self._streaming = streaming
        self._stream: AsyncGenerator[Any] | None = None
        self._next: asyncio.Task[Any] | None = None

    async def connect(self, graph: Graph, feed: Feed) -> None:
        """Subscribe, or resume."""
        await self.cut()
        if self.position is None:
            await self.begin(graph)
        self._stream = self._streaming(feed, self.position)

    async def cut(self) -> None:
        """Lose the connection."""
        if self._next is not None:
            self._next.cancel()
            with suppress(asyncio.CancelledError, StoreUnavailable, StopAsyncIteration):
                await self._next
            self._next = None
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None

    async def glance(self, graph: Graph, feed: Feed, most: int = 1, seconds: float = GLANCE) -> bool:
        """Take so many updates at most; tell whether there were any."""
        for _ in range(most):
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
                await self.cut()
                continue
            await self._take(update, graph)
        return True

    async def _take(self, update: Any, graph: Graph) -> None:
        before = self.position
        self.history.append(update)
        if isinstance(update, Checkpoint | Gap):
            assert before is None or update.number >= before, "cursors never go back"
        else:
            assert before is None or update.number > before, f"{update} came after {before}"
        if isinstance(update, Gap) and update.reason is GapReason.RETENTION:
            assert before is not None
            assert before < self.town.trimmed, "only retention loses updates"
            assert before < update.number, "and says so once"
            self.lost.append((before, update.number))
        self.position = update.number
        await self.apply(update, graph)

    async def begin(self, graph: Graph) -> None:
        """Do what comes before the first subscription."""

    async def apply(self, update: Any, graph: Graph) -> None:
        """Make use of an update."""
        raise NotImplementedError

    async def finish(self, graph: Graph, feed: Feed, last: int) -> None:
        """Take updates until everything up to this number is told."""
        async with asyncio.timeout(PATIENCE):
            while self.position is None or self.position < last:
                await self.glance(graph, feed, seconds=1.0)
        await self.cut()


class HomeClient(Client):
    """Holds a home timeline: reads it once, applies every update, and reads again where it is told to."""

    def __init__(self, town: Town, viewer: int) -> None:
        super().__init__(town, lambda feed, after: feed.home(viewer, after))
        self.viewer = viewer
        self.held: dict[int, int | None] | None = None

    async def begin(self, graph: Graph) -> None:
        """Read the timeline, and go on from the watermark before that: the page's `liveCursor`."""
        watermark = await graph.log.watermark()
        await self._read(graph)
        self.position = watermark

    async def apply(self, update: Any, graph: Graph) -> None:
        """Keep what is held in step."""
        match update:
            case PostAdded():
                self._held()[update.post.id] = update.post.author
            case PostRemoved():
                self._held().pop(update.post, None)
            case AuthorRemoved():
                self.held = {post: author for post, author in self._held().items() if author != update.user}
            case AuthorAdded() | Gap():
                self.held = None
            case _:
                pass
        if self.held is None:
            with suppress(StoreUnavailable):
                await self._read(graph)

    def _held(self) -> dict[int, int | None]:
        return self.held if self.held is not None else {}

    async def _read(self, graph: Graph) -> None:
        authors = {
            event.number: event.body.author for event in self.town.events if isinstance(event.body, PostPublished)
        }
        self.held = {post: authors[post] for post in await home(graph, self.viewer)}
        self.history.append(f"holds {sorted(self.held)}")

    async def check(self, graph: Graph) -> None:
        """See that the client holds the home timeline."""
        if self.held is None:
            await self._read(graph)
        held, true = set(self._held()), self.town.home(self.viewer)
        assert held == true, f"viewer {self.viewer} lacks {true - held} and has {held - true}: {self.history}"


class EventsClient(Client):
    """Collects all that passes a filter; after a Gap for slowness it goes back for what it missed."""

    def __init__(self, town: Town, filter_: EventFilter) -> None:
        super().__init__(town, lambda feed, after: feed.events(filter_, after))
        self.filter = filter_
        self.began: int | None = None
        self.told: list[int] = []
        self.replayed: list[tuple[int, int]] = []
        self._known = 0

    async def connect(self, graph: Graph, feed: Feed) -> None:
        """Subscribe, or resume, and remember how far the log goes."""
        self._known = self.town.events[-1].number if self.town.events else 0
        await super().connect(graph, feed)

    async def _take(self, update: Any, graph: Graph) -> None:
        if self.position is not None:
            self.replayed.append((self.position, min(update.number, self._known)))
        await super()._take(update, graph)

    async def apply(self, update: Any, graph: Graph) -> None:
        """Write an update down."""
        if self.began is None:
            self.began = update.number
        if isinstance(update, Gap):
            if update.reason is GapReason.SLOW_CONSUMER:
                await self.cut()
        elif not isinstance(update, Checkpoint):
            self.told.append(update.number)

    async def check(self, graph: Graph) -> None:
        """See that every matching event was told once, except for posts deleted since, and for what retention took.

        Deletions that were in the log when the client subscribed have to be told whatever the post said and where.
        """
        events = [event for event in self.town.events if event.number > (self.began or 0)]
        vague = {f.number for f in events if isinstance(f.body, PostDeleted) and self.filter.may_match(f)}
        past = {number for number in vague if any(low < number <= high for low, high in self.replayed)}
        matching = past.union(event.number for event in events if self.filter.matches(event))
        assert len(self.told) == len(set(self.told))
        assert set(self.told) <= matching | vague
        missing = [number for number in matching if number not in self.told and number not in self.town.deleted]
        assert all(any(low <= number <= high for low, high in self.lost) for number in missing), (missing, self.lost)
