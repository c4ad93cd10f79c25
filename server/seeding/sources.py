"""Sources of large data sets: generated users, with follows and texts that are generated or read from files.

Everything is streamed; memory does not grow with the number of users, follows or posts. First all users sign up, then
they follow, then they post, each within a month. The number of events is known in advance.
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
from graph.text.validation import Check
from server.demo.characters import Character, character, following_count, generated_profile, rank_by_popularity
from server.demo.phrases import compose
from server.demo.world import Person, random_numbers
from server.seeding.load import SeedRefused, Source

MONTH = timedelta(days=30)
MONTH_MS = MONTH // timedelta(milliseconds=1)
USERS = 1000
FOLLOWING = 20
SEED = 7
WORLD = "2"
"""The version of the generated data. It changes when the same options generate different data, so that an interrupted
seeding never resumes with different data."""

KINDS = 1000
"""The number of distinct characters (see `characters`): users n and n + 1000 have the same character."""


@dataclass(frozen=True, slots=True)
class Month:
    """Thirty days from the millisecond `first`, with `count` evenly spaced events, each in its own millisecond."""

    first: int
    count: int

    @classmethod
    def before(cls, base: datetime, months: int, count: int) -> "Month":
        """Return the month that starts this many months before the base time."""
        return cls(number_at(base - months * MONTH) >> SEQUENCE_BITS, max(1, count))

    def number(self, index: int) -> int:
        """Return the event number of the event with this index, from 0."""
        return (self.first + index * MONTH_MS // self.count) << SEQUENCE_BITS


@dataclass(frozen=True, slots=True)
class EdgeList:
    """A file of follows, gzipped or not, validated in advance.

    The first line is `# name users pairs`. Every other line is a pair `a b` of numbers below `users`: a follows b.
    """

    path: Path
    people: int
    pairs: int

    @classmethod
    def check(cls, path: Path) -> "EdgeList":
        """Read the whole file once and count its pairs. Raises SeedRefused, naming the line, if the file is invalid."""
        with opened(path) as lines:
            people = cls._people(path, lines.readline())
            pairs = 0
            for number, line in enumerate(lines, start=2):
                pair = pair_of(line)
                if pair is None or max(pair) >= people or pair[0] == pair[1]:
                    raise SeedRefused(
                        f"{path}, line {number}: must be two different numbers below {people}, as in '0 1'."
                    )
                pairs += 1
        return cls(path, people, pairs)

    @staticmethod
    def _people(path: Path, header: str) -> int:
        match = re.match(r"#\s*\S+\s+([0-9]{1,9})\b", header)
        if match is None:
            raise SeedRefused(
                f"{path}, line 1: must be a header with the number of users, as in '# name 75877 405739'."
            )
        return int(match[1])

    def read(self) -> Iterator[tuple[int, int]]:
        """Yield (follower, followee) pairs in the order of the file, with the file's user numbers."""
        with opened(self.path) as lines:
            lines.readline()
            for line in lines:
                pair = pair_of(line)
                if pair is not None:
                    yield pair


@dataclass(frozen=True, slots=True)
class Texts:
    """A file of post texts, one per line, gzipped or not, validated in advance."""

    path: Path
    count: int

    @classmethod
    def check(cls, path: Path) -> "Texts":
        """Read the whole file once and count its texts. Raises SeedRefused, naming the line, for an invalid text."""
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
            raise SeedRefused(f"{path} contains no text.")
        return cls(path, count)

    def read(self) -> Iterator[str]:
        """Yield the texts in order, starting over after the last one."""
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
    """Return a source of users, follows and posts. Data for which there is no file is generated.

    `following` is the average number of users that a user follows. The file `follows` determines the follows and the
    number of users, and the login of the user with number n is `p<n>`. Raises SeedRefused for contradictory options.
    """
    if follows and (users is not None or following is not None):
        raise SeedRefused("--users and --following cannot be combined with --follows: the file determines both.")
    edges = EdgeList.check(follows) if follows else None
    people = edges.people if edges else USERS if users is None else users
    mean = FOLLOWING if following is None else following
    published = people if posts is None else posts
    lines = Texts.check(texts) if texts else None
    for option, number, least in (("--users", people, 1), ("--posts", published, 0), ("--following", mean, 0)):
        if not least <= number <= MONTH_MS // 10:
            raise SeedRefused(f"{option} must be from {least} to {MONTH_MS // 10}, not {number}.")
    followed = edges.pairs if edges else min(mean, people - 1) * people
    files = [path for path in (follows, texts) if path]
    what = f"{people} users, {'' if edges else 'about '}{followed} follows and {published} posts"
    if files:
        what += f" from {' and '.join(path.name for path in files)}"
    plan = Plan(people, mean, published, edges, lines)
    return Source(what, f"{WORLD} {version_of(files)}", plan.count, plan.events)


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters and files from which events are generated.

    `following` is the average number of generated follows per user.
    """

    people: int
    following: int
    posts: int
    edges: EdgeList | None
    texts: Texts | None

    def count(self, _: datetime) -> int:
        """Return the number of events, for any base time. Takes a second per million users."""
        return self.people + (self.edges.pairs if self.edges else sum(self._following_counts())) + self.posts

    def events(self, base: datetime) -> Iterator[Event]:
        """Yield the events for a base time."""
        joins = Month.before(base, 3, self.people)
        for index, person in enumerate(generated_profiles(self.people)):
            yield Event(joins.number(index), person.joins())
        if self.edges:
            month = Month.before(base, 2, self.edges.pairs)
            for index, (follower, followee) in enumerate(self.edges.read()):
                yield Event(month.number(index), Followed(joins.number(follower), joins.number(followee)))
        else:
            yield from generated_follows(joins, Month.before(base, 2, self.people), self._following_counts())
        yield from generated_posts(joins, Month.before(base, 1, self.posts), self.posts, self.texts)

    def _following_counts(self) -> Iterator[int]:
        """Yield how many users each user follows: fewer than all, and few enough for the milliseconds of a month."""
        random = random_numbers("appetites", SEED)
        limit = min(self.people, MONTH_MS // self.people) - 1
        return (following_count(random, self.following, limit) for _ in range(self.people if self.following else 0))


def generated_profiles(people: int) -> Iterator[Person]:
    """Yield generated profiles with the logins `p0`, `p1` and so on."""
    random = random_numbers("people", SEED)
    kinds = characters()
    for index in range(people):
        made_up = generated_profile(kinds[index % KINDS], random)
        yield Person(f"p{index}", made_up.name, made_up.bio)


def characters() -> list[Character]:
    """Return the `KINDS` generated characters."""
    return [character(random_numbers(f"character {kind}", SEED)) for kind in range(KINDS)]


def generated_follows(joins: Month, month: Month, following_counts: Iterable[int]) -> Iterator[Event]:
    """Yield generated follows, user by user. Users with lower numbers are more popular."""
    random = random_numbers("follows", SEED)
    for follower, wanted in enumerate(following_counts):
        own, first = joins.number(follower), month.number(follower)
        chosen = {follower}
        for place in range(wanted):
            followee = rank_by_popularity(random, joins.count)
            while followee in chosen:
                followee = (followee + 1) % joins.count
            chosen.add(followee)
            yield Event(first + (place << SEQUENCE_BITS), Followed(own, joins.number(followee)))


def generated_posts(joins: Month, month: Month, posts: int, texts: Texts | None) -> Iterator[Event]:
    """Yield generated posts. Popular users post more."""
    random = random_numbers("posts", SEED)
    lines = texts.read() if texts else None
    kinds = characters()
    for index in range(posts):
        author = rank_by_popularity(random, joins.count)
        text = next(lines) if lines else generated_text(kinds[author % KINDS], random)
        yield Event(month.number(index), PostPublished(joins.number(author), text))


def generated_text(who: Character, random: Random) -> str:
    """Return a text about one of the character's topics, in the character's first language."""
    return compose(who.voices[0], random.choice(who.topics), random)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file, gzipped if its name ends in .gz. Raises SeedRefused if the file cannot be read."""
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
    """Return the pair in a line of a file of follows, or None for an invalid line."""
    match = re.fullmatch(r"\s*([0-9]{1,12})\s+([0-9]{1,12})\s*", line)
    return (int(match[1]), int(match[2])) if match else None


def text_of(line: str) -> str:
    """Return the post text of a line. Raises Rejected if it is not a valid text for a post."""
    check = Check()
    text = check.text(line)
    check.done()
    return text


def version_of(files: list[Path]) -> str:
    """Return a digest of the files' contents. A seeding resumes only if the digest is the same."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
