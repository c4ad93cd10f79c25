"""The journal: every event that was ever appended, and the rows that the archive must hold for these events."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from graph.archive.rows import EventRow, without_texts
from graph.log.account_events import UserErased
from graph.log.encoding import Encoded, decode, encode
from graph.log.events import (
    Event,
    EventBody,
    Followed,
    Liked,
    PostDeleted,
    PostPublished,
    Reposted,
    Unfollowed,
    Unliked,
    Unreposted,
)
from graph.store.commands import Command

APPEND_ARGUMENTS = 8
"""The arguments of `append.lua` before those of the events."""


class Row(NamedTuple):
    """A row of the table `events`."""

    number: int
    kind: str
    actor: int
    subject: int | None
    body: str | None
    ended: int | None


class Journal:
    """All appended events by number, including those that a failover has lost.

    `rolled_back` are the events that a failover has removed from the log, and `lost` those that the archive does not
    hold either, as found when the graph is at rest. `late` are posts whose rows were created from their records,
    because the log had lost the events.
    """

    def __init__(self) -> None:
        self.encoded: dict[int, Encoded] = {}
        self.rolled_back: set[int] = set()
        self.lost: set[int] = set()
        self.late: set[int] = set()

    def note(self, command: Command, numbers: list[int]) -> None:
        """Note the events that an append command has added."""
        words = [str(word) for word in command[3 + int(command[2]) + APPEND_ARGUMENTS :]]
        for place, number in enumerate(numbers):
            kind, actor, subject, body = words[4 * place : 4 * place + 4]
            assert number not in self.encoded, f"the number {number} was assigned twice"
            self.encoded[number] = Encoded(kind, int(actor) if actor else None, int(subject) if subject else None, body)

    def event(self, number: int) -> Event:
        """Return an event."""
        return decode(number, *self.encoded[number])

    def events(self, but: Collection[int] = ()) -> list[Event]:
        """Return all events but those with the given numbers, in the order of their numbers."""
        return [self.event(number) for number in sorted(self.encoded) if number not in but]

    def has(self, kind: type[EventBody]) -> bool:
        """Return whether there was an event of a kind."""
        return any(each.kind == kind.__name__ for each in self.encoded.values())

    def lost_posts(self) -> list[int]:
        """Return the lost posts."""
        return [number for number in sorted(self.lost) if isinstance(self.event(number).body, PostPublished)]

    def erased(self) -> set[int]:
        """Return the users who are erased."""
        return {each.actor for each in self.encoded.values() if each.kind == UserErased.__name__ and each.actor}

    def rows(self) -> dict[int, Row]:
        """Return the rows that the archive must hold, by number."""
        kept = self.events(but=self.lost)
        deleted = {event.body.post for event in kept if isinstance(event.body, PostDeleted)}
        last = {
            (event.body.user, event.body.post): event.number
            for event in kept
            if isinstance(event.body, Reposted | Unreposted)
        }
        erased = self.erased()
        unfollowed = [event for event in kept if isinstance(event.body, Unfollowed)]
        rows = {}
        for event in kept:
            kind, actor, subject, body = self.encoded[event.number]
            row = Row(event.number, kind, event.number if actor is None else actor, subject, body, None)
            match event.body:
                case PostPublished() if event.number in deleted:
                    row = row._replace(kind="Redacted", body=None)
                case Reposted(user, original) if last[user, original] > event.number:
                    row = row._replace(kind="Redacted", body=None)
                case PostDeleted():
                    row = row._replace(body=encode(replace(event.body, terms=None, notified=())).body)
                case Followed(follower, followee):
                    undone = (
                        other.number
                        for other in unfollowed
                        if other.body == Unfollowed(follower, followee) and other.number > event.number
                    )
                    row = row._replace(ended=min(undone, default=None))
                case Liked(user, post):
                    ended = min(self._changes_of(kept, user, post, event.number), default=None)
                    row = row._replace(kind=kind if ended is None else "EndedLike", ended=ended)
                case _:
                    pass
            rows[event.number] = emptied(row) if row.actor in erased else row
        return rows

    def _changes_of(self, events: Collection[Event], user: int, post: int, after: int) -> list[int]:
        """Return the numbers, above `after`, of a user's likes and unlikes of a post."""
        return [
            event.number
            for event in events
            if isinstance(event.body, Liked | Unliked)
            and (event.body.user, event.body.post) == (user, post)
            and event.number > after
        ]


def emptied(row: Row) -> Row:
    """Return a row without its texts."""
    return row._replace(body=without_texts(EventRow(*row[:5])).body)
