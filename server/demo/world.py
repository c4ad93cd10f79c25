"""A generated world: the events of a log in time order. `server.seeding.load` loads them into a store.

Every event has its own millisecond, so its number (`graph.model.number_at`) and the id of the user or post that it
creates are known in advance. Events can therefore be streamed without look-ups, and an interrupted load resumes after
the last number in the log.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from graph.log.events import Event, Followed, PostDeleted, PostPublished, Reposted, Unfollowed, UserCreated
from graph.model import EPOCH

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Person:
    """A profile to sign up: login, name and bio."""

    login: str
    name: str
    bio: str = ""

    def joins(self) -> UserCreated:
        """Return the sign-up event. Seeded accounts need no secret nonce, because no login occurs twice."""
        return UserCreated(self.login, self.name, f"seed:{self.login}", self.bio)


@dataclass(frozen=True, slots=True)
class World:
    """A world held in memory: its events in time order, and passwords by login.

    The methods compute the final state with plain sets, so that tests can compare a store with it.
    """

    events: tuple[Event, ...]
    passwords: Mapping[str, str] = field(default_factory=dict)

    def people(self) -> dict[str, int]:
        """Return user ids by login, in the order of sign-up."""
        return {event.body.login: event.number for event in self.events if isinstance(event.body, UserCreated)}

    def follows(self) -> dict[tuple[int, int], int]:
        """Return the final follows: (follower, followee) → number of the event."""
        follows: dict[tuple[int, int], int] = {}
        for event in self.events:
            if isinstance(event.body, Followed):
                follows.setdefault((event.body.follower, event.body.followee), event.number)
            elif isinstance(event.body, Unfollowed):
                follows.pop((event.body.follower, event.body.followee), None)
        return follows

    def posts(self) -> dict[int, PostPublished]:
        """Return the undeleted posts of the final state, by id, oldest first."""
        gone = {event.body.post for event in self.events if isinstance(event.body, PostDeleted)}
        return {
            event.number: event.body
            for event in self.events
            if isinstance(event.body, PostPublished) and event.number not in gone
        }

    def entries(self) -> dict[int, int]:
        """Return the author of each timeline entry in the final state, by the entry's id, oldest first.

        The entries are the reposts and the listed posts. Reposted posts are never deleted in the demo world.
        """
        posts = self.posts()
        entries: dict[int, int] = {}
        for event in self.events:
            if isinstance(event.body, Reposted):
                entries[event.number] = event.body.user
            elif event.number in posts and posts[event.number].listed:
                entries[event.number] = posts[event.number].author
        return entries

    def home(self, viewer: int) -> list[int]:
        """Return the ids of the entries of a user's final home timeline, newest first, computed from the events."""
        authors = {followee for follower, followee in self.follows() if follower == viewer} | {viewer}
        return [entry for entry, author in reversed(self.entries().items()) if author in authors]


def spread_apart(times: Iterable[datetime], lane: int = 0, lanes: int = 1) -> Iterator[datetime]:
    """Yield ascending times, each shifted as little as possible so that no two share a millisecond.

    With several lanes, the times of one lane also differ from those of all other lanes.
    """
    step = lanes * MILLISECOND
    last = EPOCH - step
    for time in times:
        last = max(last + step, EPOCH + (time - EPOCH) // step * step + lane * MILLISECOND)
        yield last


def random_numbers(purpose: str, seed: int) -> Random:
    """Return a generator of random numbers for one purpose, independent of the numbers drawn for other purposes."""
    return Random(f"{seed} {purpose}")  # noqa: S311 - generated data must be reproducible, not secret
