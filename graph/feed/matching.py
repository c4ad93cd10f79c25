"""Finds the filters that match an event, without evaluating all filters.

Each filter is in exactly one index: by its users, its keywords or both, otherwise by its box, otherwise by its kinds
and sample. The traits of an event are looked up in each index. Only the filters found there are evaluated further.

A deletion has no location and matches every box. The subscribers of filters that restrict only the box are therefore
kept in one set: a deletion concerns all of them, and none of their filters is evaluated.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

from graph.feed.filters import EventFilter, EventKind, Traits
from graph.feed.indexes import (
    BoxIndex,
    CriterionIndex,
    FirehoseIndex,
    KeywordIndex,
    UserIndex,
    matches_deletions,
)
from graph.feed.posting_lists import CountedSet, Values, with_value, without_value
from graph.feed.slices import Slices, Work, finish
from graph.log.events import Event

S = TypeVar("S", bound=Hashable)


@dataclass(slots=True, eq=False)
class IndexedFilter(Generic[S]):
    """A filter with its index, the criteria that the index does not cover, and its subscribers.

    `has_all_deletions` is True if the filter matches the deletion of every post. `holds` is the number of times that
    the filter has been held but not yet released. `indexing` is the work that adds the filter to its index, None when
    it is done. `ready` exists while tasks wait for that work, and is set when it is done.
    """

    index: "CriterionIndex[IndexedFilter[S]]"
    rest: EventFilter | None
    has_all_deletions: bool = False
    subscribers: Values[S] = ()
    holds: int = 0
    indexing: Work | None = None
    ready: asyncio.Event | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the filter has a subscriber, or is held for one."""
        return bool(self.subscribers) or self.holds > 0


class FilterIndex(Generic[S]):
    """The subscribers of filters. Equal filters are stored and evaluated once.

    Adding or removing a large filter takes a few milliseconds, unless the filter is held: it is then added to and
    removed from the index in slices. A filter that has no subscribers, or is only partly in the index, has no effect.
    """

    def __init__(self) -> None:
        self._filters: dict[EventFilter, IndexedFilter[S]] = {}
        self._users: UserIndex[IndexedFilter[S]] = UserIndex()
        self._keywords: KeywordIndex[IndexedFilter[S]] = KeywordIndex()
        self._boxes: BoxIndex[IndexedFilter[S]] = BoxIndex()
        self._firehoses: FirehoseIndex[IndexedFilter[S]] = FirehoseIndex()
        self._of_all_deletions: CountedSet[S] = CountedSet()
        self._slices = Slices()

    async def hold(self, filter_: EventFilter) -> None:
        """Add a filter to its index in slices and keep it until `release`, so that `add` and `remove` are fast.

        A filter may be held several times, and must be released the same number of times.
        """
        indexed = self._entry(filter_)
        indexed.holds += 1
        try:
            if indexed.indexing and not indexed.ready:
                indexed.ready = asyncio.Event()
                self._slices.start(indexed.indexing)
            if indexed.ready:
                await indexed.ready.wait()
        except BaseException:
            self.release(filter_)
            raise

    def release(self, filter_: EventFilter) -> None:
        """Undo `hold`. Raises KeyError for an unknown filter."""
        indexed = self._filters[filter_]
        indexed.holds -= 1
        if not indexed.is_needed:
            del self._filters[filter_]
            self._slices.start(self._unindex(filter_, indexed))

    def add(self, filter_: EventFilter, subscriber: S) -> None:
        """Subscribe to a filter. A subscriber may have several filters; adding one twice has no effect."""
        indexed = self._entry(filter_)
        if indexed.indexing:
            finish(indexed.indexing)
        if indexed.has_all_deletions and subscriber not in indexed.subscribers:
            self._of_all_deletions.add(subscriber)
        indexed.subscribers = with_value(indexed.subscribers, subscriber)

    def remove(self, filter_: EventFilter, subscriber: S) -> None:
        """Unsubscribe from a filter. Raises KeyError if the subscriber does not have it."""
        indexed = self._filters[filter_]
        indexed.subscribers = without_value(indexed.subscribers, subscriber)
        if indexed.has_all_deletions:
            self._of_all_deletions.remove(subscriber)
        if not indexed.is_needed:
            del self._filters[filter_]
            finish(self._unindex(filter_, indexed))

    def _entry(self, filter_: EventFilter) -> IndexedFilter[S]:
        """Return the entry of a filter. A new one is not indexed yet."""
        indexed = self._filters.get(filter_)
        if indexed is None:
            indexed = self._filters[filter_] = self._indexed(filter_)
            indexed.indexing = self._index(filter_, indexed)
        return indexed

    def _index(self, filter_: EventFilter, indexed: IndexedFilter[S]) -> Work:
        yield from indexed.index.add(filter_, indexed)
        indexed.indexing = None
        if indexed.ready:
            indexed.ready.set()
            indexed.ready = None

    def _unindex(self, filter_: EventFilter, indexed: IndexedFilter[S]) -> Work:
        if indexed.indexing:
            yield from indexed.indexing
        yield from indexed.index.remove(filter_, indexed)

    def matching(self, event: Event) -> Collection[S]:
        """Return the subscribers with a filter that matches an event, each once.

        The time depends on the terms of the event and the number of matches, but hardly on the number of filters.
        """
        traits = Traits.of(event)
        if traits is None:
            return ()
        candidates = set(self._candidates(traits))
        found = [c.subscribers for c in candidates if c.rest is None or c.rest.matches_traits(traits)]
        return self._certain(traits).union(*found)

    def matches_any(self, event: Event) -> bool:
        """Return True if an event matches at least one filter. Stops at the first match."""
        if not self._filters or (traits := Traits.of(event)) is None:
            return False
        return bool(self._certain(traits)) or any(
            c.subscribers and (c.rest is None or c.rest.matches_traits(traits)) for c in self._candidates(traits)
        )

    def _certain(self, traits: Traits) -> set[S] | frozenset[S]:
        """Return the subscribers whose filters match every deletion, if the event is a deletion; else an empty set."""
        if traits.kind is EventKind.POST_REMOVED:
            return self._of_all_deletions.values
        return frozenset()

    def _candidates(self, traits: Traits) -> Iterator[IndexedFilter[S]]:
        """Yield the filters to evaluate, with possible duplicates. Filters that need a post's terms come last."""
        indexes = (self._users, self._boxes, self._firehoses, self._keywords)
        return chain.from_iterable(index.candidates(traits) for index in indexes)

    def _indexed(self, filter_: EventFilter) -> IndexedFilter[S]:
        rest = replace(filter_, users=None, keywords=None, firehose=False)
        remaining = rest if rest != EventFilter() else None
        if filter_.keywords is not None:
            return IndexedFilter(self._keywords, remaining)
        if filter_.users is not None:
            return IndexedFilter(self._users, remaining)
        if filter_.within is not None:
            return IndexedFilter(self._boxes, remaining, matches_deletions(filter_) and filter_.sample is None)
        return IndexedFilter(self._firehoses, None)
