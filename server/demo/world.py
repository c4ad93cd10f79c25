"""A generated world: the events of a log in time order. `server.seeding.load` loads them into a store.

Every event has a millisecond of its own, so that its number is known beforehand (`graph.model.number_at`), and
with it the id of the person or post that it creates. So a world can be a stream: no event needs another one to be
looked up, and a loading that broke off finds its place by the last number in the log.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from graph.log.events import Event, Followed, PostDeleted, PostPublished, Unfollowed, UserCreated
from graph.model import EPOCH

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may sign up: the login as wished for, the name, the bio."""

    login: str
    name: str
    bio: str = ""

    def joins(self) -> UserCreated:
        """Give the event of signing up. Seeded accounts need no secret nonce: a login is taken only once."""
        return UserCreated(self.login, self.name, f"seed:{self.login}", self.bio)


@dataclass(frozen=True, slots=True)
class World:
    """A world small enough to hold: its events in time order, and the passwords, by login, of those who have one.

    What the events come to in the end is summed up with plain sets, so that tests can compare a store with it.
    """

    events: tuple[Event, ...]
    passwords: Mapping[str, str] = field(default_factory=dict)

    def people(self) -> dict[str, int]:
        """Give everybody's id by login, in the order of joining."""
        return {event.body.login: event.number for event in self.events if isinstance(event.body, UserCreated)}

    def follows(self) -> dict[tuple[int, int], int]:
        """Give who follows whom in the end: (follower, followee) → the number of the follow."""
        follows: dict[tuple[int, int], int] = {}
        for event in self.events:
            if isinstance(event.body, Followed):
                follows.setdefault((event.body.follower, event.body.followee), event.number)
            elif isinstance(event.body, Unfollowed):
                follows.pop((event.body.follower, event.body.followee), None)
        return follows

    def posts(self) -> dict[int, PostPublished]:
        """Give the posts that are not deleted in the end, by id, oldest first."""
        gone = {event.body.post for event in self.events if isinstance(event.body, PostDeleted)}
        return {
            event.number: event.body
            for event in self.events
            if isinstance(event.body, PostPublished) and event.number not in gone
        }

    def home(self, viewer: int) -> list[int]:
        """Give the ids of a person's whole home timeline in the end, newest first, by its definition."""
        authors = {followee for follower, followee in self.follows() if follower == viewer} | {viewer}
        return [post for post, body in reversed(self.posts().items()) if body.author in authors]


def apart(times: Iterable[datetime], lane: int = 0, lanes: int = 1) -> Iterator[datetime]:
    """Move ascending times to whole milliseconds of their own, each by as little as possible.

    With several lanes, a lane's times keep apart from those of all other lanes too.
    """
    step = lanes * MILLISECOND
    last = EPOCH - step
    for time in times:
        last = max(last + step, EPOCH + (time - EPOCH) // step * step + lane * MILLISECOND)
        yield last


def dice(purpose: str, seed: int) -> Random:
    """Give the random numbers of one purpose: the same for the same seed, whatever other purposes draw."""
    return Random(f"{seed} {purpose}")  # noqa: S311 - a made-up world has to be repeatable, not secret
