"""Home streams: who is told what, through an index from authors to the people who follow them."""

from array import array
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import ClassVar

from graph.feed.posting_lists import PostingLists
from graph.feed.source import Source
from graph.feed.stream import Stream
from graph.feed.updates import AuthorAdded, AuthorRemoved, HomeHappened, PostAdded, PostRemoved
from graph.follows import Follows
from graph.log.events import Event, Followed, PostDeleted, PostPublished, Unfollowed
from graph.projections.projections import Projections
from graph.records import published_post


def home_update(event: Event) -> HomeHappened | None:
    """Tell what an event means to those whose home timelines it concerns; None if it concerns none."""
    match event.body:
        case PostPublished() as update:
            return PostAdded(event.number, published_post(event.number, update))
        case PostDeleted(author, post):
            return PostRemoved(event.number, post, author)
        case Followed(_, followee):
            return AuthorAdded(event.number, followee)
        case Unfollowed(_, followee):
            return AuthorRemoved(event.number, followee)
        case _:
            return None


class Audience:
    """One viewer's streams, and the authors of the viewer's home timeline."""

    __slots__ = ("authors", "streams")

    def __init__(self, authors: Iterable[int]) -> None:
        self.authors = array("q", authors)
        self.streams: list[Stream[HomeHappened]] = []


class HomeIndex:
    """From authors to the audiences that their posts concern; an audience is that of one viewer.

    The cost of an event grows with those it concerns. Memory: 8 bytes for each author of an audience, and an entry of
    the index.
    """

    def __init__(self) -> None:
        self._audiences: dict[int, Audience] = {}
        self._of_author: PostingLists[int, Audience] = PostingLists()

    def __len__(self) -> int:
        return len(self._audiences)

    def add(self, viewer: int, followed: Iterable[int], stream: Stream[HomeHappened]) -> None:
        """Let a stream hear of what concerns this viewer, who follows these authors as of the reader's head."""
        audience = self._audiences.get(viewer)
        if audience is None:
            audience = self._audiences[viewer] = Audience({viewer, *followed})
            for author in audience.authors:
                self._of_author.add(author, audience)
        audience.streams.append(stream)

    def remove(self, viewer: int, stream: Stream[HomeHappened]) -> None:
        """Forget a stream, if it is here."""
        audience = self._audiences.get(viewer)
        if audience is None or stream not in audience.streams:
            return
        audience.streams.remove(stream)
        if not audience.streams:
            del self._audiences[viewer]
            for author in audience.authors:
                self._of_author.remove(author, audience)

    def clear(self) -> None:
        """Forget everything: whom people follow is not known any more."""
        self._audiences.clear()
        self._of_author = PostingLists()

    def shows(self, viewer: int, author: int) -> bool:
        """Tell whether a viewer who has a stream here follows an author, or is the author."""
        audience = self._audiences.get(viewer)
        return audience is not None and audience in self._of_author[author]

    def concerned(self, event: Event) -> list[Stream[HomeHappened]]:
        """Give the streams that an event concerns, and keep up whom their viewers follow."""
        match event.body:
            case PostPublished(author) | PostDeleted(author):
                return [stream for audience in self._of_author[author] for stream in audience.streams]
            case Followed(follower, followee) if audience := self._audiences.get(follower):
                if followee not in audience.authors:
                    audience.authors.append(followee)
                    self._of_author.add(followee, audience)
                return audience.streams
            case Unfollowed(follower, followee) if audience := self._audiences.get(follower):
                if followee in audience.authors:
                    audience.authors.remove(followee)
                    self._of_author.remove(followee, audience)
                return audience.streams
            case _:
                return []


def _is_by(author: int, event: Event) -> bool:
    return isinstance(event.body, PostPublished | PostDeleted) and event.body.author == author


class HomeSource(Source[HomeHappened]):
    """What happens to one viewer's home timeline: the past as a stream joins, and its place in the index after that.

    While a stream catches up, it sees the past through the eyes of whom the viewer follows by then; the client drops,
    or fetches again, the posts of those whom the viewer has unfollowed or followed in between.
    """

    learns: ClassVar[bool] = True

    def __init__(self, viewer: int, follows: Follows, projections: Projections, index: HomeIndex) -> None:
        self._viewer = viewer
        self._follows = follows
        self._projections = projections
        self._index = index
        self._followed: set[int] = set()
        self._known_upto = 0

    async def look_up(self) -> None:
        """Read whom the viewer follows; events are then learnt from the first on. One round trip."""
        self._followed = {*await self._follows.followed_by(self._viewer)}
        self._known_upto = 0

    def learn(self, events: Sequence[Event]) -> None:
        """Bring whom the viewer follows up to these events.

        What was looked up may be ahead of them. For a while it then is as it was before; the events that made it so
        are still to come, here or on the stream.
        """
        for event in events:
            match event.body:
                case Followed(follower, followee) if follower == self._viewer:
                    self._followed.add(followee)
                case Unfollowed(follower, followee) if follower == self._viewer:
                    self._followed.discard(followee)
                case _:
                    pass

    def join(self, head: int) -> None:
        """Know whom the viewer follows up to the head."""
        self._known_upto = head

    async def announce(self, update: HomeHappened, unprojected: Callable[[], AsyncGenerator[Sequence[Event]]]) -> None:
        """Before a client is told to fetch the timeline again, let it hold all that the stream has told.

        Otherwise what a process committed before it died would be missing from the page, and nobody would tell of it
        any more. One round trip, and about five if anything is undrained that concerns the viewer, as the follow
        itself mostly is.
        """
        if not isinstance(update, AuthorAdded):
            return
        async with aclosing(unprojected()) as parts:
            async for events in parts:
                told = [
                    f for f in events if f.number <= update.number and (self._concerns(f) or _is_by(update.user, f))
                ]
                await self._projections.catch_up(self._viewer, told)

    def pick(self, events: Sequence[Event]) -> list[Event]:
        """Return the events of the past that concern the viewer."""
        picked = []
        for event in events:
            if event.number > self._known_upto:
                self.learn([event])
            if self._concerns(event):
                picked.append(event)
        return picked

    def tell(self, events: Sequence[Event]) -> list[HomeHappened]:
        """Return what picked events meant to this viewer."""
        return [update for event in events if (update := home_update(event)) is not None]

    def _concerns(self, event: Event) -> bool:
        match event.body:
            case PostPublished(author) | PostDeleted(author):
                known = author == self._viewer or author in self._followed
                return known or self._index.shows(self._viewer, author)
            case Followed(follower) | Unfollowed(follower):
                return follower == self._viewer
            case _:
                return False

    def register(self, stream: Stream[HomeHappened]) -> None:
        """Let the stream hear of everything after the reader's head."""
        self._index.add(self._viewer, self._followed, stream)
        self._followed = set()

    def unregister(self, stream: Stream[HomeHappened]) -> None:
        """Let the stream hear of nothing any more."""
        self._index.remove(self._viewer, stream)
