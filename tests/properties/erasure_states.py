"""The states that the explorer of the rule for erasure visits."""

from collections.abc import Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of element: the slots that its events change, in their order, and whether old ones are cut.

    `own` is the user's slot, in which an eraser looks for elements, `theirs` that of the other user or of the post.
    """

    adds: tuple[str, ...]
    removes: tuple[str, ...]
    is_cut: bool = False


FOLLOW = Kind(("theirs", "own"), ("own", "theirs"))
FOLLOWER = Kind(("own", "theirs"), ("theirs", "own"))
LIKE = Kind(("theirs", "own"), ("theirs", "own"), is_cut=True)
LIKE_OF_USER_FIRST = Kind(("own", "theirs"), ("own", "theirs"), is_cut=True)
BLOCK = Kind(("own", "theirs"), ("own", "theirs"))
BLOCKER = Kind(("theirs", "own"), ("theirs", "own"))
MUTER = Kind(("theirs",), ("theirs",))


class Element(NamedTuple):
    """One element of a versioned set: the number of the member, of the tombstone, and both floors."""

    member: int = 0
    gone: int = 0
    trimmed: int = 0
    cut: int = 0

    @property
    def floor(self) -> int:
        """The number up to which the set does not know the element."""
        return max(self.trimmed, self.cut)

    @property
    def version(self) -> int:
        """The number of the event that changed the element last."""
        return self.member or self.gone or self.floor

    @property
    def is_unknown(self) -> bool:
        """Whether the element may be among those that are only in the archive."""
        return bool(self.cut) and not self.member and not self.gone

    def add(self, number: int) -> "Element":
        """Return the element after an addition."""
        return self._replace(member=number, gone=0) if number > self.version else self

    def remove(self, number: int) -> "Element":
        """Return the element after a removal."""
        return self._replace(member=0, gone=number) if number > self.version else self

    def trim(self, upto: int) -> "Element":
        """Return the element after a trim of its tombstone."""
        return self._replace(gone=0, trimmed=max(self.trimmed, self.gone)) if 0 < self.gone <= upto else self

    def cut_to(self, upto: int) -> "Element":
        """Return the element after a cut of what is archived."""
        return self._replace(member=0, cut=upto) if 0 < self.member <= upto else self

    @staticmethod
    def forget(floor: int) -> "Element":
        """Return the element of a set that is deleted, except for its floor."""
        return Element(trimmed=floor)


class Job(NamedTuple):
    """A projection of an event before its step `step`."""

    number: int
    step: int = 0


class Client(NamedTuple):
    """A tab: the operations that it still has to run, whether the session was checked, and what it projects."""

    operations: tuple[str, ...]
    is_checked: bool = False
    job: Job | None = None


class Eraser(NamedTuple):
    """An eraser before its next step, which may need all events up to a number."""

    upto: int
    step: str = "wait"


class State(NamedTuple):
    """The log, the slots, and everything that runs.

    `cold` is the number of archived elements that the others count. `is_buried` tells that the user has a tombstone,
    `erasing` that an eraser is wanted.
    """

    clients: tuple[Client, ...]
    log: tuple[str, ...] = ()
    own: Element = Element()
    theirs: Element = Element()
    cold: int = 0
    is_buried: bool = False
    erasing: bool = False
    erasers: tuple[Eraser, ...] = ()
    jobs: tuple[Job, ...] = ()
    projected: int = 0
    archived: int = 0
    late: int = 0
    runs: int = 0


def watermark_of(state: State) -> int:
    """Return the number up to which every event is projected."""
    number = 0
    while state.projected >> number & 1:
        number += 1
    return number


def standing(log: Sequence[str], upto: int) -> int:
    """Return the number of the event by which the element stands after the first events, 0 if it does not."""
    last = max((n for n, kind in enumerate(log[:upto], 1) if kind in ("add", "remove")), default=0)
    return last if last and log[last - 1] == "add" else 0


def deletion_of(log: Sequence[str]) -> int:
    """Return the number of the deletion of the user, 0 if the user is not deleted."""
    return next((n for n, kind in enumerate(log, 1) if kind == "delete"), 0)
