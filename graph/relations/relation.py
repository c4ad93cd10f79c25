"""The interface of all relations."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from graph.fold.content import Content
from graph.fold.reading import EventReader, FoldedBatch
from graph.fold.values import Stored
from graph.log.events import EventBody
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

KeyCommand: TypeAlias = tuple[str, ...]
"""A command: its name, its key, and its other arguments."""


class Relation(ABC):
    """A connection between owners and members that some kinds of events add and end.

    Its projection is a step of `graph.projections.projections`, and its comparison is a step of `graph.repair.repair`.
    The order of the steps of all relations matters in both.
    """

    kinds: tuple[type[Any], ...]
    """The kinds of events that the relation folds."""

    @abstractmethod
    def fold(self, content: Content, number: int, body: Any) -> None:
        """Add an event to the content. The result depends neither on the order of events nor on repetitions. O(1)."""

    @abstractmethod
    def stored(self, content: Content, tombstones_after: int) -> Stored:
        """Yield the keys of the content, with tombstones whose numbers are higher than `tombstones_after`."""

    @abstractmethod
    def batches(self, reader: EventReader, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the content of users, from the archive, in batches of bounded size."""

    @abstractmethod
    def replacements(self, content: Content) -> Iterator[KeyCommand]:
        """Yield the commands that remove what earlier pages of the same sets wrote for the elements of this page."""

    @abstractmethod
    def sets_of(self, user: int) -> Sequence[str]:
        """Return the keys of the sets whose members are ended when the user is erased."""

    @abstractmethod
    def ends(self, user: int, members: Sequence[Sequence[str]]) -> Iterator[EventBody]:
        """Yield the events that end the given members, which are grouped by set in the order of `sets_of`."""

    @abstractmethod
    async def ends_by_others(
        self, archive: "Archive", store: Store, user: int, after: int, limit: int
    ) -> tuple[list[EventBody], int | None]:
        """Return the events that remove the user from the sets of others, and the number to continue from.

        Covers the sets that only the archive can find. Reads the first `limit` events above the number `after`. The
        second value is the number of the last of these events, or None if there are no more. At most one query and one
        round trip.
        """
