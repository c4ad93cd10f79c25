"""Groups of notifications, as records and as members of the sorted set that each recipient has.

A group is a kind and a subject: the post that was liked or reposted, the new post that replies, mentions or quotes, or
the day on which users followed. The number of a group is the number of its newest event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from graph.model import EPOCH_MS, SEQUENCE_BITS, Post

DAY_MS = 86_400_000
DEFAULT_ACTORS = 3
MAX_ACTORS = 10
"""The maximum number of acting users that are looked up for one group."""


class NotificationKind(Enum):
    """What a notification is about. The values are part of the store, the archive and global ids."""

    FOLLOW = 1
    REPLY = 2
    MENTION = 3
    QUOTE = 4
    REPOST = 5
    LIKE = 6

    __hash__ = object.__hash__  # faster than that of Enum, which runs in Python


NAMES = {kind: kind.name.lower() for kind in NotificationKind}
KINDS = {name: kind for kind, name in NAMES.items()}
CODES = {kind.value: kind for kind in NotificationKind}


class Group(NamedTuple):
    """A kind of notification and its subject: the id of a post, or for follows the day (`day_of`)."""

    kind: NotificationKind
    subject: int

    @property
    def member(self) -> str:
        """The member of the recipient's sorted set, such as `like:4711`."""
        return f"{NAMES[self.kind]}:{self.subject}"


class Notification(NamedTuple):
    """A group of notifications of one user, with its number and the newest of the acting users.

    `actors_count` is the number of all acting users. `post` is None for follows. Each kind has a subclass, which is
    the record of its GraphQL type.
    """

    recipient: int
    kind: NotificationKind
    subject: int
    number: int
    is_read: bool
    actors: tuple[int, ...]
    actors_count: int
    post: Post | None


class FollowNotification(Notification):
    """Users followed the recipient."""

    __slots__ = ()


class ReplyNotification(Notification):
    """A user replied to a post of the recipient."""

    __slots__ = ()


class MentionNotification(Notification):
    """A user mentioned the recipient in a post."""

    __slots__ = ()


class QuoteNotification(Notification):
    """A user quoted a post of the recipient."""

    __slots__ = ()


class RepostNotification(Notification):
    """Users reposted a post of the recipient."""

    __slots__ = ()


class LikeNotification(Notification):
    """Users liked a post of the recipient."""

    __slots__ = ()


TYPES: dict[NotificationKind, type[Notification]] = {
    NotificationKind.FOLLOW: FollowNotification,
    NotificationKind.REPLY: ReplyNotification,
    NotificationKind.MENTION: MentionNotification,
    NotificationKind.QUOTE: QuoteNotification,
    NotificationKind.REPOST: RepostNotification,
    NotificationKind.LIKE: LikeNotification,
}


@dataclass(frozen=True, slots=True)
class NotificationFeed:
    """All notifications of one user."""

    owner: int


new_group: Callable[[tuple[NotificationKind, int]], Group] = partial(tuple.__new__, Group)


def parse_member(member: str) -> Group | None:
    """Return the group that a member of the sorted set stands for; None for the floor and for unknown kinds."""
    name, _, subject = member.partition(":")
    kind = KINDS.get(name)
    return None if kind is None or not subject.isdecimal() else new_group((kind, int(subject)))


def group_of(code: int, subject: int) -> Group | None:
    """Return the group of the kind that has this code, with a subject; None for an unknown code."""
    kind = CODES.get(code)
    return None if kind is None else new_group((kind, subject))


def day_of(number: int) -> int:
    """Return the day of an event, as the number of days since 1970-01-01 in UTC."""
    return ((number >> SEQUENCE_BITS) + EPOCH_MS) // DAY_MS


def numbers_of_day(day: int) -> tuple[int, int]:
    """Return the lowest number that an event of a day can have, and the lowest number of the next day."""
    low, high = (((start * DAY_MS) - EPOCH_MS) << SEQUENCE_BITS for start in (day, day + 1))
    return max(0, low), max(0, high)
