"""Generated posts: authors, times, locations and texts, and deletions.

Some users write a lot and most a little. They write during the waking hours of their city, more in recent weeks than in
earlier ones, and sometimes address users they follow.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from random import Random

from graph.log.events import Event, Followed, PostDeleted, PostPublished
from server.demo.characters import Character
from server.demo.phrases import compose, reply
from server.demo.schedule import Planned
from server.demo.world import Person

WEEKS = timedelta(days=28)
SILENCE = timedelta(minutes=2)
"""Posts are published between WEEKS and SILENCE before the base time."""

HOURS = (2, 1, 1, 1, 1, 2, 5, 9, 11, 9, 8, 9, 12, 11, 8, 7, 7, 8, 10, 12, 14, 14, 10, 5)
"""The relative number of posts in each hour of the day, in the local time of the author's city."""

MENTION = re.compile(r"@(\w+)")

PLATFORMS = ("iPhone", "Android", "Web", "iPad", "Linux", "Desktop", None)
PLATFORM_WEIGHTS = (28, 30, 18, 4, 4, 6, 10)


@dataclass(frozen=True, slots=True)
class Resident:
    """A user who has signed up: id, profile, character, and share of all posts (None if it is random)."""

    id: int
    person: Person
    who: Character
    share: float | None = None


def plan_posts(
    base: datetime, residents: Sequence[Resident], follows: Sequence[Planned], posts: int, random: Random
) -> list[Planned]:
    """Return planned posts in chronological order."""
    logins = {resident.id: resident.person.login for resident in residents}
    ids = {login: id_ for id_, login in logins.items()}
    friends: defaultdict[int, list[str]] = defaultdict(list)
    for _, body in follows:
        if isinstance(body, Followed):
            friends[body.follower].append(logins[body.followee])
    activity = list(accumulate(author_weights(residents, random)))
    habits = {resident.id: random.choices(PLATFORMS, PLATFORM_WEIGHTS)[0] for resident in residents}
    planned: list[Planned] = []
    for _ in range(posts):
        [author] = random.choices(residents, cum_weights=activity)
        text = write_text(author.who, friends[author.id], random)
        platform = habits[author.id] if random.random() < 0.85 else random.choices(PLATFORMS, PLATFORM_WEIGHTS)[0]
        latitude, longitude = place_near(author.who, random) if random.random() < 0.12 else (None, None)
        mentions = tuple(ids[login] for login in MENTION.findall(text))
        body = PostPublished(author.id, text, platform, latitude, longitude, mentions=mentions)
        planned.append((posting_time(base, author.who, random), body))
    return sorted(planned, key=lambda plan: plan[0])


def author_weights(residents: Sequence[Resident], random: Random) -> list[float]:
    """Return each user's weight as an author: the fixed share, or a weight that follows a power law."""
    weights = [random.paretovariate(1.7) if resident.share is None else 0.0 for resident in residents]
    generated_profiles = sum(weights) or 1.0
    rest = 1 - sum(resident.share or 0 for resident in residents)
    return [
        weight * rest / generated_profiles if resident.share is None else resident.share
        for resident, weight in zip(residents, weights, strict=True)
    ]


def write_text(who: Character, friends: Sequence[str], random: Random) -> str:
    """Return the text of a post, usually about one of the character's topics, sometimes addressed to a friend."""
    voice = who.voices[0] if len(who.voices) == 1 or random.random() < 0.6 else who.voices[1]
    if friends and random.random() < 0.08:
        return reply(voice, random.choice(friends), random)
    topics = [topic for topic in who.topics if topic in voice.topics]
    topic = random.choice(topics if topics and random.random() < 0.85 else voice.topics)
    return compose(voice, topic, random)


def place_near(who: Character, random: Random) -> tuple[float, float]:
    """Return latitude and longitude within a few kilometres of the character's city."""
    city = who.city
    return (
        round(city.latitude + random.uniform(-0.05, 0.05), 4),
        round(city.longitude + random.uniform(-0.05, 0.05), 4),
    )


def posting_time(base: datetime, who: Character, random: Random) -> datetime:
    """Return a random time in waking hours, more likely on a recent day."""
    [hour] = random.choices(range(24), HOURS)
    midnight = base.replace(hour=0, minute=0, second=0, microsecond=0)
    back = int((WEEKS.days - 1) * random.random() ** 1.25)
    at = (
        midnight - timedelta(days=back) + timedelta(hours=(hour - who.city.hours) % 24, seconds=random.uniform(0, 3600))
    )
    return at if at <= base - SILENCE else at - timedelta(days=1)


def deletions(published: Sequence[Event], base: datetime, random: Random) -> list[Planned]:
    """Return planned deletions of one post in a hundred, minutes to hours after it was published."""
    planned: list[Planned] = []
    for event in published:
        if isinstance(event.body, PostPublished) and random.random() < 0.01:
            at = event.at + timedelta(minutes=random.paretovariate(0.8))
            planned.append((min(at, base - SILENCE / 2), PostDeleted(event.body.author, event.number)))
    return planned
