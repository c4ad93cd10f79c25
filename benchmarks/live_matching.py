"""Matching: the filters that match an event, found with the index and with a loop over all filters."""

import random
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.report import Cell, Table
from benchmarks.worlds import FIRST_AUTHOR, FIRST_POST, STEP
from graph.feed.filters import Box, EventFilter, Traits
from graph.feed.matching import FilterIndex
from graph.log.events import Event, PostDeleted, PostPublished
from graph.text.terms import digest_of, terms_of
from server.demo.characters import CITIES, character
from server.demo.phrases import compose
from server.demo.posts import place_near

SEED = 7
KINDS, WEIGHTS = ("users", "keywords", "users and keywords", "box", "sample"), (40, 30, 10, 15, 5)
COMMON = 0.005  # filters do not use words that occur in a larger share of the posts
WORD = re.compile(r"#\w+|[a-z']{4,}|[\u4e00-\u9fff]{2,4}")
PLACED = 0.12
COLUMNS = (
    "filters",
    "matches/event",
    "index events/s",
    "µs/event",
    "loop events/s",
    "index ÷ loop",
    "deletions/s",
    "µs to add a filter",
)
NOTE = (
    "One process; posts in English and Chinese by {users:,} users, {placed:.0%} of the posts with a location. "
    "Filters: {mix}; 1 to 100 users, 1 to 5 keywords of 1 to 3 words that occur in at most {common:.1%} of the posts, "
    "boxes of one to a few hundred kilometres around cities, samples of 1%. Extracting the words of a post takes "
    "{words:.1f} µs of this. The loop checks one filter after the other and also extracts the words once per post; "
    "both find the same matches. 'deletions' are those of the posts: they match all boxes. Goal: 20,000 events/s with "
    "10,000 filters, deletions too."
)


@dataclass(frozen=True, slots=True)
class Audition:
    """The numbers of filters, the numbers of posts and users, and the seconds per measurement."""

    filters: Sequence[int]
    posts: int
    users: int
    seconds: float


class Texts:
    """Realistic posts and filters, the same in each run."""

    def __init__(self, posts: int, users: int) -> None:
        self._random = random.Random(SEED)
        self._users_count = users
        self._authors = [self._random.paretovariate(1.7) for _ in range(users)]
        self.events = [
            Event(FIRST_POST + place * STEP, self._post(author))
            for place, author in enumerate(self._random.choices(range(users), self._authors, k=posts))
        ]
        self._words = self._askable()

    def _post(self, author: int) -> PostPublished:
        draw = self._random
        who = character(random.Random(author))
        voice = draw.choice(who.voices)
        place = place_near(who, draw) if draw.random() < PLACED else (None, None)
        text = compose(voice, draw.choice(voice.topics), draw)
        return PostPublished(FIRST_AUTHOR + author * STEP, text, None, *place)

    def deletions(self) -> list[Event]:
        """Return the events that delete the posts."""
        return [
            Event(event.number + STEP // 2, PostDeleted(event.body.author, event.number, digest_of(event.body.text)))
            for event in self.events
            if isinstance(event.body, PostPublished)
        ]

    def texts(self) -> list[str]:
        """Return the texts of the posts."""
        return [event.body.text for event in self.events if isinstance(event.body, PostPublished)]

    def _askable(self) -> list[list[str]]:
        """Return the words of each post that can be in filters."""
        found = [WORD.findall(text.casefold()) for text in self.texts()]
        counts = Counter(word for words in found for word in set(words))
        limit = max(1, COMMON * len(found))
        chosen = [[word for word in words if counts[word] <= limit] for words in found]
        return [words for words in chosen if words]

    def filters(self) -> Iterator[EventFilter]:
        """Yield an endless sequence of filters."""
        while True:
            [kind] = self._random.choices(KINDS, WEIGHTS)
            users = self._users() if kind.startswith("users") else None
            keywords = self._keywords() if kind.endswith("keywords") else None
            within = self._box() if kind == "box" else None
            sample = 0.01 if kind == "sample" else None
            yield EventFilter.of(
                users=users, keywords=keywords, within=within, sample=sample, firehose=kind == "sample"
            )

    def _users(self) -> list[int]:
        count = self._random.randint(1, 100)
        return [FIRST_AUTHOR + author * STEP for author in self._random.sample(range(self._users_count), count)]

    def _keywords(self) -> list[str]:
        return [self._keyword() for _ in range(self._random.randint(1, 5))]

    def _keyword(self) -> str:
        words = self._random.choice(self._words)
        return " ".join(self._random.sample(words, min(len(words), self._random.randint(1, 3))))

    def _box(self) -> Box:
        city, half = self._random.choice(list(CITIES.values())), 10 ** self._random.uniform(-2, 0.5)
        latitude, longitude = city.latitude + self._random.gauss(0, half), city.longitude + self._random.gauss(0, half)
        return Box(latitude - half, longitude - half, latitude + half, longitude + half)


def by_filters(audition: Audition) -> Table:
    """Measure growing numbers of filters, and check that the index and the loop find the same filters."""
    texts = Texts(audition.posts, audition.users)
    more = texts.filters()
    filters: list[EventFilter] = []
    index: FilterIndex[int] = FilterIndex()
    rows: list[list[Cell]] = []
    for count in audition.filters:
        added = [next(more) for _ in range(count - len(filters))]
        start = time.perf_counter()
        for filter_ in added:
            index.add(filter_, len(filters))
            filters.append(filter_)
        adding = 1e6 * (time.perf_counter() - start) / len(added)
        deletions, _ = _speed(index.matching, texts.deletions(), audition.seconds)
        rows.append([*_row(texts.events, filters, index, audition.seconds), deletions, adding])
    users = {event.body.author for event in texts.events if isinstance(event.body, PostPublished)}
    mix = ", ".join(f"{weight}% {kind}" for kind, weight in zip(KINDS, WEIGHTS, strict=True))
    start = time.process_time()
    deque(map(terms_of, texts.texts()), maxlen=0)
    words = 1e6 * (time.process_time() - start) / len(texts.events)
    note = NOTE.format(users=len(users), placed=PLACED, common=COMMON, mix=mix, words=words)
    return Table("matching", "Matching events with filters", COLUMNS, rows, note)


def _row(
    events: Sequence[Event], filters: Sequence[EventFilter], index: FilterIndex[int], seconds: float
) -> list[Cell]:
    def loop(event: Event) -> Collection[int]:
        traits = Traits.of(event)
        return {n for n, filter_ in enumerate(filters) if filter_.matches_traits(traits)} if traits else ()

    for event in events[:: max(1, len(events) // 20)]:
        assert index.matching(event) == loop(event), "index and loop find different filters"
    per_second, matches = _speed(index.matching, events, seconds)
    naive, _ = _speed(loop, events, seconds)
    return [len(filters), matches, per_second, 1e6 / per_second, naive, per_second / naive]


def _speed(find: Callable[[Event], Collection[int]], events: Sequence[Event], seconds: float) -> tuple[float, float]:
    """Return events per second of CPU time, and matches per event."""
    bodies = matches = 0
    start = time.process_time()
    while (lasted := time.process_time() - start) < seconds:
        matches += len(find(events[bodies % len(events)]))
        bodies += 1
    return bodies / lasted, matches / bodies
