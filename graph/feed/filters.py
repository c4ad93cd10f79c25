"""Filters of event streams: which events match a filter.

The fields of a filter and the words of a keyword are combined with AND, the entries of a list with OR.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict, Unpack

from graph.cells import MAX_CELLS
from graph.chunks import chunks
from graph.errors import BadFilter
from graph.feed.slices import result
from graph.log.events import Event, Followed, PostDeleted, PostPublished, Reposted, Unfollowed, Unreposted
from graph.text.folding import UNSEEN
from graph.text.terms import HashedTerms, Keyword, Terms, keyword_of, terms_in, terms_of
from graph.text.validation import DECOMPOSED, MAX_MARKS, has_many_marks

MAX_USERS = 500
MAX_KEYWORDS = 400
MAX_KEYWORD_TERMS = 2000  # in all keywords together
KEYWORDS_AT_ONCE = 100  # entries that are checked in one slice
MAX_WORDS = 25
MAX_WORD_LENGTH = 60
MAX_ENTRY = DECOMPOSED * MAX_WORDS * (MAX_WORD_LENGTH + 2)
"""The maximum length of a keyword before folding, in characters: `MAX_WORDS` words of the maximum length in decomposed
form, each with a `#` and a space."""
BOX_TERMS = MAX_CELLS
MAX_QUOTED = 40
SHARE_BITS = 53  # the number of bits that a float holds exactly


class EventKind(Enum):
    """The kinds of events in an event stream. The names are part of the GraphQL schema."""

    POST_ADDED = "POST_ADDED"
    POST_REMOVED = "POST_REMOVED"
    REPOST_ADDED = "REPOST_ADDED"
    REPOST_REMOVED = "REPOST_REMOVED"
    USER_FOLLOWED = "USER_FOLLOWED"
    USER_UNFOLLOWED = "USER_UNFOLLOWED"


@dataclass(frozen=True, slots=True)
class Box:
    """The area between two latitudes and two longitudes, in degrees, edges included.

    The box crosses the antimeridian if `west` is greater than `east`.
    """

    south: float
    west: float
    north: float
    east: float

    def contains(self, latitude: float, longitude: float) -> bool:
        """Return True if a location is in the box. Longitudes 180 and -180 are the same meridian."""
        if not self.south <= latitude <= self.north:
            return False
        return self._spans(longitude) or (abs(longitude) == 180 and self._spans(-longitude))

    def _spans(self, longitude: float) -> bool:
        if self.west <= self.east:
            return self.west <= longitude <= self.east
        return longitude >= self.west or longitude <= self.east


class Traits:
    """The properties of an event that filters look at.

    `users` are the author of a post, or both sides of a follow. `sample_key` is the number that decides which samples
    the event is in. A deletion has no location and matches every box. A plain repost and the event that ends it have no
    content and match neither keywords nor boxes. Deletions that older versions wrote have no digest of the post's
    terms: they have `unknown_terms` and match every keyword.
    """

    __slots__ = ("_body", "_share", "_terms", "kind", "location", "sample_key", "unknown_terms", "users")

    def __init__(self, kind: EventKind, users: tuple[int, ...], sample_key: int) -> None:
        self.kind = kind
        self.users = users
        self.sample_key = sample_key
        self.unknown_terms = False
        self.location: tuple[float, float] | None = None
        self._body: PostPublished | PostDeleted | None = None
        self._terms: Terms | HashedTerms | None = None
        self._share: float | None = None

    @classmethod
    def of(cls, event: Event) -> "Traits | None":
        """Return the traits of an event, or None if event streams do not contain it."""
        body = event.body
        if isinstance(body, PostPublished):
            traits = cls(EventKind.POST_ADDED, (body.author,), event.number)
        elif isinstance(body, PostDeleted):
            traits = cls(EventKind.POST_REMOVED, (body.author,), body.post)
            traits.unknown_terms = body.terms is None
        elif isinstance(body, Followed | Unfollowed):
            kind = EventKind.USER_FOLLOWED if isinstance(body, Followed) else EventKind.USER_UNFOLLOWED
            return cls(kind, (body.follower, body.followee), event.number)
        elif isinstance(body, Reposted):
            return cls(EventKind.REPOST_ADDED, (body.user,), event.number)
        elif isinstance(body, Unreposted):
            return cls(EventKind.REPOST_REMOVED, (body.user,), body.repost)
        else:
            return None
        traits._body = body
        if isinstance(body, PostPublished) and body.latitude is not None and body.longitude is not None:
            traits.location = (body.latitude, body.longitude)
        return traits

    @property
    def terms(self) -> Terms | HashedTerms | None:
        """Return the terms of the post, computed once; None if there is no post or its terms are unknown."""
        if self._terms is None and self._body is not None and not self.unknown_terms:
            body = self._body
            self._terms = terms_of(body.text) if isinstance(body, PostPublished) else terms_in(body.terms or "")
        return self._terms

    @property
    def has_content(self) -> bool:
        """Return True if the event publishes or deletes a post with content, which a plain repost does not have."""
        return self._body is not None

    @property
    def share(self) -> float:
        """Return the event's share (see `share_of`). It is in a sample if its share is below the sample's size."""
        if self._share is None:
            self._share = share_of(self.sample_key)
        return self._share

    def has_any(self, keywords: Collection[Keyword]) -> bool:
        """Return True if the post contains one of the keywords, or if its terms are unknown."""
        terms = self.terms
        return self.unknown_terms or (terms is not None and any(terms.contain(keyword) for keyword in keywords))

    def is_within(self, box: Box) -> bool:
        """Return True if the post's location is in the box, or if a post was deleted."""
        if self.kind is EventKind.POST_REMOVED:
            return True
        return self.location is not None and box.contains(*self.location)


class Criteria(TypedDict, total=False):
    """The arguments of `EventFilter.of`."""

    users: Sequence[int] | None
    keywords: Sequence[str] | None
    within: Box | None
    sample: float | None
    firehose: bool
    kinds: Sequence[EventKind] | None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The criteria that select the events of a stream. A field that is None does not restrict the events.

    A follow matches `users` if either of its users is listed, and never matches `keywords` or `within`. A post and its
    deletion are in the same samples. The deletion of a post with content matches every box. Use `of` to build filters
    from the input of clients. `users` is a sorted tuple without duplicates: it takes a tenth of the memory of a set.
    """

    users: tuple[int, ...] | None = None
    keywords: frozenset[Keyword] | None = None
    within: Box | None = None
    sample: float | None = None
    firehose: bool = False
    kinds: frozenset[EventKind] | None = None

    @classmethod
    def of(cls, **criteria: Unpack[Criteria]) -> "EventFilter":
        """Build a filter from the input of a client.

        Raises BadFilter with the name of the field: for a list that is empty or too long, a keyword that has no words,
        too many words or a word that is too long, a box or sample that is out of range, and a filter that restricts
        nothing although `firehose` is not set.
        """
        return result(cls.building(**criteria))

    @classmethod
    def building(
        cls,
        *,
        users: Sequence[int] | None = None,
        keywords: Sequence[str] | None = None,
        within: Box | None = None,
        sample: float | None = None,
        firehose: bool = False,
        kinds: Sequence[EventKind] | None = None,
    ) -> Generator[None, None, "EventFilter"]:
        """Build a filter as `of` does, in slices of half a millisecond."""
        if users is None and keywords is None and within is None and not firehose:
            raise BadFilter(
                "The filter is empty. Set 'users', 'keywords' or 'within', or request all events with 'firehose: true'."
            )
        check_length("users", users, MAX_USERS)
        check_length("keywords", keywords, MAX_KEYWORDS)
        check_length("kinds", kinds, None)
        if within is not None:
            _check_box(within)
        if sample is not None and not 0 < sample <= 1:
            raise BadFilter(f"'sample' must be above 0 and at most 1, not {sample}.")
        checked = None if keywords is None else (yield from _checked_keywords(keywords))
        _check_terms(checked or ())
        return cls(
            users=None if users is None else tuple(sorted(set(users))),
            keywords=checked,
            within=within,
            sample=None if sample == 1 else sample,
            firehose=firehose,
            kinds=None if kinds is None or set(kinds) == set(EventKind) else frozenset(kinds),
        )

    @property
    def terms(self) -> int:
        """Return the size of the filter, which quotas limit.

        This is the number of users, plus the terms of the keywords (`graph.text.terms`), plus 16 for a box, plus one.
        """
        return len(self.users or ()) + _terms_of(self.keywords or ()) + (BOX_TERMS if self.within else 0) + 1

    @property
    def reads_posts(self) -> bool:
        """Return True if the filter depends on the content of posts: on their words or their location."""
        return self.keywords is not None or self.within is not None

    def matches(self, event: Event) -> bool:
        """Return True if a live event matches the filter. For replayed deletions, see `FilterSource`."""
        traits = Traits.of(event)
        return traits is not None and self.matches_traits(traits)

    def may_match(self, event: Event) -> bool:
        """Return True if the event would match the filter for at least some possible content of its post.

        The actual content is not read, so the result reveals nothing about it.
        """
        traits = Traits.of(event)
        return traits is not None and self._may_match(traits) and (traits.has_content or not self.reads_posts)

    def matches_traits(self, traits: Traits) -> bool:
        """Return True if an event with these traits matches the filter."""
        return (
            self._may_match(traits)
            and (self.within is None or traits.is_within(self.within))
            and (self.keywords is None or traits.has_any(self.keywords))
        )

    def _may_match(self, traits: Traits) -> bool:
        return (
            (self.kinds is None or traits.kind in self.kinds)
            and (self.users is None or any(_contains(self.users, user) for user in traits.users))
            and (self.sample is None or traits.share < self.sample)
        )


def shortened(entry: str) -> str:
    """Return the beginning of a client's input, for an error message."""
    return entry if len(entry) <= MAX_QUOTED else entry[:MAX_QUOTED] + "…"


def share_of(number: int) -> float:
    """Hash a number to a share: uniformly distributed in [0, 1), and the same in every process and version."""
    digest = hashlib.blake2b(number.to_bytes(8), digest_size=8).digest()
    return (int.from_bytes(digest) >> (64 - SHARE_BITS)) / (1 << SHARE_BITS)


def _contains(users: Sequence[int], user: int) -> bool:
    at = bisect_left(users, user)
    return at < len(users) and users[at] == user


def check_length(field: str, entries: Sequence[object] | None, limit: int | None) -> None:
    """Raise BadFilter if a list is empty or has more entries than the limit."""
    if entries is None:
        return
    if not entries:
        raise BadFilter(f"'{field}' must not be empty. Add an entry, or omit the field.")
    if limit is not None and len(entries) > limit:
        raise BadFilter(f"'{field}' has {len(entries):,} entries; the limit is {limit:,}. Send fewer.")


def _checked_keywords(entries: Sequence[str]) -> Generator[None, None, frozenset[Keyword]]:
    """Check the keywords of a filter, in slices."""
    checked: set[Keyword] = set()
    for index, some in enumerate(chunks(entries, KEYWORDS_AT_ONCE)):
        if index:
            yield
        checked.update(map(_checked_keyword, some))
    return frozenset(checked)


def _checked_keyword(entry: str) -> Keyword:
    named = f"The entry {shortened(entry)!r} of 'keywords'"
    if len(entry) > MAX_ENTRY:
        raise BadFilter(f"{named} has {len(entry):,} characters; the limit is {MAX_ENTRY:,}. Shorten it.")
    if has_many_marks(UNSEEN.sub("", entry)):  # folding drops invisible characters, so they do not end a row of marks
        raise BadFilter(f"{named} has more than {MAX_MARKS} combining characters in a row. Remove some.")
    keyword = keyword_of(entry)
    words = (*keyword.words, *keyword.phrases)
    if not words:
        raise BadFilter(f"{named} has no word, hashtag or phrase. Add one, or remove the entry.")
    if len(words) > MAX_WORDS:
        raise BadFilter(f"{named} has {len(words)} words; the limit is {MAX_WORDS}. Remove some.")
    longest = max(len(word.removeprefix("#")) for word in words)
    if longest > MAX_WORD_LENGTH:
        raise BadFilter(f"{named} has a word of {longest} characters; the limit is {MAX_WORD_LENGTH}. Shorten it.")
    return keyword


def _terms_of(keywords: Collection[Keyword]) -> int:
    return sum(len(keyword.terms()) for keyword in keywords)


def _check_terms(keywords: Collection[Keyword]) -> None:
    terms = _terms_of(keywords)
    if terms > MAX_KEYWORD_TERMS:
        raise BadFilter(
            f"'keywords' has {terms:,} terms; the limit is {MAX_KEYWORD_TERMS:,}. Remove some. A word or hashtag is "
            "one term; a phrase in a script without spaces has one for each pair of neighbouring characters."
        )


def _check_box(box: Box) -> None:
    sides = (("south", box.south, 90), ("west", box.west, 180), ("north", box.north, 90), ("east", box.east, 180))
    for name, degrees, limit in sides:
        if not -limit <= degrees <= limit:
            raise BadFilter(f"'within.{name}' must be from -{limit} to {limit} degrees, not {degrees}.")
    if box.south > box.north:
        raise BadFilter("'within.south' must not be greater than 'within.north'.")
