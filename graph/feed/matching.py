"""Which filters a fact matches: inverted indexes, whose cost grows with the matches and not with the filters.

Every filter is *anchored* under one of its criteria, the most selective kind that it has: its users, else its
keywords, else its box, else its kinds and sample. A fact finds the filters anchored under its own traits, and only
those are asked about their other criteria.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, Protocol, TypeVar

from graph.facts import Fact
from graph.feed.filters import EventFilter, EventKind, Traits
from graph.feed.grid import Grid
from graph.feed.postings import Postings
from graph.terms import HashedTerms, Keyword, Terms, code_of

S = TypeVar("S", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Anchors(Protocol[V]):
    """Values by one criterion of their filters."""

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under what its filter asks for."""

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value away; nothing is left of it."""

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values whose filters ask for such a fact, some of them more than once, and perhaps a few more."""


class UserAnchors(Generic[V]):
    """Values by the users of their filters."""

    def __init__(self) -> None:
        self._by_user: Postings[int, V] = Postings()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under every user."""
        for user in filter_.users or ():
            self._by_user.add(user, value)

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from under every user."""
        for user in filter_.users or ():
            self._by_user.remove(user, value)

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values under the author, or under either side of a follow."""
        return chain.from_iterable(map(self._by_user.__getitem__, traits.people))


@dataclass(slots=True, eq=False)
class Shared(Generic[V]):
    """A keyword of one or more filters, and the term it is anchored under."""

    keyword: Keyword
    anchor: str
    values: set[V] = field(default_factory=set)


class KeywordAnchors(Generic[V]):
    """Values by the keywords of their filters, equal ones shared.

    A keyword stands under one of its terms alone, the one that is least in use, so that common words among its
    terms cost nothing.
    """

    def __init__(self) -> None:
        self._shared: dict[Keyword, Shared[V]] = {}
        self._anchored: Postings[str, Shared[V]] = Postings()
        self._by_code: Postings[str, str] = Postings()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under every keyword."""
        for keyword in filter_.keywords or ():
            if keyword not in self._shared:
                self._anchor(keyword)
            self._shared[keyword].values.add(value)

    def _anchor(self, keyword: Keyword) -> None:
        anchor = min(keyword.terms(), key=lambda term: (len(self._anchored[term]), -len(term), term))
        if anchor not in self._anchored:
            self._by_code.add(code_of(anchor), anchor)
        self._shared[keyword] = Shared(keyword, anchor)
        self._anchored.add(anchor, self._shared[keyword])

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from under every keyword, and forget the keywords that nobody asks for any more."""
        for keyword in filter_.keywords or ():
            shared = self._shared[keyword]
            shared.values.remove(value)
            if not shared.values:
                del self._shared[keyword]
                self._release(shared)

    def _release(self, shared: Shared[V]) -> None:
        self._anchored.remove(shared.anchor, shared)
        if shared.anchor not in self._anchored:
            self._by_code.remove(code_of(shared.anchor), shared.anchor)

    def candidates(self, traits: Traits) -> Iterator[V]:
        """Find the values with a keyword that the post has."""
        if traits.vague:
            yield from chain.from_iterable(shared.values for shared in self._shared.values())
        elif self._shared and (terms := traits.terms) is not None:
            for anchor in self._anchors_in(terms):
                for shared in self._anchored[anchor]:
                    if terms.contain(shared.keyword):
                        yield from shared.values

    def _anchors_in(self, terms: Terms | HashedTerms) -> set[str]:
        if isinstance(terms, Terms):
            return set(filter(self._anchored.__contains__, terms))
        return set(chain.from_iterable(map(self._by_code.__getitem__, terms.codes)))


class BoxAnchors(Generic[V]):
    """Values by the boxes of their filters."""

    def __init__(self) -> None:
        self._grid: Grid[V] = Grid()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value where its box is."""
        if filter_.within is not None:
            self._grid.add(filter_.within, value)

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from where its box is."""
        if filter_.within is not None:
            self._grid.remove(filter_.within, value)

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values near the post's place."""
        if traits.vague:
            return self._grid.everything()
        return () if traits.place is None else self._grid.near(*traits.place)


class FirehoseAnchors(Generic[V]):
    """Values by the kinds that their filters ask for, ordered by the size of the sample they want."""

    def __init__(self) -> None:
        self._by_kind: dict[EventKind, list[tuple[float, V]]] = {}

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under every kind."""
        for kind in filter_.kinds or EventKind:
            insort(self._by_kind.setdefault(kind, []), (sample_of(filter_), value), key=first)

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from under every kind."""
        for kind in filter_.kinds or EventKind:
            ordered = self._by_kind[kind]
            start = bisect_left(ordered, sample_of(filter_), key=first)
            del ordered[ordered.index((sample_of(filter_), value), start)]
            if not ordered:
                del self._by_kind[kind]

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values of this kind whose samples the fact belongs to."""
        ordered = self._by_kind.get(traits.kind)
        if ordered is None:
            return ()
        return (value for _, value in ordered[bisect_right(ordered, traits.share, key=first) :])


def sample_of(filter_: EventFilter) -> float:
    """Give the share of events that a filter asks for."""
    return 1.0 if filter_.sample is None else filter_.sample


def first(pair: tuple[float, object]) -> float:
    """Give what pairs are ordered by."""
    return pair[0]


@dataclass(slots=True, eq=False)
class Anchored(Generic[S]):
    """A filter in the index: what is to be asked beyond its anchor, and who has subscribed to it."""

    anchors: "Anchors[Anchored[S]]"
    rest: EventFilter
    subscribers: set[S] = field(default_factory=set)


class FilterIndex(Generic[S]):
    """Who has subscribed with which filter; equal filters are kept and asked once."""

    def __init__(self) -> None:
        self._filters: dict[EventFilter, Anchored[S]] = {}
        self._users: UserAnchors[Anchored[S]] = UserAnchors()
        self._keywords: KeywordAnchors[Anchored[S]] = KeywordAnchors()
        self._boxes: BoxAnchors[Anchored[S]] = BoxAnchors()
        self._firehoses: FirehoseAnchors[Anchored[S]] = FirehoseAnchors()

    def add(self, filter_: EventFilter, subscriber: S) -> None:
        """Let a subscriber have what matches a filter, beside what matches their others. Repeating it is harmless."""
        anchored = self._filters.get(filter_)
        if anchored is None:
            anchored = self._filters[filter_] = self._anchored(filter_)
            anchored.anchors.add(filter_, anchored)
        anchored.subscribers.add(subscriber)

    def remove(self, filter_: EventFilter, subscriber: S) -> None:
        """Take a subscriber's filter back. Raises KeyError if they do not have it."""
        anchored = self._filters[filter_]
        anchored.subscribers.remove(subscriber)
        if not anchored.subscribers:
            del self._filters[filter_]
            anchored.anchors.remove(filter_, anchored)

    def matching(self, fact: Fact) -> Collection[S]:
        """Find the subscribers with a filter that matches a fact, each once.

        Costs what its terms and the matches are worth, and a little for what only nearly matches.
        """
        traits = Traits.of(fact)
        if traits is None:
            return ()
        candidates = {
            *self._users.candidates(traits),
            *self._keywords.candidates(traits),
            *self._boxes.candidates(traits),
            *self._firehoses.candidates(traits),
        }
        found: set[S] = set()
        for anchored in candidates:
            if anchored.rest.admits(traits):
                found |= anchored.subscribers
        return found

    def _anchored(self, filter_: EventFilter) -> Anchored[S]:
        if filter_.users is not None:
            return Anchored(self._users, replace(filter_, users=None))
        if filter_.keywords is not None:
            return Anchored(self._keywords, replace(filter_, keywords=None))
        if filter_.within is not None:
            return Anchored(self._boxes, filter_)
        return Anchored(self._firehoses, EventFilter())
