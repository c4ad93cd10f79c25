"""Which filters an event matches, at a cost that grows with the matches and not with the filters.

Every filter is *anchored* in one index: by its users, its keywords or both, else by its box, else by its kinds and
sample. An event finds the filters anchored under its own traits, and only those are asked about their other criteria.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from graph.feed.anchors import Anchors, BoxAnchors, FirehoseAnchors, KeywordAnchors, UserAnchors
from graph.feed.filters import EventFilter, Traits
from graph.feed.posting_lists import Values, excluding, including
from graph.log.events import Event

S = TypeVar("S", bound=Hashable)


@dataclass(slots=True, eq=False)
class Anchored(Generic[S]):
    """A filter in the index: where it is anchored, what else it is asked about, and who has subscribed to it."""

    anchors: "Anchors[Anchored[S]]"
    rest: EventFilter | None
    subscribers: Values[S] = ()


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
        anchored.subscribers = including(anchored.subscribers, subscriber)

    def remove(self, filter_: EventFilter, subscriber: S) -> None:
        """Take a subscriber's filter back. Raises KeyError if they do not have it."""
        anchored = self._filters[filter_]
        anchored.subscribers = excluding(anchored.subscribers, subscriber)
        if not anchored.subscribers:
            del self._filters[filter_]
            anchored.anchors.remove(filter_, anchored)

    def matching(self, event: Event) -> Collection[S]:
        """Find the subscribers with a filter that matches an event, each once.

        Costs what its terms and the matches are worth, and a little for what only nearly matches.
        """
        traits = Traits.of(event)
        if traits is None:
            return ()
        candidates = {
            *self._users.candidates(traits),
            *self._keywords.candidates(traits),
            *self._boxes.candidates(traits),
            *self._firehoses.candidates(traits),
        }
        return set().union(*[c.subscribers for c in candidates if c.rest is None or c.rest.admits(traits)])

    def _anchored(self, filter_: EventFilter) -> Anchored[S]:
        rest = replace(filter_, users=None, keywords=None, firehose=False)
        asked = rest if rest != EventFilter() else None
        if filter_.keywords is not None:
            return Anchored(self._keywords, asked)
        if filter_.users is not None:
            return Anchored(self._users, asked)
        if filter_.within is not None:
            return Anchored(self._boxes, asked)
        return Anchored(self._firehoses, None)
