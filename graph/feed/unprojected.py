"""The events that may not be projected yet, in the memory of a process.

A subscription loads projected state, such as the users that its viewer follows, and then applies the events that may be
missing from it. Before a client fetches a page again, its subscription projects the events that would be missing from
the page. With one copy of these events per process, both cost the same however far behind the workers are.
"""

import time
from array import array
from collections.abc import Collection
from dataclasses import dataclass, field

from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    ListChanged,
    ListCreated,
    ListDeleted,
    SessionsEnded,
    Unblocked,
    Unfollowed,
    author_of,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted

KEEP_SECONDS = 5.0  # a load during which events are forgotten may have to be repeated


def users_of(event: Event) -> tuple[int, ...]:
    """Return the users whose subscriptions must apply an event when they join."""
    match event.body:
        case Followed(user, _) | Unfollowed(user, _) | Muted(user, _) | Unmuted(user, _) | SessionsEnded(user, _):
            return (user,)
        case ListCreated(user) | ListChanged(user, _) | ListDeleted(user, _):
            return (user,)
        case Blocked(user, other) | Unblocked(user, other):
            return user, other
        case _:
            return ()


@dataclass(slots=True)
class Generation:
    """Unprojected events: the events of each user, the events that concern all users, and each author's post events.

    Post events are the bulk of a backlog and are rarely needed, so only their numbers are kept.
    """

    by_user: dict[int, list[Event]] = field(default_factory=dict)
    by_author: dict[int, "array[int]"] = field(default_factory=dict)
    of_all: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Add the next event of the log, if it decides what a timeline shows or whether a session is open."""
        author = author_of(event.body)
        if author is not None:
            self.by_author.setdefault(author, array("q")).append(event.number)
        elif isinstance(event.body, UserSuspended | UserUnsuspended | UserDeleted):
            self.of_all.append(event)
        else:
            for user in users_of(event):
                self.by_user.setdefault(user, []).append(event)

    def after(self, number: int) -> "Generation":
        """Return a copy that has only the events after a number."""
        return Generation(
            {user: [event for event in events if event.number > number] for user, events in self.by_user.items()},
            {
                author: array("q", [each for each in numbers if each > number])
                for author, numbers in self.by_author.items()
            },
            [event for event in self.of_all if event.number > number],
        )


class Unprojected:
    """The events after `since` that joins or refetched pages depend on. Events up to `watermark` are projected.

    Events are kept in two generations. The older one is forgotten when all of it is projected, but not before
    `KEEP_SECONDS` have passed. Memory: about 300 bytes per follow, mute, block or log-out, 8 bytes per event of a post,
    and 200 bytes per author of such events, for up to twice as many events as are not projected.
    """

    def __init__(self, since: int) -> None:
        self.since = self.watermark = since
        self._older = Generation()
        self._newer = Generation()
        self._end_of_older = since
        self._kept_since = time.monotonic()

    def add(self, event: Event) -> None:
        """Add the next event of the log."""
        self._newer.add(event)

    def start_after(self, number: int) -> None:
        """Forget the events up to a number, because retention has removed them: they are projected."""
        if number > self.since:
            self.since = self.watermark = self._end_of_older = number
            self._older, self._newer = self._older.after(number), self._newer.after(number)

    def note_watermark(self, watermark: int, head: int) -> None:
        """Record that the events up to `watermark` are projected, and that the last event added is not above `head`."""
        self.watermark = max(self.watermark, watermark)
        now = time.monotonic()
        if self.watermark >= self._end_of_older and now - self._kept_since >= KEEP_SECONDS:
            self.since, self._end_of_older, self._kept_since = self._end_of_older, head, now
            self._older, self._newer = self._newer, Generation()

    def of(self, user: int) -> list[Event]:
        """Return the follows, mutes, blocks and log-outs that concern a user, oldest first."""
        return [*self._older.by_user.get(user, ()), *self._newer.by_user.get(user, ())]

    def of_all(self) -> list[Event]:
        """Return the suspensions, ends of suspensions and deletions of all users, oldest first."""
        return [*self._older.of_all, *self._newer.of_all]

    def by_authors(self, authors: Collection[int]) -> list[int]:
        """Return the numbers of the events that create or end posts or reposts of these authors, lowest first."""
        found: list[int] = []
        for by_author in (self._older.by_author, self._newer.by_author):
            for author in authors:
                found += by_author.get(author, ())
        return sorted(found)
