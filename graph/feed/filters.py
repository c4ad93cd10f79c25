"""Filters of update streams: what they ask for, and what it means for an event to match one.

The fields of a filter are joined by AND, the entries of a list by OR, the words of a keyword by AND.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from graph.errors import BadFilter
from graph.log.events import Event, Followed, PostDeleted, PostPublished, Unfollowed
from graph.terms import UNSEEN, HashedTerms, Keyword, Terms, keyword_of, terms_in, terms_of
from graph.validation import DECOMPOSED, MAX_MARKS, has_many_marks

MAX_USERS = 3000
MAX_KEYWORDS = 400
MAX_KEYWORD_TERMS = 2000  # of all keywords together
MAX_WORDS = 25
MAX_WORD_LENGTH = 60
MAX_ENTRY = DECOMPOSED * MAX_WORDS * (MAX_WORD_LENGTH + 2)
"""Characters of an entry before it is folded: every word at its longest and decomposed, with its `#` and a space."""
BOX_TERMS = 16  # the most grid cells that a box takes
SHOWN_LENGTH = 40
SHARE_BITS = 53  # as many as a float holds exactly


class EventKind(Enum):
    """What an update stream tells of; the names are part of the GraphQL contract."""

    POST_PUBLISHED = "POST_PUBLISHED"
    POST_DELETED = "POST_DELETED"
    USER_FOLLOWED = "USER_FOLLOWED"
    USER_UNFOLLOWED = "USER_UNFOLLOWED"


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the earth between two latitudes and two longitudes, in degrees, edges included.

    With `west` greater than `east` it crosses the antimeridian.
    """

    south: float
    west: float
    north: float
    east: float

    def contains(self, latitude: float, longitude: float) -> bool:
        """Tell whether a place lies in the box. The antimeridian is one line, whether called 180 or -180."""
        if not self.south <= latitude <= self.north:
            return False
        return self._spans(longitude) or (abs(longitude) == 180 and self._spans(-longitude))

    def _spans(self, longitude: float) -> bool:
        if self.west <= self.east:
            return self.west <= longitude <= self.east
        return longitude >= self.west or longitude <= self.east


class Traits:
    """What filters look at in an event that streams tell of.

    `people` are the author, or both sides of a follow. A deletion never says where the post was written, so it matches
    every box. A deletion without a digest, as older versions wrote them, is `vague`: it matches every keyword, too.
    """

    __slots__ = ("_event", "_share", "_terms", "drawn_by", "kind", "people", "place", "vague")

    def __init__(self, kind: EventKind, people: tuple[int, ...], drawn_by: int) -> None:
        self.kind = kind
        self.people = people
        self.drawn_by = drawn_by
        self.vague = False
        self.place: tuple[float, float] | None = None
        self._event: PostPublished | PostDeleted | None = None
        self._terms: Terms | HashedTerms | None = None
        self._share: float | None = None

    @classmethod
    def of(cls, event: Event) -> "Traits | None":
        """Look at an event; None if streams do not tell of it."""
        update = event.body
        if isinstance(update, PostPublished):
            traits = cls(EventKind.POST_PUBLISHED, (update.author,), event.number)
        elif isinstance(update, PostDeleted):
            traits = cls(EventKind.POST_DELETED, (update.author,), update.post)
            traits.vague = update.terms is None
        elif isinstance(update, Followed | Unfollowed):
            kind = EventKind.USER_FOLLOWED if isinstance(update, Followed) else EventKind.USER_UNFOLLOWED
            return cls(kind, (update.follower, update.followee), event.number)
        else:
            return None
        traits._event = update
        if isinstance(update, PostPublished) and update.latitude is not None and update.longitude is not None:
            traits.place = (update.latitude, update.longitude)
        return traits

    @property
    def terms(self) -> Terms | HashedTerms | None:
        """The terms of the post, found once; None for what has no text, or a vague one."""
        if self._terms is None and self._event is not None and not self.vague:
            update = self._event
            self._terms = terms_of(update.text) if isinstance(update, PostPublished) else terms_in(update.terms or "")
        return self._terms

    @property
    def is_post(self) -> bool:
        """Whether the event is about a post, published or deleted."""
        return self._event is not None

    @property
    def share(self) -> float:
        """Where the event falls from 0 to below 1, by a stable hash: those below `sample` belong to a sample."""
        if self._share is None:
            self._share = share_of(self.drawn_by)
        return self._share

    def has_any(self, keywords: Collection[Keyword]) -> bool:
        """Tell whether the post has one of these keywords."""
        terms = self.terms
        return self.vague or (terms is not None and any(terms.contain(keyword) for keyword in keywords))

    def lies_in(self, box: Box) -> bool:
        """Tell whether the post was written in this box, as far as that may be told."""
        return self.kind is EventKind.POST_DELETED or (self.place is not None and box.contains(*self.place))


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which updates a stream tells of; a field that is None asks for nothing in particular.

    Follows match `users` on either side, and never `keywords` or `within`. A post and its deletion fall into the same
    samples. A deletion matches every box. `of` checks what clients ask for. The users are distinct and sorted, in a
    tuple, which takes a tenth of the memory of a set.
    """

    users: tuple[int, ...] | None = None
    keywords: frozenset[Keyword] | None = None
    within: Box | None = None
    sample: float | None = None
    firehose: bool = False
    kinds: frozenset[EventKind] | None = None

    @classmethod
    def of(
        cls,
        *,
        users: Sequence[int] | None = None,
        keywords: Sequence[str] | None = None,
        within: Box | None = None,
        sample: float | None = None,
        firehose: bool = False,
        kinds: Sequence[EventKind] | None = None,
    ) -> "EventFilter":
        """Check what a client asks for and make it a filter.

        Raises BadFilter, naming the field: a list that is empty or too long, a keyword without a word or with too many
        or too long ones, a box or sample out of range, or nothing chosen at all without `firehose`.
        """
        if users is None and keywords is None and within is None and not firehose:
            raise BadFilter("Choose by 'users', 'keywords' or 'within', or ask for everything with 'firehose: true'.")
        _check_length("users", users, MAX_USERS)
        _check_length("keywords", keywords, MAX_KEYWORDS)
        _check_length("kinds", kinds, None)
        if within is not None:
            _check_box(within)
        if sample is not None and not 0 < sample <= 1:
            raise BadFilter(f"'sample' must be above 0 and at most 1, not {sample}.")
        wanted = None if keywords is None else frozenset(map(_checked_keyword, keywords))
        _check_terms(wanted or ())
        return cls(
            users=None if users is None else tuple(sorted(set(users))),
            keywords=wanted,
            within=within,
            sample=None if sample == 1 else sample,
            firehose=firehose,
            kinds=None if kinds is None or set(kinds) == set(EventKind) else frozenset(kinds),
        )

    @property
    def terms(self) -> int:
        """How many entries the filter holds in memory, which is what budgets count.

        The sum of its users, the terms of its keywords (`graph.terms`), 16 for a box, and one.
        """
        return len(self.users or ()) + _terms_of(self.keywords or ()) + (BOX_TERMS if self.within else 0) + 1

    @property
    def reads_posts(self) -> bool:
        """Whether the filter depends on the content of posts: their words, or their place."""
        return self.keywords is not None or self.within is not None

    def matches(self, event: Event) -> bool:
        """Return True if a live stream with this filter tells of an event."""
        traits = Traits.of(event)
        return traits is not None and self.admits(traits)

    def may_match(self, event: Event) -> bool:
        """Return True if the filter matches an event when the words and places of posts are left aside.

        So the answer tells nothing about them.
        """
        traits = Traits.of(event)
        return traits is not None and self._selects(traits) and (traits.is_post or not self.reads_posts)

    def admits(self, traits: Traits) -> bool:
        """Return True if the filter matches an event with these traits."""
        return (
            self._selects(traits)
            and (self.within is None or traits.lies_in(self.within))
            and (self.keywords is None or traits.has_any(self.keywords))
        )

    def _selects(self, traits: Traits) -> bool:
        return (
            (self.kinds is None or traits.kind in self.kinds)
            and (self.users is None or any(_has(self.users, user) for user in traits.people))
            and (self.sample is None or traits.share < self.sample)
        )


def shortened(entry: str) -> str:
    """Cut what a client wrote to a length that fits into a message."""
    return entry if len(entry) <= SHOWN_LENGTH else entry[:SHOWN_LENGTH] + "…"


def share_of(number: int) -> float:
    """Hash a number to a share from 0 to below 1, evenly. The same in every process and version."""
    digest = hashlib.blake2b(number.to_bytes(8), digest_size=8).digest()
    return (int.from_bytes(digest) >> (64 - SHARE_BITS)) / (1 << SHARE_BITS)


def _has(users: Sequence[int], user: int) -> bool:
    at = bisect_left(users, user)
    return at < len(users) and users[at] == user


def _check_length(field: str, given: Sequence[object] | None, most: int | None) -> None:
    if given is None:
        return
    if not given:
        raise BadFilter(f"'{field}' must not be empty: name at least one, or leave the field out.")
    if most is not None and len(given) > most:
        raise BadFilter(f"'{field}' has {len(given)} entries; at most {most} are allowed.")


def _checked_keyword(entry: str) -> Keyword:
    named = f"The entry {shortened(entry)!r} of 'keywords'"
    if len(entry) > MAX_ENTRY:
        raise BadFilter(f"{named} has {len(entry)} characters; at most {MAX_ENTRY} are allowed.")
    if has_many_marks(UNSEEN.sub("", entry)):  # what is unseen is dropped, so it separates nothing
        raise BadFilter(f"{named} has more than {MAX_MARKS} combining characters in a row.")
    keyword = keyword_of(entry)
    words = (*keyword.words, *keyword.phrases)
    if not words:
        raise BadFilter(f"{named} has no word, hashtag or phrase to look for.")
    if len(words) > MAX_WORDS:
        raise BadFilter(f"{named} has {len(words)} words; at most {MAX_WORDS} are allowed.")
    longest = max(len(word.removeprefix("#")) for word in words)
    if longest > MAX_WORD_LENGTH:
        raise BadFilter(f"{named} has a word of {longest} characters; at most {MAX_WORD_LENGTH} are allowed.")
    return keyword


def _terms_of(keywords: Collection[Keyword]) -> int:
    return sum(len(keyword.terms()) for keyword in keywords)


def _check_terms(keywords: Collection[Keyword]) -> None:
    terms = _terms_of(keywords)
    if terms > MAX_KEYWORD_TERMS:
        raise BadFilter(
            f"'keywords' has {terms:,} terms; at most {MAX_KEYWORD_TERMS:,} are allowed. A word or hashtag is one; "
            "a phrase of a script without spaces has a term for each pair of neighbouring characters."
        )


def _check_box(box: Box) -> None:
    sides = (("south", box.south, 90), ("west", box.west, 180), ("north", box.north, 90), ("east", box.east, 180))
    for name, degrees, limit in sides:
        if not -limit <= degrees <= limit:
            raise BadFilter(f"'within.{name}' must be from -{limit} to {limit} degrees, not {degrees}.")
    if box.south > box.north:
        raise BadFilter("'within.south' must not lie north of 'within.north'.")
