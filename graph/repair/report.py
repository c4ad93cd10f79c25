"""The report of a repair: what was compared, the differences found, and how many were corrected."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from graph.store.commands import Command

MAX_EXAMPLES = 3

Correction: TypeAlias = Sequence[Command] | Callable[[], Awaitable[bool]]
"""Commands that run one after the other, the first of which replies 0 if the data has changed since the comparison; or
a function that returns whether the difference is corrected. Without commands, there is no correction."""


class Part(Enum):
    """A part of the data in the store, with its name in the report."""

    ACCOUNTS = "accounts"
    BLOCKS = "mutes and blocks"
    FOLLOWS = "follows"
    POSTS = "posts"
    PUBLIC = "the public timeline"
    LIKES = "likes"
    LISTS = "lists"
    NOTIFICATIONS = "notifications"
    HOMES = "home timelines"


class Kind(Enum):
    """A kind of difference: its part, the problem, and the correction."""

    PROFILE_WRONG = (Part.ACCOUNTS, "a field or permission of a profile is wrong", "set what the last event says")
    LOGIN_WRONG = (Part.ACCOUNTS, "a login is missing or wrong", "set the user and the password hash of the archive")
    SESSION_LIVE = (Part.ACCOUNTS, "a session that was logged out is live", "end the session")
    ACCOUNT_UNKNOWN = (Part.ACCOUNTS, "the archive does not know an account", "none: restore a backup of the archive")
    BLOCK_WRONG = (
        Part.BLOCKS,
        "a mute or a block is missing or wrong",
        "set what the last event says, and delete the home cache",
    )
    LIST_WRONG = (Part.LISTS, "a list, its name or a member is missing or wrong", "set what the last event says")
    FOLLOW_WRONG = (
        Part.FOLLOWS,
        "a follow or an unfollow is missing or wrong in the list of followees or followers",
        "set what the last event says, and delete the follower's home cache",
    )
    FLOOR_WRONG = (
        Part.POSTS,
        "the archive floor of a timeline is missing, or most of the posts above it are",
        "set the floor below the author's newest posts",
    )
    POST_UNLISTED = (Part.POSTS, "a post is missing or misplaced in a timeline or another list", "list the post")
    POST_LISTED = (
        Part.POSTS,
        "a timeline or another list has a post that is deleted, below the archive floor, or not in this list",
        "remove the post from the list",
    )
    RECORD_WRONG = (Part.POSTS, "the record of a post is missing or wrong", "write the record that the archive holds")
    RECORD_LEFT = (
        Part.POSTS,
        "a post that is deleted or below the archive floor has a record",
        "write a tombstone, or delete the record of the archived post",
    )
    POST_UNKNOWN = (
        Part.POSTS,
        "the archive does not know a post",
        "add the post to the archive; if it cannot be read, remove it from the store",
    )
    DELETION_UNKNOWN = (Part.POSTS, "the archive does not know a deletion", "delete the post again")
    REPOST_WRONG = (
        Part.POSTS,
        "what a user has reposted is missing or wrong",
        "set what the last event says",
    )
    REPOST_LEFT = (Part.POSTS, "a repost is left of a deleted post", "take the repost back")
    COUNT_WRONG = (Part.POSTS, "the count of an author's archived posts is wrong", "set the count of the archive")
    LENGTH_WRONG = (Part.POSTS, "a number of replies or reposts is wrong", "count them again")
    PUBLIC_WRONG = (
        Part.PUBLIC,
        "a post is missing on the public timeline of the archive, or there by mistake",
        "add or remove it as the events say",
    )
    SUSPENSION_WRONG = (
        Part.PUBLIC,
        "the archive does not note the newest decision about a suspension",
        "note it; the worker then moves the user's posts",
    )
    LIKE_WRONG = (
        Part.LIKES,
        "a like is missing or wrong, among the likes of its post or among those of its user",
        "set what the last event says, and count the likes again",
    )
    LIKE_FLOOR_WRONG = (
        Part.LIKES,
        "the archive floor of likes is missing, or most of the likes above it are",
        "set the floor below the newest likes",
    )
    LIKE_COUNT_WRONG = (Part.LIKES, "a number of likes is wrong", "count the likes again")
    LIKE_LEFT = (Part.LIKES, "likes are left of a deleted post", "remove them")
    NOTIFICATION_WRONG = (
        Part.NOTIFICATIONS,
        "a notification is missing, misplaced or without an event, or a list that is not full has dropped some",
        "set what the events say",
    )
    READ_MARK_WRONG = (
        Part.NOTIFICATIONS,
        "notifications that were read count as unread",
        "set how far they were read",
    )
    CACHE_WRONG = (
        Part.HOMES,
        "a home cache is malformed, lacks a post, or includes an author whom the viewer does not follow",
        "delete the cache; the next read rebuilds it",
    )

    @property
    def part(self) -> Part:
        """The part of the data."""
        return self.value[0]

    @property
    def problem(self) -> str:
        """The problem, as a clause without a full stop."""
        return self.value[1]

    @property
    def correction(self) -> str:
        """The correction, as a clause in the imperative."""
        return self.value[2]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the subject to compare again, the element that differs, and a text with the ids."""

    kind: Kind
    subject: int
    element: int | str
    text: str
    correction: Correction = ()

    @property
    def identity(self) -> tuple[Kind, int, int | str]:
        """What a second comparison must find again."""
        return self.kind, self.subject, self.element


@dataclass(slots=True)
class Report:
    """The result of a repair that compared events up to `upto`, while the log ended at `last`.

    `corrects` is False for a check. `examples` holds the texts of the first differences of each kind.
    """

    upto: int
    last: int
    corrects: bool
    compared: Counter[Part] = field(default_factory=Counter)
    found: Counter[Kind] = field(default_factory=Counter)
    corrected: Counter[Kind] = field(default_factory=Counter)
    examples: defaultdict[Kind, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, differences: Sequence[Difference], outcomes: Sequence[bool]) -> None:
        """Count differences, and those that were corrected."""
        for difference, corrected in zip(differences, outcomes, strict=True):
            self.found[difference.kind] += 1
            self.corrected[difference.kind] += corrected
            if len(self.examples[difference.kind]) < MAX_EXAMPLES:
                self.examples[difference.kind].append(difference.text)

    def found_in(self, part: Part) -> int:
        """Return the number of differences in one part."""
        return sum(count for kind, count in self.found.items() if kind.part is part)

    def corrected_in(self, part: Part) -> int:
        """Return the number of corrected differences in one part."""
        return sum(count for kind, count in self.corrected.items() if kind.part is part)

    @property
    def clean(self) -> bool:
        """Whether no difference is left."""
        return self.found.total() == self.corrected.total()
