"""Large worlds to seed: people by the thousand, their follows from a formula or a real graph, their texts likewise.

Everything is a stream; memory does not grow with the number of people, follows or posts. First everybody joins, then
they follow, then they post, each within a month. How many events there will be is known beforehand.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import TextIO

from graph.errors import Rejected
from graph.log.events import Event, Followed, PostPublished
from graph.model import SEQUENCE_BITS, number_at
from graph.validation import Check
from server.demo.crowd import Character, appetite, character, popular, stranger
from server.demo.phrases import compose
from server.demo.world import Person, dice
from server.seeding.load import SeedRefused, Source

MONTH = timedelta(days=30)
MONTH_MS = MONTH // timedelta(milliseconds=1)
USERS = 1000
FOLLOWING = 20
SEED = 7
WORLD = "2"
"""Changes whenever the same options make another world, so that one that is half seeded is not mixed with it."""

KINDS = 1000
"""How many kinds of people there are: the person with number n is of the same kind as the one with n + 1000."""


@dataclass(frozen=True, slots=True)
class Month:
    """Thirty days in which `count` things happen, evenly, each in a millisecond of its own; `first` is their start."""

    first: int
    count: int

    @classmethod
    def before(cls, base: datetime, months: int, count: int) -> "Month":
        """Give the month that starts so many months before the base time."""
        return cls(number_at(base - months * MONTH) >> SEQUENCE_BITS, max(1, count))

    def number(self, index: int) -> int:
        """Give the log number of the thing at this index, from 0."""
        return (self.first + index * MONTH_MS // self.count) << SEQUENCE_BITS


@dataclass(frozen=True, slots=True)
class EdgeList:
    """A file of who follows whom, gzipped or not, checked beforehand.

    The first line is `# name people pairs`; every other one a pair `a b` of numbers below `people`: a follows b, and b
    follows a too if a + b is divisible by 3.
    """

    path: Path
    people: int
    pairs: int
    follows: int

    @classmethod
    def check(cls, path: Path) -> "EdgeList":
        """Read the whole file once and count. Raises SeedRefused, naming the line, if it is not such a file."""
        with opened(path) as lines:
            people = cls._people(path, lines.readline())
            pairs = follows = 0
            for number, line in enumerate(lines, start=2):
                pair = pair_of(line)
                if pair is None or max(pair) >= people or pair[0] == pair[1]:
                    raise SeedRefused(
                        f"{path}, line {number}: must be two different numbers below {people}, as in '0 1'."
                    )
                pairs += 1
                follows += 1 + mutual(*pair)
        return cls(path, people, pairs, follows)

    @staticmethod
    def _people(path: Path, header: str) -> int:
        match = re.match(r"#\s*\S+\s+([0-9]{1,9})\b", header)
        if match is None:
            raise SeedRefused(
                f"{path}, line 1: must be a header with the number of people, as in '# name 75877 405739'."
            )
        return int(match[1])

    def read(self) -> Iterator[tuple[int, int]]:
        """Yield who follows whom, by the file's numbers, in the file's order."""
        with opened(self.path) as lines:
            lines.readline()
            for line in lines:
                pair = pair_of(line)
                if pair is not None:
                    yield pair
                    if mutual(*pair):
                        yield pair[1], pair[0]


@dataclass(frozen=True, slots=True)
class Texts:
    """A file of texts to post, one a line, gzipped or not, checked beforehand."""

    path: Path
    count: int

    @classmethod
    def check(cls, path: Path) -> "Texts":
        """Read the whole file once. Raises SeedRefused, naming the line, if one could not be posted."""
        count = 0
        with opened(path) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    try:
                        text_of(line)
                    except Rejected as rejected:
                        raise SeedRefused(f"{path}, line {number}: {rejected}") from None
                    count += 1
        if not count:
            raise SeedRefused(f"{path}: has no text in it.")
        return cls(path, count)

    def read(self) -> Iterator[str]:
        """Yield the texts in order, from the beginning again when they end, without end."""
        while True:
            with opened(self.path) as lines:
                yield from (text_of(line) for line in lines if line.strip())


def seed_source(
    users: int | None = None,
    posts: int | None = None,
    following: int | None = None,
    follows: Path | None = None,
    texts: Path | None = None,
) -> Source:
    """Give a large world as something to seed; what is not given is made up.

    `following` is how many people each follows on average; with a file of `follows`, that and the number of users
    are the file's. The login of the person with number n is `p<n>`. Raises SeedRefused if that makes no sense.
    """
    if follows and (users is not None or following is not None):
        raise SeedRefused("--users and --following cannot be given beside --follows: the file says both.")
    edges = EdgeList.check(follows) if follows else None
    people = edges.people if edges else USERS if users is None else users
    mean = FOLLOWING if following is None else following
    published = people if posts is None else posts
    lines = Texts.check(texts) if texts else None
    for option, number, least in (("--users", people, 1), ("--posts", published, 0), ("--following", mean, 0)):
        if not least <= number <= MONTH_MS // 10:
            raise SeedRefused(f"{option} must be from {least} to {MONTH_MS // 10}, not {number}.")
    followed = edges.follows if edges else min(mean, people - 1) * people
    files = [path for path in (follows, texts) if path]
    what = f"{people} people, {'' if edges else 'about '}{followed} follows and {published} posts"
    if files:
        what += f" from {' and '.join(path.name for path in files)}"
    plan = Plan(people, mean, published, edges, lines)
    return Source(what, f"{WORLD} {version_of(files)}", plan.count, plan.events)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a large world is made from. Without a file of edges, people follow `following` others on average."""

    people: int
    following: int
    posts: int
    edges: EdgeList | None
    texts: Texts | None

    def count(self) -> int:
        """Work out how many events there will be. A second for every million people."""
        return self.people + (self.edges.follows if self.edges else sum(self._appetites())) + self.posts

    def events(self, base: datetime) -> Iterator[Event]:
        """Yield the world's events for a base time."""
        joins = Month.before(base, 3, self.people)
        for index, person in enumerate(crowd(self.people)):
            yield Event(joins.number(index), person.joins())
        if self.edges:
            month = Month.before(base, 2, self.edges.follows)
            for index, (follower, followee) in enumerate(self.edges.read()):
                yield Event(month.number(index), Followed(joins.number(follower), joins.number(followee)))
        else:
            yield from made_up_follows(joins, Month.before(base, 2, self.people), self._appetites())
        yield from made_up_posts(joins, Month.before(base, 1, self.posts), self.posts, self.texts)

    def _appetites(self) -> Iterator[int]:
        """Yield how many people each person follows: never more than there are, or than there are milliseconds."""
        random = dice("appetites", SEED)
        most = min(self.people, MONTH_MS // self.people) - 1
        return (appetite(random, self.following, most) for _ in range(self.people if self.following else 0))


def crowd(people: int) -> Iterator[Person]:
    """Make up people, one after the other."""
    random = dice("people", SEED)
    kinds = characters()
    for index in range(people):
        made_up = stranger(kinds[index % KINDS], random)
        yield Person(f"p{index}", made_up.name, made_up.bio)


def characters() -> list[Character]:
    """Make up all kinds of people."""
    return [character(dice(f"character {kind}", SEED)) for kind in range(KINDS)]


def made_up_follows(joins: Month, month: Month, appetites: Iterable[int]) -> Iterator[Event]:
    """Let one person after the other follow others, the popular ones most: those with low numbers."""
    random = dice("follows", SEED)
    for follower, wanted in enumerate(appetites):
        own, first = joins.number(follower), month.number(follower)
        chosen = {follower}
        for place in range(wanted):
            followee = popular(random, joins.count)
            while followee in chosen:
                followee = (followee + 1) % joins.count
            chosen.add(followee)
            yield Event(first + (place << SEQUENCE_BITS), Followed(own, joins.number(followee)))


def made_up_posts(joins: Month, month: Month, posts: int, texts: Texts | None) -> Iterator[Event]:
    """Let people post, the popular ones most."""
    random = dice("posts", SEED)
    lines = texts.read() if texts else None
    kinds = characters()
    for index in range(posts):
        author = popular(random, joins.count)
        text = next(lines) if lines else made_up_text(kinds[author % KINDS], random)
        yield Event(month.number(index), PostPublished(joins.number(author), text))


def made_up_text(who: Character, random: Random) -> str:
    """Let somebody say something."""
    return compose(who.voices[0], random.choice(who.topics), random)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file, gzipped if its name ends in .gz. Raises SeedRefused if it cannot be read to its end."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                yield file
        else:
            with path.open(encoding="utf-8") as file:
                yield file
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SeedRefused(f"{path} cannot be read: {error}.") from None


def pair_of(line: str) -> tuple[int, int] | None:
    """Read a line of an edge list, or None if it is not one."""
    match = re.fullmatch(r"\s*([0-9]{1,12})\s+([0-9]{1,12})\s*", line)
    return (int(match[1]), int(match[2])) if match else None


def mutual(a: int, b: int) -> bool:
    """Whether b follows a as well."""
    return (a + b) % 3 == 0


def text_of(line: str) -> str:
    """Read a line as a post's text. Raises Rejected if it could not be posted."""
    check = Check()
    text = check.text(line)
    check.done()
    return text


def version_of(files: list[Path]) -> str:
    """Sum up the files' content, so that a seeding is resumed from the same ones only."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
