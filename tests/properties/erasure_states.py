"""The states that the explorer of the rule for erasure visits."""

from collections.abc import Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of element: the slots that its events change, in order, and whether old elements are cut.

    `own` is the user's slot, in which an eraser looks for elements; `theirs` is the slot of the other user or of the
    post.
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
    """One element of a versioned set: the number of the member, the number of the tombstone, and both floors."""

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
        """The number of the last event that changed the element."""
        return self.member or self.gone or self.floor

    @property
    def is_unknown(self) -> bool:
        """Whether the element may be in the archive only."""
        return bool(self.cut) and not self.member and not self.gone

    def add(self, number: int) -> "Element":
        """Return the element after an addition."""
        return self._replace(member=number, gone=0) if number > self.version else self

    def remove(self, number: int) -> "Element":
        """Return the element after a removal."""
        return self._replace(member=0, gone=number) if number > self.version else self

    def trim(self, up_to: int) -> "Element":
        """Return the element after a trim of its tombstone."""
        return self._replace(gone=0, trimmed=max(self.trimmed, self.gone)) if 0 < self.gone <= up_to else self

    def cut_to(self, up_to: int) -> "Element":
        """Return the element after a cut of archived elements."""
        return self._replace(member=0, cut=up_to) if 0 < self.member <= up_to else self

    @staticmethod
    def forget(floor: int) -> "Element":
        """Return the element after its set was deleted; only the floor stays."""
        return Element(trimmed=floor)


class Job(NamedTuple):
    """A projection of an event whose next step is `step`."""

    number: int
    step: int = 0


class Client(NamedTuple):
    """A tab: its remaining operations, whether the session was checked, and its current projection."""

    operations: tuple[str, ...]
    is_checked: bool = False
    job: Job | None = None


class Eraser(NamedTuple):
    """An eraser and its next step, which may need all events up to `up_to`."""

    up_to: int
    step: str = "wait"


class State(NamedTuple):
    """The log, the slots, and everything that runs.

    `cold` is the other side's count of archived elements. `is_buried` means that the user has a tombstone, `erasing`
    that the user waits for an eraser.
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


def standing(log: Sequence[str], up_to: int) -> int:
    """Return the number of the event that added the element, or 0 if it is not there after the first `up_to` events."""
    last = max((n for n, kind in enumerate(log[:up_to], 1) if kind in ("add", "remove")), default=0)
    return last if last and log[last - 1] == "add" else 0


def deletion_of(log: Sequence[str]) -> int:
    """Return the number of the user's deletion, or 0 if the user is not deleted."""
    return next((n for n, kind in enumerate(log, 1) if kind == "delete"), 0)
