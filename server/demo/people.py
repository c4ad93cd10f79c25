"""The demo world: seven people with a password, a crowd around them, and some weeks of what they said and did.

Pure data, the same for the same seed and base time: the demo loads all of it, tests a small cut of the same people.
What the seven are to one another is settled here, so that examples and tests can rely on it: seen from alice, the
newest followers of bob show every state that a relationship can have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from graph.log.events import Event, Followed, Unfollowed
from graph.model import number_at
from server.demo.chatter import Planned, Resident, chatter, deletions
from server.demo.crowd import CITIES, Character, appetite, character, popular, stranger
from server.demo.phrases.chinese import CHINESE
from server.demo.phrases.english import ENGLISH
from server.demo.world import Person, World, apart, dice

PASSWORD = "fanline-demo"  # noqa: S105 - printed by the demo on purpose
PEOPLE = 300
POSTS = 5000
SEED = 7

OPENING = timedelta(days=70)
ALL_HERE = timedelta(days=40)
LATELY = timedelta(days=5)
"""How long before the base time the first person joins, everybody is there, and the newest follows begin."""

MEAN_FOLLOWING = 14
SEVEN_FOLLOW = 30


@dataclass(frozen=True, slots=True)
class Role:
    """One of the seven: who they are, how popular (their rank in the crowd), and their share of the posts."""

    person: Person
    who: Character
    rank: int
    share: float


SEVEN = (
    Role(
        Person("alice", "Alice", "Books, strong coffee, small programs."),
        Character((ENGLISH,), ("books", "coffee", "code", "cats"), CITIES["London"]),
        4,
        0.014,
    ),
    Role(
        Person("bob", "Bob", "Cooks, plays bass, loses at football."),
        Character((ENGLISH,), ("football", "cooking", "music"), CITIES["Berlin"]),
        9,
        0.012,
    ),
    Role(
        Person("carol", "Carol", "On a train, with a camera."),
        Character((ENGLISH,), ("travel", "photo", "film"), CITIES["Lisbon"]),
        16,
        0.016,
    ),
    Role(
        Person("dave", "Dave", "It works on my machine."),
        Character((ENGLISH,), ("code", "work", "running"), CITIES["Toronto"]),
        60,
        0.005,
    ),
    Role(
        Person("erin", "Erin", "Mostly here to read."),
        Character((ENGLISH,), ("books", "garden"), CITIES["London"]),
        150,
        0.001,
    ),
    Role(
        Person("wei", "伟", "写代码，跑步，找好吃的。"),
        Character((CHINESE, ENGLISH), ("code", "running", "food", "coffee"), CITIES["Hangzhou"]),
        2,
        0.018,
    ),
    Role(
        Person("xiaoming", "小明", "今天也要好好学习。"),
        Character((CHINESE,), ("study", "football", "cats", "food"), CITIES["Beijing"]),
        12,
        0.012,
    ),
)

FOLLOWS_AMONG_SEVEN = (
    ("carol", "dave"), ("dave", "carol"), ("wei", "xiaoming"), ("xiaoming", "wei"), ("alice", "wei"), ("wei", "alice"),
    ("alice", "carol"), ("erin", "alice"), ("dave", "alice"), ("erin", "wei"), ("bob", "carol"), ("bob", "alice"),
    ("xiaoming", "bob"), ("erin", "bob"), ("carol", "bob"), ("wei", "bob"), ("alice", "bob"),
)  # fmt: skip
"""In order of time; the last five, of the last days, are bob's newest followers: NONE, FOLLOWED_BY, FOLLOWING, MUTUAL
and SELF as alice sees them."""

JOINING, FOLLOWING, PUBLISHING, UNDOING, LANES = range(5)
"""The milliseconds, modulo LANES, in which each kind of thing happens, so that no two things happen at once."""


def demo_world(base: datetime, *, people: int = PEOPLE, posts: int = POSTS, seed: int = SEED) -> World:
    """Make the world as it stands at a base time: the seven, `people` − 7 others, and `posts` posts.

    A smaller world is a cut: its people are the first of the larger one's. Raises ValueError for fewer than 7 people.
    """
    if people < len(SEVEN):
        raise ValueError(f"The demo world has at least {len(SEVEN)} people.")
    residents = settle(base, people, seed)
    follows, unfollows = befriend(base, residents, seed)
    published = numbered(chatter(base, residents, follows, posts, dice("posting", seed)), PUBLISHING)
    second_thoughts = by_time([*unfollows, *deletions(published, base, dice("deleting", seed))])
    events = [Event(resident.id, resident.person.joins()) for resident in residents]
    events += [*numbered(follows, FOLLOWING), *published, *numbered(second_thoughts, UNDOING)]
    return World(tuple(sorted(events, key=lambda event: event.number)), {role.person.login: PASSWORD for role in SEVEN})


def cast(people: int, seed: int) -> Iterator[tuple[Person, Character]]:
    """Name everybody: the seven first, then the crowd, whose logins get a digit where one is taken."""
    taken: set[str] = set()
    for role in SEVEN:
        taken.add(role.person.login)
        yield role.person, role.who
    for index in range(len(SEVEN), people):
        random = dice(f"person {index}", seed)
        who = character(random)
        person = stranger(who, random)
        login, again = person.login, 1
        while login in taken:
            again += 1
            login = f"{person.login}{again}"
        taken.add(login)
        yield Person(login, person.name, person.bio), who


def settle(base: datetime, people: int, seed: int) -> list[Resident]:
    """Let everybody join within a month, in random order; the list keeps the order of the cast."""
    random = dice("joining", seed)
    starts = list(
        apart((base - OPENING + (OPENING - ALL_HERE) * place / people for place in range(people)), JOINING, LANES)
    )
    random.shuffle(starts)
    shares = {role.person.login: role.share for role in SEVEN}
    return [
        Resident(number_at(start), person, who, shares.get(person.login))
        for start, (person, who) in zip(starts, cast(people, seed), strict=True)
    ]


def befriend(base: datetime, residents: Sequence[Resident], seed: int) -> tuple[list[Planned], list[Planned]]:
    """Decide who follows whom and when, and who thinks better of it: follows and unfollows, each in order of time.

    The popular are followed most, those with a language in common more often, and some follow back. Among the seven
    only what is settled above happens.
    """
    random = dice("following", seed)
    ranking = ranked(len(residents))
    pairs = dict.fromkeys(
        pair for place in range(len(residents)) for pair in choices(place, residents, ranking, random)
    )
    follows, unfollows = [], []
    for follower, followee in pairs:
        ids = residents[follower].id, residents[followee].id
        at = base - ALL_HERE + (ALL_HERE - LATELY) * random.random() ** 1.5
        follows.append((at, Followed(*ids)))
        if random.random() < 0.01:
            unfollows.append((at + (base - at) * random.uniform(0.1, 0.9), Unfollowed(*ids)))
    by_login = {resident.person.login: resident.id for resident in residents}
    for place, (follower_, followee_) in enumerate(FOLLOWS_AMONG_SEVEN):
        at = base - LATELY * (1 - place / len(FOLLOWS_AMONG_SEVEN))
        follows.append((at, Followed(by_login[follower_], by_login[followee_])))
    return by_time(follows), by_time(unfollows)


def choices(
    place: int, residents: Sequence[Resident], ranking: Sequence[int], random: Random
) -> Iterator[tuple[int, int]]:
    """Pick whom one resident follows, and who of them follows back, as pairs of places in the list."""
    wanted = appetite(random, MEAN_FOLLOWING, len(residents) // 2)
    if place < len(SEVEN):
        wanted = max(wanted, min(SEVEN_FOLLOW, len(residents) // 2))
    for _ in range(wanted):
        other = ranking[popular(random, len(residents))]
        common = set(residents[place].who.voices) & set(residents[other].who.voices)
        if other == place or max(other, place) < len(SEVEN) or (not common and random.random() < 0.7):
            continue
        yield place, other
        if random.random() < 0.3:
            yield other, place


def ranked(people: int) -> list[int]:
    """Order places in the list by popularity: the seven stand at their ranks, or last in a small cut."""
    ranking = list(range(len(SEVEN), people))
    for place, role in sorted(enumerate(SEVEN), key=lambda pair: pair[1].rank):
        ranking.insert(role.rank, place)
    return ranking


def by_time(plans: Sequence[Planned]) -> list[Planned]:
    """Sort what is planned by time."""
    return sorted(plans, key=lambda plan: plan[0])


def numbered(plans: Sequence[Planned], lane: int) -> list[Event]:
    """Give what is planned, in order of time, the numbers that the log will give it."""
    times = apart((at for at, _ in plans), lane, LANES)
    return [Event(number_at(at), body) for at, (_, body) in zip(times, plans, strict=True)]
