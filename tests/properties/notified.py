"""The model of notifications: the actions of users as plain sets, and the list that each user must get."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    Liked,
    NotificationsRead,
    PostDeleted,
    PostPublished,
    Reposted,
    Unblocked,
    Unfollowed,
    Unliked,
    Unreposted,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted
from graph.model import EPOCH_MS, SEQUENCE_BITS

DAY_MS = 86_400_000
NEWEST = 10
"""The number of users of a group is exact up to this number of entries."""


class Entry(NamedTuple):
    """An entry of a list. `size`, the number of users, is None if only the graph knows it."""

    kind: str
    subject: int
    number: int
    is_read: bool
    actors: tuple[int, ...]
    size: int | None


class Written(NamedTuple):
    """A post."""

    author: int
    repost_of: int | None


@dataclass
class Notified:
    """All actions, and the notifications that result. A list keeps the newest `kept` groups.

    Pairs have the numbers of their events. `groups` has the newest number of each group of each user, whether it is
    shown or not.
    """

    kept: int
    follows: dict[tuple[int, int], int] = field(default_factory=dict)
    likes: dict[tuple[int, int], int] = field(default_factory=dict)
    reposts: dict[tuple[int, int], int] = field(default_factory=dict)
    posts: dict[int, Written] = field(default_factory=dict)
    mutes: set[tuple[int, int]] = field(default_factory=set)
    blocks: set[tuple[int, int]] = field(default_factory=set)
    suspended: set[int] = field(default_factory=set)
    groups: dict[int, dict[tuple[str, int], int]] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event], kept: int) -> "Notified":
        """Return the model after events, applied in the order of the log. Some are void because others came first."""
        model = cls(kept)
        for event in sorted(events, key=lambda event: event.number):
            model.apply(event)
        return model

    def apply(self, event: Event) -> None:
        """Apply an event. Even a void event moves its group up: it may have been projected before the other event."""
        number = event.number
        match event.body:
            case Followed(user, other) as body:
                self.follow(user, other, number, renewed=body.renewed)
                if self.are_apart(user, other):
                    del self.follows[user, other]
            case Unfollowed(user, other):
                self.follows.pop((user, other), None)
            case Liked(user, post, author) as body:
                self.likes[user, post] = number
                self.notify(author, user, "LIKE", post, number, renewed=body.renewed)
            case Unliked(user, post):
                self.likes.pop((user, post), None)
            case Reposted(user, post, author) as body:
                self.reposts[user, post] = number
                self.notify(author, user, "REPOST", post, number, renewed=body.renewed)
            case Unreposted(user, post):
                self.reposts.pop((user, post), None)
            case PostPublished(author) as body:
                targets = ("REPLY", body.reply_to_author), ("QUOTE", body.repost_of_author)
                reasons = [(kind, {user}) for kind, user in targets if user is not None]
                self.write(author, number, body.repost_of, [*reasons, ("MENTION", {*body.mentions})])
            case PostDeleted(post=post):
                self.posts.pop(post, None)
            case Muted(user, other):
                self.mutes.add((user, other))
            case Unmuted(user, other):
                self.mutes.discard((user, other))
            case Blocked(user, other):
                self.block(user, other)
            case Unblocked(user, other):
                self.blocks.discard((user, other))
            case UserSuspended(user) | UserDeleted(user):
                self.suspended.add(user)
            case UserUnsuspended(user):
                self.suspended.discard(user)
            case NotificationsRead(user, up_to):
                self.read(user, min(up_to, number))
            case _:
                pass

    def are_apart(self, user: int, other: int) -> bool:
        """Return whether a block stands between two users."""
        return bool({(user, other), (other, user)} & self.blocks)

    def follow(self, user: int, other: int, number: int, *, renewed: bool) -> None:
        """A user followed another user."""
        self.follows[user, other] = number
        self.notify(other, user, "FOLLOW", day(number), number, renewed=renewed)

    def like(self, user: int, post: int, number: int, *, renewed: bool) -> None:
        """A user liked a post."""
        self.likes[user, post] = number
        self.notify(self.posts[post].author, user, "LIKE", post, number, renewed=renewed)

    def repost(self, user: int, post: int, number: int, *, renewed: bool) -> None:
        """A user reposted a post without adding a text."""
        self.reposts[user, post] = number
        self.notify(self.posts[post].author, user, "REPOST", post, number, renewed=renewed)

    def publish(self, user: int, number: int, parent: int | None, original: int | None, mentioned: set[int]) -> None:
        """A user published a post. Each user is notified for the first reason that applies."""
        reasons = [("REPLY", {self.posts[parent].author} if parent else set())]
        reasons += [("QUOTE", {self.posts[original].author} if original else set())]
        reasons += [("MENTION", {other for other in mentioned if not self.are_apart(user, other)})]
        self.write(user, number, original, reasons)

    def write(self, user: int, number: int, original: int | None, reasons: list[tuple[str, set[int]]]) -> None:
        """A user wrote a post that concerns users for these reasons. For each user, the first reason counts."""
        self.posts[number] = Written(user, original)
        told: set[int] = set()
        for kind, users in reasons:
            for other in users - told:
                self.notify(other, user, kind, number, number)
            told |= users

    def notify(self, recipient: int, user: int, kind: str, subject: int, number: int, *, renewed: bool = False) -> None:
        """A user did something that concerns another user. A `renewed` action does not notify again."""
        if recipient != user and not renewed:
            self.groups.setdefault(recipient, {})[kind, subject] = number

    def delete(self, post: int) -> None:
        """A post was deleted."""
        del self.posts[post]

    def read(self, user: int, up_to: int) -> None:
        """A user read everything up to a number. The mark never goes back."""
        self.marks[user] = max(up_to, self.marks.get(user, 0))

    def block(self, user: int, other: int) -> None:
        """A user blocked another user, which ends the follows between them."""
        self.blocks.add((user, other))
        for pair in ((user, other), (other, user)):
            self.follows.pop(pair, None)

    def entries(self, viewer: int) -> list[Entry]:
        """Return what a user's list shows, newest first."""
        newest = sorted(self.groups.get(viewer, {}).items(), key=lambda item: -item[1])[: self.kept]
        return [entry for (kind, subject), number in newest for entry in self._shown(viewer, kind, subject, number)]

    def _shown(self, viewer: int, kind: str, subject: int, number: int) -> Iterator[Entry]:
        if kind != "FOLLOW" and subject not in self.posts:
            return
        read = number <= self.marks.get(viewer, 0)
        silenced = {other for user, other in self.mutes if user == viewer} | {viewer}
        silenced |= {user for pair in self.blocks for user in pair if viewer in pair} | self.suspended
        users = [user for user in self._actors(viewer, kind, subject) if user not in silenced]
        if users:
            entries = sum(post == subject for _, post in self.reposts) if kind == "REPOST" else 0
            yield Entry(kind, subject, number, read, tuple(users), None if entries > NEWEST else len(users))

    def _actors(self, viewer: int, kind: str, subject: int) -> list[int]:
        """Return the users of a group, those who acted last first."""
        if kind == "FOLLOW":
            found = {user: at for (user, other), at in self.follows.items() if other == viewer and day(at) == subject}
        elif kind in ("LIKE", "REPOST"):
            pairs = self.likes if kind == "LIKE" else self.reposts
            found = {user: at for (user, post), at in pairs.items() if post == subject}
        else:
            return [self.posts[subject].author]
        return sorted(found, key=lambda user: -found[user])


def day(number: int) -> int:
    """Return the day of an event in UTC, as days since 1970."""
    return ((number >> SEQUENCE_BITS) + EPOCH_MS) // DAY_MS
