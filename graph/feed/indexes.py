"""Inverted indexes of filters, one for each kind of criterion.

A *value* represents a filter and is opaque to the indexes.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar

from graph.chunks import chunks
from graph.feed.filters import EventFilter, EventKind, Traits
from graph.feed.grid import Grid
from graph.feed.posting_lists import PostingLists, Values, intersection, with_value, without_value
from graph.feed.slices import NOTHING, Work
from graph.text.terms import Keyword, Terms, code_of

V = TypeVar("V", bound=Hashable)

USERS_PER_SLICE = 500
KEYWORDS_PER_SLICE = 50
"""With these sizes, a slice takes less than a millisecond."""


class CriterionIndex(Protocol[V]):
    """Values indexed by one criterion of their filters."""

    def add(self, filter_: EventFilter, value: V) -> Work:
        """Add a value under the criterion of its filter, in slices."""

    def remove(self, filter_: EventFilter, value: V) -> Work:
        """Remove a value and everything that was stored for it, in slices."""

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Return the values whose criterion an event meets, possibly with duplicates and false positives."""


class UserIndex(Generic[V]):
    """Values indexed by the users of their filters."""

    def __init__(self) -> None:
        self._by_user: PostingLists[int, V] = PostingLists()

    def add(self, filter_: EventFilter, value: V) -> Work:
        """Add a value under each user of its filter."""
        users = filter_.users or ()
        for index, some in enumerate(chunks(users, USERS_PER_SLICE)):
            if index:
                yield
            self._by_user.add_all(some, value)

    def remove(self, filter_: EventFilter, value: V) -> Work:
        """Remove a value from each user of its filter."""
        users = filter_.users or ()
        for index, some in enumerate(chunks(users, USERS_PER_SLICE)):
            if index:
                yield
            self._by_user.remove_all(some, value)

    def of_user(self, user: int) -> Values[V]:
        """Return the values under a user."""
        return self._by_user[user]

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Return the values under the author of a post, or under both sides of a follow."""
        return chain.from_iterable(map(self.of_user, traits.users))


@dataclass(slots=True, eq=False)
class IndexedKeyword(Generic[V]):
    """A keyword of one or more filters: the term it is indexed under, and the other words and phrases to look for.

    `values` belong to filters without users, `values_with_users` to filters that also have users.
    """

    keyword: Keyword
    index_term: str
    rest: tuple[str, ...]
    values: Values[V] = ()
    values_with_users: Values[V] = ()
    _codes: frozenset[str] | None = None

    @property
    def codes(self) -> frozenset[str]:
        """Return the codes of all terms of the keyword, computed on first use."""
        if self._codes is None:
            self._codes = self.keyword.codes()
        return self._codes


class KeywordIndex(Generic[V]):
    """Values indexed by the keywords of their filters and, if present, the users. Equal keywords are stored once.

    A keyword is indexed under only one of its terms, the one with the fewest keywords so far. A text with a common word
    is therefore not compared with every keyword that contains the word.
    """

    def __init__(self) -> None:
        self._keywords: PostingLists[Keyword, IndexedKeyword[V]] = PostingLists()
        self._by_term: PostingLists[str, IndexedKeyword[V]] = PostingLists()
        self._terms_by_code: PostingLists[str, str] = PostingLists()
        self._users: UserIndex[V] = UserIndex()

    def add(self, filter_: EventFilter, value: V) -> Work:
        """Add a value under each user and each keyword of its filter."""
        yield from self._users.add(filter_, value)
        for place, keyword in enumerate(filter_.keywords or (), 1):
            [indexed] = self._keywords[keyword] or (self._index(keyword),)
            if filter_.users is None:
                indexed.values = with_value(indexed.values, value)
            else:
                indexed.values_with_users = with_value(indexed.values_with_users, value)
            if place % KEYWORDS_PER_SLICE == 0:
                yield

    def _index(self, keyword: Keyword) -> IndexedKeyword[V]:
        term = min(keyword.terms(), key=lambda term: (len(self._by_term[term]), -len(term), term))
        if term not in self._by_term:
            self._terms_by_code.add(code_of(term), term)
        rest = tuple(part for part in (*keyword.words, *keyword.phrases) if part != term)
        indexed: IndexedKeyword[V] = IndexedKeyword(keyword, term, rest)
        self._keywords.add(keyword, indexed)
        self._by_term.add(term, indexed)
        return indexed

    def remove(self, filter_: EventFilter, value: V) -> Work:
        """Remove a value from each user and keyword of its filter. Drop keywords that have no values left."""
        yield from self._users.remove(filter_, value)
        for place, keyword in enumerate(filter_.keywords or (), 1):
            [indexed] = self._keywords[keyword]
            if filter_.users is None:
                indexed.values = without_value(indexed.values, value)
            else:
                indexed.values_with_users = without_value(indexed.values_with_users, value)
            if not indexed.values and not indexed.values_with_users:
                self._remove(indexed)
            if place % KEYWORDS_PER_SLICE == 0:
                yield

    def _remove(self, indexed: IndexedKeyword[V]) -> None:
        self._keywords.remove(indexed.keyword, indexed)
        self._by_term.remove(indexed.index_term, indexed)
        if indexed.index_term not in self._by_term:
            self._terms_by_code.remove(code_of(indexed.index_term), indexed.index_term)

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Return the values whose filters have a keyword of the post and, if they have users, the post's author."""
        contained = self._contained(traits)
        of_author = self._users.of_user(traits.users[0])
        found = chain.from_iterable([indexed.values for indexed in contained])
        if not of_author:
            return found
        return chain(found, *[intersection(indexed.values_with_users, of_author) for indexed in contained])

    def _contained(self, traits: Traits) -> Iterable[IndexedKeyword[V]]:
        """Return the keywords that the post contains."""
        if traits.unknown_terms:
            return self._keywords
        terms = traits.terms if self._keywords else None
        if terms is None:
            return ()
        if isinstance(terms, Terms):
            have = terms.have
            return [indexed for indexed in self._by_term.of_any(terms) if not indexed.rest or have(indexed.rest)]
        index_terms = self._terms_by_code.of_any(terms.codes)
        keywords = self._by_term.of_any(index_terms)
        return [indexed for indexed in keywords if not indexed.rest or indexed.codes <= terms.codes]


class BoxIndex(Generic[V]):
    """Values indexed by the boxes of their filters. Deletions have no location and match every box.

    Values whose filters have a sample and match deletions are therefore also kept in one collection. Filters that
    match deletions and have no sample match every deletion: `FilterIndex` keeps their subscribers together.
    """

    def __init__(self) -> None:
        self._grid: Grid[V] = Grid()
        self._sampling_deletions: Values[V] = ()

    def add(self, filter_: EventFilter, value: V) -> Work:
        """Add a value under the box of its filter."""
        if filter_.within is not None:
            self._grid.add(filter_.within, value)
        if matches_deletions(filter_) and filter_.sample is not None:
            self._sampling_deletions = with_value(self._sampling_deletions, value)
        return NOTHING

    def remove(self, filter_: EventFilter, value: V) -> Work:
        """Remove a value from the box of its filter."""
        if filter_.within is not None:
            self._grid.remove(filter_.within, value)
        if matches_deletions(filter_) and filter_.sample is not None:
            self._sampling_deletions = without_value(self._sampling_deletions, value)
        return NOTHING

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Return the values near the location of a post; for a deletion, the values whose filters have a sample."""
        if traits.kind is EventKind.POST_REMOVED:
            return self._sampling_deletions
        return () if traits.location is None else self._grid.near(*traits.location)


class FirehoseIndex(Generic[V]):
    """Values indexed by the kinds of their filters, sorted by sample."""

    def __init__(self) -> None:
        self._by_kind: dict[EventKind, list[tuple[float, V]]] = {}

    def add(self, filter_: EventFilter, value: V) -> Work:
        """Add a value under each kind of its filter."""
        for kind in filter_.kinds or EventKind:
            insort(self._by_kind.setdefault(kind, []), (_sample_of(filter_), value), key=_first)
        return NOTHING

    def remove(self, filter_: EventFilter, value: V) -> Work:
        """Remove a value from each kind of its filter."""
        for kind in filter_.kinds or EventKind:
            ordered = self._by_kind[kind]
            start = bisect_left(ordered, _sample_of(filter_), key=_first)
            del ordered[ordered.index((_sample_of(filter_), value), start)]
            if not ordered:
                del self._by_kind[kind]
        return NOTHING

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Return the values of the event's kind whose samples contain the event."""
        ordered = self._by_kind.get(traits.kind)
        if ordered is None:
            return ()
        return (value for _, value in ordered[bisect_right(ordered, traits.share, key=_first) :])


def matches_deletions(filter_: EventFilter) -> bool:
    """Return True if the kinds of a filter include deletions."""
    return filter_.kinds is None or EventKind.POST_REMOVED in filter_.kinds


def _sample_of(filter_: EventFilter) -> float:
    return 1.0 if filter_.sample is None else filter_.sample


def _first(pair: tuple[float, object]) -> float:
    return pair[0]
