"""The report of a repair: what was compared, the differences found, and how many were corrected."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

S = TypeVar("S")

MAX_EXAMPLES = 3

Correction: TypeAlias = Callable[[], Awaitable[bool]]
"""Corrects a difference, unless the data has changed in the meantime. Returns whether the difference is gone."""


class Part(Enum):
    """A part of the derived data, with its name in the report."""

    ACCOUNTS = "accounts"
    FOLLOWS = "follows"
    POSTS = "posts"
    ARCHIVE = "archived posts"
    COUNTS = "counts of archived posts"
    HOMES = "home timelines"


class Kind(Enum):
    """A kind of difference: its part, the problem, and the correction."""

    PROFILE_INCOMPLETE = (
        Part.ACCOUNTS,
        "the profile of a login is missing or incomplete",
        "restore the profile from the sign-up event, if the log still has it",
    )
    LOGIN_MISMATCH = (
        Part.ACCOUNTS,
        "the login of a profile does not exist or belongs to another user",
        "none: the data does not show which user is right",
    )
    PERMISSION_NOT_APPLIED = (
        Part.ACCOUNTS,
        "a logged change of a permission is missing in the account",
        "project the event again",
    )
    FOLLOWER_MISSING = (
        Part.FOLLOWS,
        "a follower is missing in the followee's list of followers",
        "add the follower and delete the follower's home cache",
    )
    FOLLOWEE_MISSING = (
        Part.FOLLOWS,
        "a followee is missing in the follower's list of followees",
        "add the followee and delete the follower's home cache",
    )
    UNFOLLOW_ONE_SIDED = (
        Part.FOLLOWS,
        "an unfollow has changed only one of the two lists",
        "apply the unfollow to the other list",
    )
    FOLLOW_NUMBERS_DIFFER = (
        Part.FOLLOWS,
        "a follow has different numbers in the two lists",
        "set the higher number in both lists",
    )
    FOLLOW_NOT_APPLIED = (
        Part.FOLLOWS,
        "a logged follow or unfollow is missing in both lists",
        "project the event again",
    )
    RECORD_MISSING = (
        Part.POSTS,
        "a listed post has no record",
        "restore the record from the archive or the log",
    )
    POST_LOST = (
        Part.POSTS,
        "a listed post exists neither in the store, nor in the archive, nor in the log",
        "remove the post from the timeline; its content is lost",
    )
    RECORD_DAMAGED = (
        Part.POSTS,
        "the record of a post is damaged",
        "restore the record from the archive or the log, if one of them still has the post",
    )
    POST_UNLISTED = (
        Part.POSTS,
        "a post is missing in its author's timeline",
        "add the post to the timeline",
    )
    DELETED_POST_LISTED = (Part.POSTS, "a timeline lists a deleted post", "remove the post from the timeline")
    WRONG_AUTHOR_LISTED = (
        Part.POSTS,
        "a timeline lists a post by another author",
        "remove the post from the timeline",
    )
    ARCHIVED_POST_LISTED = (
        Part.POSTS,
        "a timeline lists a post below its archive floor",
        "add the post to the archive if it is missing there, and remove it from the timeline",
    )
    WRONG_POSITION = (
        Part.POSTS,
        "a timeline lists a post in the wrong position",
        "move the post to its position",
    )
    DELETED_POST_HAS_RECORD = (
        Part.POSTS,
        "a deleted post still has a record",
        "replace the record with a tombstone",
    )
    ARCHIVED_POST_HAS_RECORD = (Part.POSTS, "an archived post still has a record in the store", "delete the record")
    POST_NOT_APPLIED = (
        Part.POSTS,
        "a logged post is missing in the store and in the archive",
        "project the event again",
    )
    DELETION_NOT_APPLIED = (Part.POSTS, "a logged deletion was not applied", "project the event again")
    STORE_FLOOR_LOW = (
        Part.ARCHIVE,
        "the archive floor of a timeline is missing, or below the archive's own floor",
        "set the floor again",
    )
    ARCHIVE_FLOOR_LOW = (
        Part.ARCHIVE,
        "the archive's floor of an author is below the floor in the store",
        "raise the archive's floor; missing rows are lost",
    )
    MOVE_UNFINISHED = (
        Part.ARCHIVE,
        "a move to the archive is unfinished and not scheduled",
        "schedule the author for the archiver",
    )
    ROW_MISSING = (Part.ARCHIVE, "a post has no row in the archive", "add the row from the post's record")
    DELETED_POST_HAS_ROW = (Part.ARCHIVE, "the archive holds a deleted post", "delete the row")
    ROW_ORPHANED = (
        Part.ARCHIVE,
        "the archive holds a post that is missing in the store",
        "restore the record and add the post to its author's timeline",
    )
    COUNT_WRONG = (
        Part.COUNTS,
        "the count of an author's archived posts is wrong",
        "set the count to the number of rows",
    )
    CACHE_MALFORMED = (Part.HOMES, "a home cache is malformed", "delete the cache; the next read rebuilds it")
    CACHE_POST_MISSING = (
        Part.HOMES,
        "a post is missing in a home cache",
        "delete the cache; the next read rebuilds it",
    )
    CACHE_AUTHOR_NOT_FOLLOWED = (
        Part.HOMES,
        "a home cache includes an author whom the viewer does not follow",
        "delete the cache; the next read rebuilds it",
    )
    CACHE_MARK_MISSING = (
        Part.HOMES,
        "a home cache has no mark for an author whose posts are not pushed",
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
class Difference(Generic[S]):
    """One difference: its subject, a text with the ids, and its correction, or None if there is none."""

    kind: Kind
    subject: S
    text: str
    correct: Correction | None = None


@dataclass(slots=True)
class Report:
    """The result of a repair that compared events up to `watermark`, while the log ended at `last`.

    `corrects` is False for a check. `archive_error` is the reason why the archive was not compared, if any. `examples`
    holds the texts of the first differences of each kind.
    """

    watermark: int
    last: int
    corrects: bool
    archive_error: str = ""
    compared: Counter[Part] = field(default_factory=Counter)
    found: Counter[Kind] = field(default_factory=Counter)
    corrected: Counter[Kind] = field(default_factory=Counter)
    examples: defaultdict[Kind, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, differences: Sequence[Difference[S]], outcomes: Sequence[bool]) -> None:
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
        """Whether everything was compared and no difference is left."""
        return not self.archive_error and self.found.total() == self.corrected.total()
