"""Where filters wait for events: inverted indexes, each by one kind of criterion.

The *value* stands for a filter; an index knows nothing else of it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar

from graph.feed.filters import EventFilter, EventKind, Traits
from graph.feed.grid import Grid
from graph.feed.posting_lists import PostingLists, Values, common, excluding, including
from graph.terms import Keyword, Terms, code_of

V = TypeVar("V", bound=Hashable)


class Anchors(Protocol[V]):
    """Values by one criterion of their filters."""

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under what its filter asks for."""

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value away; nothing is left of it."""

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values whose filters ask for such an event, some of them more than once, and perhaps a few more."""


class UserAnchors(Generic[V]):
    """Values by the users of their filters."""

    def __init__(self) -> None:
        self._by_user: PostingLists[int, V] = PostingLists()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under every user."""
        self._by_user.add_all(filter_.users or (), value)

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from under every user."""
        self._by_user.remove_all(filter_.users or (), value)

    def asking_for(self, user: int) -> Values[V]:
        """Give the values under a user."""
        return self._by_user[user]

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values under the author, or under either side of a follow."""
        return chain.from_iterable(map(self.asking_for, traits.people))


@dataclass(slots=True, eq=False)
class Shared(Generic[V]):
    """A keyword of one or more filters: the term it is anchored under, and what a text must have beside that.

    `values` are for any author; `narrow` ones have users, too.
    """

    keyword: Keyword
    anchor: str
    besides: tuple[str, ...]
    values: Values[V] = ()
    narrow: Values[V] = ()


class KeywordAnchors(Generic[V]):
    """Values by the keywords of their filters, equal ones shared, and by their users if they have both.

    A keyword stands under one of its terms alone, the one that is least in use, so that common words among its
    terms cost nothing.
    """

    def __init__(self) -> None:
        self._shared: PostingLists[Keyword, Shared[V]] = PostingLists()
        self._anchored: PostingLists[str, Shared[V]] = PostingLists()
        self._by_code: PostingLists[str, str] = PostingLists()
        self._users: UserAnchors[V] = UserAnchors()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value under every keyword, and under every user."""
        self._users.add(filter_, value)
        for keyword in filter_.keywords or ():
            [shared] = self._shared[keyword] or (self._anchor(keyword),)
            if filter_.users is None:
                shared.values = including(shared.values, value)
            else:
                shared.narrow = including(shared.narrow, value)

    def _anchor(self, keyword: Keyword) -> Shared[V]:
        anchor = min(keyword.terms(), key=lambda term: (len(self._anchored[term]), -len(term), term))
        if anchor not in self._anchored:
            self._by_code.add(code_of(anchor), anchor)
        shared: Shared[V] = Shared(
            keyword, anchor, tuple(part for part in (*keyword.words, *keyword.phrases) if part != anchor)
        )
        self._shared.add(keyword, shared)
        self._anchored.add(anchor, shared)
        return shared

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from under every keyword and user, and forget the keywords that nobody asks for any more."""
        self._users.remove(filter_, value)
        for keyword in filter_.keywords or ():
            [shared] = self._shared[keyword]
            if filter_.users is None:
                shared.values = excluding(shared.values, value)
            else:
                shared.narrow = excluding(shared.narrow, value)
            if not shared.values and not shared.narrow:
                self._release(shared)

    def _release(self, shared: Shared[V]) -> None:
        self._shared.remove(shared.keyword, shared)
        self._anchored.remove(shared.anchor, shared)
        if shared.anchor not in self._anchored:
            self._by_code.remove(code_of(shared.anchor), shared.anchor)

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values with a keyword that the post has, and with its author if they ask for users."""
        occurring = self._occurring(traits)
        asking = self._users.asking_for(traits.people[0])
        found = chain.from_iterable([shared.values for shared in occurring])
        if not asking:
            return found
        return chain(found, *[common(shared.narrow, asking) for shared in occurring])

    def _occurring(self, traits: Traits) -> Iterable[Shared[V]]:
        """Find the keywords that the post has."""
        if traits.vague:
            return self._shared
        terms = traits.terms if self._shared else None
        if terms is None:
            return ()
        if isinstance(terms, Terms):
            have = terms.have
            return [shared for shared in self._anchored.among(terms) if not shared.besides or have(shared.besides)]
        anchors = self._by_code.among(terms.codes)
        return [shared for shared in self._anchored.among(anchors) if terms.contain(shared.keyword)]


class BoxAnchors(Generic[V]):
    """Values by the boxes of their filters, those that are asked for deletions once more: a deletion has no place."""

    def __init__(self) -> None:
        self._grid: Grid[V] = Grid()
        self._for_deletions: Values[V] = ()

    def add(self, filter_: EventFilter, value: V) -> None:
        """Put a value where its box is."""
        if filter_.within is not None:
            self._grid.add(filter_.within, value)
        if wants_deletions(filter_):
            self._for_deletions = including(self._for_deletions, value)

    def remove(self, filter_: EventFilter, value: V) -> None:
        """Take a value from where its box is."""
        if filter_.within is not None:
            self._grid.remove(filter_.within, value)
        if wants_deletions(filter_):
            self._for_deletions = excluding(self._for_deletions, value)

    def candidates(self, traits: Traits) -> Iterable[V]:
        """Find the values near the post's place; of a deletion, all that ask for deletions."""
        if traits.kind is EventKind.POST_DELETED:
            return self._for_deletions
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
        """Find the values of this kind whose samples the event belongs to."""
        ordered = self._by_kind.get(traits.kind)
        if ordered is None:
            return ()
        return (value for _, value in ordered[bisect_right(ordered, traits.share, key=first) :])


def wants_deletions(filter_: EventFilter) -> bool:
    """Return True if a filter lets deletions pass."""
    return filter_.kinds is None or EventKind.POST_DELETED in filter_.kinds


def sample_of(filter_: EventFilter) -> float:
    """Give the share of updates that a filter asks for."""
    return 1.0 if filter_.sample is None else filter_.sample


def first(pair: tuple[float, object]) -> float:
    """Give what pairs are ordered by."""
    return pair[0]
