"""The demo world: seven users with a password, generated users around them, and several weeks of their activity.

The events are the same for the same seed and base time. The demo loads the whole world; tests load a small part. The
follows among the seven are fixed, so that examples and tests can rely on them: every relationship state occurs between
alice and the newest followers of bob.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from graph.log.events import Event, Followed, PostDeleted, Unfollowed
from graph.model import number_at
from server.demo.characters import CITIES, Character, character, following_count, generated_profile, rank_by_popularity
from server.demo.conversations import Conversations
from server.demo.phrases.chinese import CHINESE
from server.demo.phrases.english import ENGLISH
from server.demo.posts import Resident, deletions, plan_posts
from server.demo.schedule import Lane, Planned, by_time, numbered
from server.demo.world import Person, World, random_numbers, spread_apart

PASSWORD = "fanline-demo"  # noqa: S105 - printed by the demo on purpose
PEOPLE = 300
POSTS = 5000
SEED = 7

OPENING = timedelta(days=70)
ALL_HERE = timedelta(days=40)
LATELY = timedelta(days=5)
"""How long before the base time the first user signs up, the last user signs up, and the follows among the seven begin.
"""

MEAN_FOLLOWING = 14
SEVEN_FOLLOW = 30


@dataclass(frozen=True, slots=True)
class Role:
    """One of the seven users: profile, rank by popularity, and share of the posts."""

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
"""(follower, followee) in chronological order, starting LATELY before the base time. The last five are bob's newest
followers, whose relationships to alice are STRANGER, FOLLOWED_BY, FOLLOWING, MUTUAL and YOU."""


def demo_world(base: datetime, *, people: int = PEOPLE, posts: int = POSTS, seed: int = SEED) -> World:
    """Return the world at a base time: the seven, `people` − 7 other users, and `posts` posts.

    The users of a smaller world are the first users of a larger one. Raises ValueError for fewer than 7 users.
    """
    if people < len(SEVEN):
        raise ValueError(f"The demo world has at least {len(SEVEN)} users.")
    residents = sign_up_all(base, people, seed)
    follows, unfollows = plan_follows(base, residents, seed)
    published = numbered(plan_posts(base, residents, follows, posts, random_numbers("posting", seed)), Lane.PUBLISHING)
    deleted = deletions(published, base, random_numbers("deleting", seed))
    gone = {body.post for _, body in deleted if isinstance(body, PostDeleted)}
    conversations = Conversations(base, residents, follows, random_numbers("conversing", seed))
    events = [Event(resident.id, resident.person.joins()) for resident in residents]
    events += [*numbered(follows, Lane.FOLLOWING), *published]
    events += conversations.events([event for event in published if event.number not in gone])
    events += numbered(by_time([*unfollows, *deleted]), Lane.UNDOING)
    return World(tuple(sorted(events, key=lambda event: event.number)), {role.person.login: PASSWORD for role in SEVEN})


def profiles(people: int, seed: int) -> Iterator[tuple[Person, Character]]:
    """Yield the profiles, the seven first. A number is appended to generated logins that are taken."""
    taken: set[str] = set()
    for role in SEVEN:
        taken.add(role.person.login)
        yield role.person, role.who
    for index in range(len(SEVEN), people):
        random = random_numbers(f"person {index}", seed)
        who = character(random)
        person = generated_profile(who, random)
        login, again = person.login, 1
        while login in taken:
            again += 1
            login = f"{person.login}{again}"
        taken.add(login)
        yield Person(login, person.name, person.bio), who


def sign_up_all(base: datetime, people: int, seed: int) -> list[Resident]:
    """Return the users in the order of their profiles. They sign up in random order within a month."""
    random = random_numbers("joining", seed)
    starts = list(
        spread_apart(
            (base - OPENING + (OPENING - ALL_HERE) * place / people for place in range(people)), Lane.JOINING, len(Lane)
        )
    )
    random.shuffle(starts)
    shares = {role.person.login: role.share for role in SEVEN}
    return [
        Resident(number_at(start), person, who, shares.get(person.login))
        for start, (person, who) in zip(starts, profiles(people, seed), strict=True)
    ]


def plan_follows(base: datetime, residents: Sequence[Resident], seed: int) -> tuple[list[Planned], list[Planned]]:
    """Return follows and unfollows, each in chronological order.

    Popular users and users with a common language are followed more often, and some follow back. Among the seven, there
    are only the fixed follows.
    """
    random = random_numbers("following", seed)
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
    """Yield the follows of one user and the follows back, as pairs of positions in the list: (follower, followee)."""
    wanted = following_count(random, MEAN_FOLLOWING, len(residents) // 2)
    if place < len(SEVEN):
        wanted = max(wanted, min(SEVEN_FOLLOW, len(residents) // 2))
    for _ in range(wanted):
        other = ranking[rank_by_popularity(random, len(residents))]
        common = set(residents[place].who.voices) & set(residents[other].who.voices)
        if other == place or max(other, place) < len(SEVEN) or (not common and random.random() < 0.7):
            continue
        yield place, other
        if random.random() < 0.3:
            yield other, place


def ranked(people: int) -> list[int]:
    """Return positions in the list, most popular first. The seven have fixed ranks, or come last in a small world."""
    ranking = list(range(len(SEVEN), people))
    for place, role in sorted(enumerate(SEVEN), key=lambda pair: pair[1].rank):
        ranking.insert(role.rank, place)
    return ranking
