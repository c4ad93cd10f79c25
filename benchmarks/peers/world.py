"""The world that all variants read: seeded through Fanline's log and projections, with home caches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from benchmarks.stores import open_graph
from graph import Graph
from graph.log.events import Event, EventBody, Followed, PostPublished
from graph.model import number_at
from graph.paging import Window
from server.auth import Tokens
from server.demo.world import MILLISECOND, Person, random_numbers
from server.seeding.load import Source, load

KEY = "a key for benchmarks that is long enough"
SEED = 5
DAYS = 3  # age of the youngest event, beyond the log's retention
TEXT = "Post {} tells, in about as many words as people write, what “somebody” saw on the way to the market today — ☕."
PLATFORMS = ("web", "android", "ios", None)
PAGE = 30


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of users, readers and writers, and the numbers of posts and follows of each.

    A reader's home timeline holds posts of `reader_follows` users, more than its cache holds.
    """

    users: int = 2_000
    readers: int = 32
    writers: int = 32
    posts_each: int = 20
    follows_each: int = 10
    reader_follows: int = 100
    famous_followers: int = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """The seeded world for clients: access tokens of readers and writers, and the login of a famous user."""

    readers: Sequence[str]
    writers: Sequence[str]
    famous: str


class Cast:
    """The users by index: the famous user, then readers, then writers, then all others.

    No reader follows a writer, so home timelines do not change while posts are published.
    """

    def __init__(self, size: Size, base: datetime) -> None:
        self.size = size
        self.readers = range(1, 1 + size.readers)
        self.writers = range(1 + size.readers, 1 + size.readers + size.writers)
        self.authors = range(1 + size.readers + size.writers, size.users)
        self._start = base - timedelta(days=DAYS) - self._length() * MILLISECOND
        self.ids = [self.number(place) for place in range(size.users)]

    def _length(self) -> int:
        return sum(1 for _ in chain(self.users(), self.follows([0] * self.size.users), self.posts()))

    def number(self, place: int) -> int:
        """Return the number of the event at an index of the log. Each event has its own millisecond."""
        return number_at(self._start + place * MILLISECOND)

    def events(self) -> Iterator[Event]:
        """Return all events, in order."""
        bodies = chain(self.users(), self.follows(self.ids), self.posts(self.ids))
        return (Event(self.number(place), body) for place, body in enumerate(bodies))

    def users(self) -> Iterator[EventBody]:
        """Return the events that create the users."""
        return (Person(f"person{place}", f"Person {place}").joins() for place in range(self.size.users))

    def follows(self, ids: Sequence[int]) -> Iterator[EventBody]:
        """Return the events of all follows. The famous user's followers are in a pseudo-random order."""
        random, size = random_numbers("follows", SEED), self.size
        others = range(self.writers.start, size.users)
        for place in range(1, size.users):
            is_reader = place in self.readers
            count = size.reader_follows if is_reader else size.follows_each
            chosen = random.sample(self.authors if is_reader else others, count + 1)
            among = [other for other in chosen if other != place]
            yield from (Followed(ids[place], ids[other]) for other in among[:count])
        for place in random.sample(self.authors, 2 * size.readers):
            yield from (Followed(ids[place], ids[reader]) for reader in random.sample(self.readers, 2))
        yield from (Followed(ids[place], ids[0]) for place in random.sample(self.authors, size.famous_followers))

    def posts(self, ids: Sequence[int] | None = None) -> Iterator[EventBody]:
        """Return the events of all posts, in a pseudo-random order."""
        ids = ids or [0] * self.size.users
        random = random_numbers("posts", SEED)
        places = [place for place in range(self.size.users) for _ in range(self.size.posts_each)]
        random.shuffle(places)
        for nth, place in enumerate(places):
            yield PostPublished(ids[place], TEXT.format(nth), random.choice(PLATFORMS))


async def seed(url: str, size: Size, key: str) -> Reading:
    """Seed an empty store, build the readers' home caches, and create sessions for readers and writers."""
    graph = await open_graph(url)
    try:
        base = datetime.now().astimezone()
        cast = Cast(size, base.replace(microsecond=0))
        await load(graph, Source("the peers' world", "1", lambda _: 0, lambda _: cast.events()))
        for place in cast.readers:
            await warm(graph, cast.ids[place])
        tokens = Tokens([key])
        logged_in = {
            place: tokens.issue(await graph.sessions.start(cast.ids[place])) for place in (*cast.readers, *cast.writers)
        }
        return Reading([logged_in[p] for p in cast.readers], [logged_in[p] for p in cast.writers], "person0")
    finally:
        await graph.close()


async def warm(graph: Graph, viewer: int) -> None:
    """Read a home timeline until its cache exists: the first read starts the rebuild."""
    for _ in range(2):
        await graph.timelines.home(viewer, Window(PAGE, forward=True))
        await graph.timelines.wait_for_rebuilds()
