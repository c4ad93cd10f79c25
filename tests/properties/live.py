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
from graph.log.events import Fact, Followed, PostDeleted, PostPublished, Unfollowed
from tests.support.graph_worlds import home

GLANCE = 0.004  # seconds that a client waits for an event before it does something else
PATIENCE = 20.0

Streaming = Callable[[Feed, int | None], AsyncGenerator[Any]]


@dataclass
class Town:
    """What is true: who follows whom, whose posts live, all facts, and how far retention has come."""

    people: list[int]
    follows: set[tuple[int, int]] = field(default_factory=set)
    posts: dict[int, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    facts: list[Fact] = field(default_factory=list)
    trimmed: int = 0

    def note(self, fact: Fact) -> None:
        """Know a fact."""
        self.facts.append(fact)
        match fact.event:
            case PostPublished(author):
                self.posts[fact.number] = author
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
    """Takes events one by one, sees that their order is the log's, keeps its place, and resumes where it was."""

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
        """Take so many events at most; tell whether there were any."""
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
                event = taken.result()
            except StoreUnavailable:
                await self.cut()
                continue
            await self._take(event, graph)
        return True

    async def _take(self, event: Any, graph: Graph) -> None:
        before = self.position
        self.history.append(event)
        if isinstance(event, Checkpoint | Gap):
            assert before is None or event.number >= before, "cursors never go back"
        else:
            assert before is None or event.number > before, f"{event} came after {before}"
        if isinstance(event, Gap) and event.reason is GapReason.RETENTION:
            assert before is not None
            assert before < self.town.trimmed, "only retention loses events"
            assert before < event.number, "and says so once"
            self.lost.append((before, event.number))
        self.position = event.number
        await self.apply(event, graph)

    async def begin(self, graph: Graph) -> None:
        """Do what comes before the first subscription."""

    async def apply(self, event: Any, graph: Graph) -> None:
        """Make use of an event."""
        raise NotImplementedError

    async def finish(self, graph: Graph, feed: Feed, last: int) -> None:
        """Take events until everything up to this number is told."""
        async with asyncio.timeout(PATIENCE):
            while self.position is None or self.position < last:
                await self.glance(graph, feed, seconds=1.0)
        await self.cut()


class HomeClient(Client):
    """Holds a home timeline: reads it once, applies every event, and reads again where it is told to."""

    def __init__(self, town: Town, viewer: int) -> None:
        super().__init__(town, lambda feed, after: feed.home(viewer, after))
        self.viewer = viewer
        self.held: dict[int, int | None] | None = None

    async def begin(self, graph: Graph) -> None:
        """Read the timeline, and go on from the drained mark before that: the page's `liveCursor`."""
        drained = await graph.log.drained()
        await self._read(graph)
        self.position = drained

    async def apply(self, event: Any, graph: Graph) -> None:
        """Keep what is held in step."""
        match event:
            case PostAdded():
                self._held()[event.post.id] = event.post.author
            case PostRemoved():
                self._held().pop(event.post, None)
            case AuthorRemoved():
                self.held = {post: author for post, author in self._held().items() if author != event.user}
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
        authors = {fact.number: fact.event.author for fact in self.town.facts if isinstance(fact.event, PostPublished)}
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
        self._known = self.town.facts[-1].number if self.town.facts else 0
        await super().connect(graph, feed)

    async def _take(self, event: Any, graph: Graph) -> None:
        if self.position is not None:
            self.replayed.append((self.position, min(event.number, self._known)))
        await super()._take(event, graph)

    async def apply(self, event: Any, graph: Graph) -> None:
        """Write an event down."""
        if self.began is None:
            self.began = event.number
        if isinstance(event, Gap):
            if event.reason is GapReason.SLOW_CONSUMER:
                await self.cut()
        elif not isinstance(event, Checkpoint):
            self.told.append(event.number)

    async def check(self, graph: Graph) -> None:
        """See that every matching fact was told once, except for posts deleted since, and for what retention took.

        Deletions that were in the log when the client subscribed have to be told whatever the post said and where.
        """
        facts = [fact for fact in self.town.facts if fact.number > (self.began or 0)]
        vague = {f.number for f in facts if isinstance(f.event, PostDeleted) and self.filter.may_match(f)}
        past = {number for number in vague if any(low < number <= high for low, high in self.replayed)}
        matching = past.union(fact.number for fact in facts if self.filter.matches(fact))
        assert len(self.told) == len(set(self.told))
        assert set(self.told) <= matching | vague
        missing = [number for number in matching if number not in self.told and number not in self.town.deleted]
        assert all(any(low <= number <= high for low, high in self.lost) for number in missing), (missing, self.lost)
