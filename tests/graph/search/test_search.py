"""The search for posts: it equals the past of the event stream, joins its future without a gap, and is bounded."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from graph import Graph
from graph.archive import index
from graph.archiver.indexing import Indexing
from graph.errors import ArchiveUnavailable, BadFilter
from graph.feed.feed import Feed
from graph.feed.filters import Box, EventFilter
from graph.feed.updates import Checkpoint, PostAdded
from graph.log.events import Event, PostPublished
from graph.model import MAX_NUMBER, Location, Post, number_at, time_of
from graph.paging import Window
from graph.search.post_search import Search, Searches, post_filter
from graph.visibility.views import SYSTEM
from tests.graph.feed.filtering import WORDS
from tests.support.graph_worlds import archive_log, counted, newest, people, posts

PLACES = [None, (0.0, 0.0), (30.5, 45.0), (-45.0, 180.0), (90.0, -1.0)]


async def settle(graph: Graph) -> None:
    """Project and archive the log."""
    await graph.worker().drain()
    await archive_log(graph)


async def found(graph: Graph, search: Search, random: Random | None = None, *, forward: bool = True) -> list[int]:
    """Return the ids of all posts that a search finds, newest first, read page by page."""
    ids: list[int] = []
    low, high = 0, MAX_NUMBER + 1
    while True:
        count = random.choice([1, 2, 5, 100]) if random else 100
        page = await graph.searches.posts(SYSTEM, search, Window(count, forward, low, high))
        some = [post.id for post in page.items]
        assert some == sorted(some, reverse=True)
        ids = ids + some if forward else some + ids
        if not (page.has_next if forward else page.has_previous):
            return ids
        if forward:
            high = page.reached or some[-1]
        else:
            low = page.reached or some[0]


async def write(graph: Graph, random: Random, authors: list[int], count: int) -> list[Post]:
    """Publish random posts in which the words of the filters occur often."""
    written = []
    for _ in range(count):
        text = random.choice(["", " "]).join(random.choices([*WORDS, "!"], k=random.randrange(1, 6)))
        place = random.choice(PLACES)
        at = None if place is None else Location(*place)
        written.append(await graph.posts.publish(random.choice(authors), text or "?", location=at))
    return written


def random_filter(random: Random, authors: list[int]) -> EventFilter:
    """Return a random search filter."""
    while True:
        keywords = [" ".join(random.choices(WORDS, k=random.randrange(1, 3))) for _ in range(random.randrange(1, 3))]
        edges = sorted(random.uniform(-90, 90) for _ in range(2))
        box = Box(edges[0], random.uniform(-180, 180), edges[1], random.uniform(-180, 180))
        given: dict[str, Any] = {
            "users": random.sample(authors, random.randrange(1, 3)) if random.random() < 0.5 else None,
            "keywords": keywords if random.random() < 0.6 else None,
            "within": box if random.random() < 0.3 else None,
        }
        if any(given.values()):
            return post_filter(**given)


def matching(written: list[Post], filter_: EventFilter) -> list[int]:
    """Return the ids of the posts that a stream with the filter contains, newest first, by a plain scan."""
    ids = []
    for post in written:
        at = post.location
        place = (at.latitude, at.longitude) if at else (None, None)
        if filter_.matches(Event(post.id, PostPublished(post.author, post.text, None, *place))):
            ids.append(post.id)
    return sorted(ids, reverse=True)


async def replayed(feed: Feed, filter_: EventFilter, up_to: int) -> list[int]:
    """Return the ids of the posts up to a number that the event stream replays from the beginning, newest first."""
    ids: list[int] = []
    async with aclosing(feed.events(None, filter_, 1)) as stream:
        assert isinstance(await anext(stream), Checkpoint)
        async for update in stream:
            if isinstance(update, Checkpoint):
                return sorted(ids, reverse=True)
            ids += [update.number] if isinstance(update, PostAdded) and update.number <= up_to else []
    return ids


async def test_a_search_equals_the_past_of_the_event_stream(
    graph: Graph, feed: Feed, monkeypatch: pytest.MonkeyPatch, long_profile: bool
) -> None:
    """Filters are random. Pages have any size and direction, with deletions and gaps in the index.

    A deleted post is not found, whether its deletion is archived or not.
    """
    monkeypatch.setattr(index, "SEGMENT_POSTS", 20)
    random = Random(7)  # noqa: S311 - reproducible
    authors = await people(graph, *(f"user{n}" for n in range(4)))
    written: list[Post] = []
    for deleted in (10, 10, 5):
        written += await write(graph, random, authors, 60)
        for post in random.sample(written, deleted):
            written.remove(post)
            await graph.posts.delete(post.author, post.id)
        if deleted > 5:
            await settle(graph)
    await graph.log.watermark()

    for turn in range(2000 if long_profile else 100):
        filter_ = random_filter(random, authors)
        search = await graph.searches.begin(filter_)
        expected = [id_ for id_ in matching(written, filter_) if id_ <= search.watermark]
        assert await found(graph, search, random, forward=random.random() < 0.5) == expected
        if turn % 20 == 0:
            assert await replayed(feed, filter_, search.watermark) == expected


class World:
    """Posts that are published while a client reads."""

    def __init__(self, graph: Graph, feed: Feed, random: Random, authors: list[int]) -> None:
        self.graph, self.feed, self.random, self.authors = graph, feed, random, authors
        self.written: list[Post] = []
        self.done = False

    async def publish(self) -> None:
        for _ in range(8):
            self.written += await write(self.graph, self.random, self.authors, 5)
        self.done = True

    async def archive(self) -> None:
        while not self.done:
            await settle(self.graph)

    async def read(self, filter_: EventFilter) -> set[int]:
        """Return the ids of the posts of a search and of the stream that continues it."""
        search = await self.graph.searches.begin(filter_)
        ids = set(await found(self.graph, search, self.random))
        cursor, finished = search.watermark, False
        while not finished:
            some, cursor, finished = await self.receive(filter_, cursor)
            ids |= some
        return ids

    async def receive(self, filter_: EventFilter, cursor: int) -> tuple[set[int], int, bool]:
        """Receive events until all have arrived, or until the connection is lost after any of them."""
        ids: set[int] = set()
        async with aclosing(self.feed.events(None, filter_, cursor)) as stream:
            async for update in stream:
                cursor = update.number
                if isinstance(update, PostAdded):
                    ids.add(update.number)
                    if self.random.random() < 0.3:
                        break
                elif self.done and cursor >= self.written[-1].id:
                    return ids, cursor, True
        return ids, cursor, False


async def test_a_search_and_its_stream_miss_nothing(graph: Graph, feed: Feed, long_profile: bool) -> None:
    """Users publish and an archiver runs while a client reads pages, and a subscription is dropped and resumed."""
    random = Random(8)  # noqa: S311 - reproducible
    world = World(graph, feed, random, await people(graph, *(f"user{n}" for n in range(4))))
    for _ in range(100 if long_profile else 4):
        world.done, filter_ = False, random_filter(random, world.authors)
        ids, _, _ = await asyncio.gather(world.read(filter_), world.publish(), world.archive())
        assert ids == set(matching(world.written, filter_))


async def test_what_is_not_archived_yet_comes_from_the_stream(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    [first] = await posts(graph, alice, "rain")
    await settle(graph)
    search = await graph.searches.begin(post_filter(keywords=["rain"]))
    await posts(graph, alice, "more rain")
    await settle(graph)

    assert await found(graph, search) == [first]
    assert first <= search.watermark < (await graph.searches.begin(search.filter)).watermark


async def test_a_search_finds_the_posts_of_a_time(graph: Graph) -> None:
    """The search finds posts from one time up to, but excluding, another, page by page in both directions."""
    [alice] = await people(graph, "alice")
    written = [post for n in range(12) for post in await posts(graph, alice, f"rain {n}")]
    await settle(graph)
    filter_, step = post_filter(keywords=["rain"]), timedelta(milliseconds=1)
    times = [time_of(post) + shift for post in written[::3] for shift in (timedelta(0), step)]

    for since, until in [(None, None), *product([None, *times], times), *product(times, [None])]:
        if since is not None and until is not None and since >= until:
            with pytest.raises(BadFilter, match="'until' must be later than 'since'"):
                await graph.searches.begin(filter_, since, until)
            continue
        search = await graph.searches.begin(filter_, since, until)
        low, high = number_at(since) if since else 0, number_at(until) if until else MAX_NUMBER
        assert await found(graph, search, Random(1)) == [post for post in written[::-1] if low <= post < high]  # noqa: S311


@pytest.mark.parametrize("years", [1, 9999])
async def test_a_search_of_a_time_without_posts_finds_nothing(graph: Graph, years: int) -> None:
    """The search finds nothing, however far in the past or future the time is."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "rain")
    await settle(graph)
    far, filter_ = datetime(years, 1, 2, tzinfo=UTC), post_filter(keywords=["rain"])

    since, until = await graph.searches.begin(filter_, since=far), await graph.searches.begin(filter_, until=far)

    assert await found(graph, since) == ([post] if years == 1 else [])
    assert await found(graph, until) == ([post] if years == 9999 else [])


async def test_a_page_looks_at_so_many_candidates_only(graph: Graph) -> None:
    """A page may be empty although more follow: only a phrase's words are looked up, and deleted posts are left out."""
    [alice] = await people(graph, "alice")
    [wanted] = await posts(graph, alice, "京北京")
    for post in await posts(graph, alice, *["北京"] * 30):
        await graph.posts.delete(alice, post)
    await posts(graph, alice, *["北京 京北"] * 30)
    await settle(graph)
    searches = Searches(graph.binding, graph.posts, scanned=7)
    search = await searches.begin(post_filter(keywords=["京北京"]))

    pages, window = [], newest(3)
    while True:
        page = await searches.posts(SYSTEM, search, window)
        pages.append([post.id for post in page.items])
        if not page.has_next:
            break
        assert page.reached is not None
        window = newest(3, after=page.reached)

    assert pages == [[], [], [], [], [wanted]]


async def test_the_indexing_of_old_posts_changes_no_search(graph: Graph) -> None:
    """Without an index, a search of the archive examines each post; later, it uses the index."""
    random = Random(9)  # noqa: S311 - reproducible
    authors = await people(graph, "alice", "bob")
    written = await write(graph, random, authors, 40)
    append = graph.archive.append
    graph.archive.append = lambda *args, **options: append(*args, **options, indexes=False)  # type: ignore[method-assign]
    await settle(graph)
    filters = [random_filter(random, authors) for _ in range(10)]

    indexing = Indexing(graph.binding, graph.lease, posts=15)
    for _ in range(5):
        for filter_ in filters:
            search = await graph.searches.begin(filter_)
            assert await found(graph, search, random) == matching(written, filter_)
        await indexing.step()
    assert not await indexing.step()


async def test_a_page_costs_one_round_trip(graph: Graph) -> None:
    """The rest of the page is read from the archive."""
    [alice] = await people(graph, "alice")
    await posts(graph, alice, *(f"rain {n}" for n in range(40)))
    await settle(graph)
    search = await graph.searches.begin(post_filter(keywords=["rain"]))

    async with counted(graph) as cost:
        await graph.searches.posts(graph.visibility.of(alice), search, newest(30))
    assert cost.round_trips == 1


async def test_a_search_without_archive_fails(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(post_filter(keywords=["rain"]), 100)

    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(graph.archive, "_transaction", fail)
    with pytest.raises(ArchiveUnavailable):
        await graph.searches.begin(search.filter)
    with pytest.raises(ArchiveUnavailable):
        await graph.searches.posts(SYSTEM, search, newest(10))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "The filter is empty. Set 'users', 'keywords' or 'within'."),
        ({"users": []}, "'users' must not be empty"),
        ({"users": list(range(1, 102))}, "'users' has 101 entries; the limit is 100"),
        ({"keywords": ["a"] * 21}, "'keywords' has 21 entries; the limit is 20"),
        ({"keywords": ["!"]}, "has no word, hashtag or phrase"),
        ({"within": Box(91, 0, 92, 0)}, "'within.south' must be from -90 to 90"),
    ],
)
def test_an_invalid_filter_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadFilter, match=message):
        post_filter(**given)


def test_the_largest_filter_is_accepted() -> None:
    filter_ = post_filter(users=range(1, 101), keywords=[f"{n}北京大学" for n in range(20)], within=Box(-90, 0, 90, 1))
    assert len(filter_.users or ()) == 100
