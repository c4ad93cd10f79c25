"""What a repair has to tell: what was compared, what differed and how, and what was mended."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

S = TypeVar("S")

EXAMPLES = 3

Cure: TypeAlias = Callable[[], Awaitable[bool]]
"""Mends a difference, unless it has gone or changed meanwhile; tells whether it is gone now."""


class Part(Enum):
    """What is compared, as a person would name it."""

    ACCOUNTS = "accounts"
    FOLLOWS = "follows"
    POSTS = "posts"
    ARCHIVE = "archived posts"
    COUNTS = "counts of archived posts"
    HOMES = "home timelines"


class Kind(Enum):
    """A kind of difference: the part it belongs to, what is wrong, and what mending does about it."""

    PROFILE = (
        Part.ACCOUNTS,
        "a login leads to a profile that is missing or incomplete",
        "what the log still tells of the sign-up is written again",
    )
    LOGIN = (
        Part.ACCOUNTS,
        "a profile's login leads nowhere, or to somebody else",
        "nothing: no data tells who is right",
    )
    FORGOTTEN_PERMISSION = (
        Part.ACCOUNTS,
        "the log tells of a permission granted or revoked that the account does not know",
        "its event is projected again",
    )
    FOLLOWER = (
        Part.FOLLOWS,
        "somebody follows, but is missing among the followers",
        "the follower is added, and the home cache forgotten",
    )
    FOLLOWING = (
        Part.FOLLOWS,
        "a follower's own list lacks the follow",
        "the follow is added, and the home cache forgotten",
    )
    UNFOLLOWED = (Part.FOLLOWS, "a follow is undone on one side only", "it is undone on the other side too")
    FOLLOW_NUMBER = (Part.FOLLOWS, "a follow has two numbers", "the higher one is set on both sides")
    FORGOTTEN_FOLLOW = (
        Part.FOLLOWS,
        "the log tells of a follow or unfollow that neither side knows",
        "its event is projected again",
    )
    RECORD = (
        Part.POSTS,
        "a timeline lists a post that has no record",
        "the record is written again, from the archive or the log",
    )
    LOST = (
        Part.POSTS,
        "a timeline lists a post of which nothing is left",
        "the post is lost: it is taken out of the timeline",
    )
    UNREADABLE = (
        Part.POSTS,
        "a post's record is damaged",
        "it is written again, if the archive or the log still holds the post",
    )
    UNLISTED = (Part.POSTS, "a post is missing from its author's timeline", "it is put back")
    LISTED_DELETED = (Part.POSTS, "a timeline lists a deleted post", "the post is taken out")
    LISTED_FOREIGN = (Part.POSTS, "a timeline lists somebody else's post", "the post is taken out")
    LISTED_ARCHIVED = (
        Part.POSTS,
        "a timeline lists a post from below its archive floor",
        "it is left to the archive, and put there if need be",
    )
    MISPLACED = (Part.POSTS, "a timeline lists a post in a wrong place", "it is put in its place")
    RESURRECTED = (Part.POSTS, "a deleted post has its record back", "the record is replaced by its tombstone")
    LEFTOVER = (Part.POSTS, "an archived post has a record in the store", "the record is freed")
    FORGOTTEN_POST = (Part.POSTS, "the log tells of a post that is nowhere", "its event is projected again")
    FORGOTTEN_DELETION = (Part.POSTS, "the log tells of a deletion that left no mark", "its event is projected again")
    FLOOR = (
        Part.ARCHIVE,
        "a timeline's archive floor is missing, or below what the archive has noted",
        "the floor is set again",
    )
    BEHIND = (
        Part.ARCHIVE,
        "the archive knows less of an author than the store has moved to it",
        "the archive's floor is raised; rows that are gone are lost",
    )
    UNFINISHED = (
        Part.ARCHIVE,
        "a move into the archive broke off, and nobody would take it up",
        "it is noted for the archiver",
    )
    ROW = (Part.ARCHIVE, "a post is missing in the archive", "its row is added from its record")
    DELETED_ROW = (Part.ARCHIVE, "the archive holds a deleted post", "its row is deleted")
    STRAY_ROW = (
        Part.ARCHIVE,
        "only the archive still holds a post that should be in the store",
        "the post is put back into its author's timeline",
    )
    COUNT = (Part.COUNTS, "the count of an author's archived posts is wrong", "it is set to what the archive holds")
    CACHE_BROKEN = (Part.HOMES, "a home cache is malformed", "it is forgotten; the next read builds it")
    CACHE_LACKS = (Part.HOMES, "a home cache lacks a post", "it is forgotten; the next read builds it")
    CACHE_STRANGER = (
        Part.HOMES,
        "a home cache holds or merges somebody who is not followed",
        "it is forgotten; the next read builds it",
    )
    CACHE_UNMARKED = (
        Part.HOMES,
        "a home cache does not merge an author whom fan-out leaves out",
        "it is forgotten; the next read builds it",
    )

    @property
    def part(self) -> Part:
        """What it belongs to."""
        return self.value[0]

    @property
    def wrong(self) -> str:
        """What is wrong, as half a sentence."""
        return self.value[1]

    @property
    def remedy(self) -> str:
        """What mending does about it, as half a sentence."""
        return self.value[2]


@dataclass(frozen=True, slots=True)
class Difference(Generic[S]):
    """One thing that differs: which subject, with which ids, and how to mend it, or None if nothing can."""

    kind: Kind
    subject: S
    what: str
    cure: Cure | None = None


@dataclass(slots=True)
class Report:
    """What was compared, up to the watermark `upto` of a log that ended at `last`.

    `skipped` says why the archive was left out, if it was. `examples` are a few of each kind, with ids.
    """

    upto: int
    last: int
    mending: bool
    skipped: str = ""
    compared: Counter[Part] = field(default_factory=Counter)
    found: Counter[Kind] = field(default_factory=Counter)
    mended: Counter[Kind] = field(default_factory=Counter)
    examples: defaultdict[Kind, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, differences: Sequence[Difference[S]], cured: Sequence[bool]) -> None:
        """Count differences, and those of them that were mended."""
        for difference, mended in zip(differences, cured, strict=True):
            self.found[difference.kind] += 1
            self.mended[difference.kind] += mended
            if len(self.examples[difference.kind]) < EXAMPLES:
                self.examples[difference.kind].append(difference.what)

    def differed(self, part: Part) -> int:
        """Count the differences of one part."""
        return sum(count for kind, count in self.found.items() if kind.part is part)

    def cured(self, part: Part) -> int:
        """Count the mended differences of one part."""
        return sum(count for kind, count in self.mended.items() if kind.part is part)

    @property
    def clean(self) -> bool:
        """Whether all was compared, and nothing differs any more."""
        return not self.skipped and self.found.total() == self.mended.total()
