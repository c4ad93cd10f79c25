"""The rules of blocks as a plain Python model: what a slot holds of one pair of users, and how each event changes it.

The model is small enough to explore every order, repetition and interruption of its steps. The Lua scripts and the fold
follow it.

`a` follows `b`. The slot of `a` has the follow in `following`, the slot of `b` has it in `followers`, and both hold the
blocks of both directions. Events are numbered by their position in the log.
"""

from enum import Enum
from functools import cache
from typing import Literal, NamedTuple


class Kind(Enum):
    """The events that concern the follow of `b` by `a`."""

    FOLLOWED = "a follows b"
    UNFOLLOWED = "a unfollows b"
    BLOCKED_BY_A = "a blocks b"
    UNBLOCKED_BY_A = "a unblocks b"
    BLOCKED_BY_B = "b blocks a"
    UNBLOCKED_BY_B = "b unblocks a"
    MUTED = "a mutes b"
    UNMUTED = "a unmutes b"


BLOCKS = (Kind.BLOCKED_BY_A, Kind.BLOCKED_BY_B)
UNBLOCKS = (Kind.UNBLOCKED_BY_A, Kind.UNBLOCKED_BY_B)
BY_A = (Kind.BLOCKED_BY_A, Kind.UNBLOCKED_BY_A)
FOLLOWS = (Kind.FOLLOWED, Kind.UNFOLLOWED)
MUTES = (Kind.MUTED, Kind.UNMUTED)

State = Literal["absent", "member", "held", "gone"]


class Slot(NamedTuple):
    """What a slot holds: the follow with its number, and the last number of each other register.

    A register is 0 if it has no event, positive if it is set and negative if it is unset.
    """

    state: State = "absent"
    follow: int = 0
    by_a: int = 0
    by_b: int = 0
    muted: int = 0

    @property
    def is_member(self) -> bool:
        """Return True if the follow counts."""
        return self.state == "member"

    @property
    def is_shown(self) -> bool:
        """Return True if posts of `b` belong to the home timeline of `a`."""
        return self.is_member and self.muted <= 0


@cache
def apply(slot: Slot, number: int, kind: Kind) -> Slot:
    """Return the slot after an event, which may be late or repeated."""
    if kind in FOLLOWS:
        if number <= slot.follow:
            return slot
        if kind is Kind.UNFOLLOWED:
            return slot._replace(state="gone", follow=number)
        return placed(slot._replace(state="held", follow=number))
    value = number if kind in (*BLOCKS, Kind.MUTED) else -number
    if kind in MUTES:
        return slot._replace(muted=value) if number > abs(slot.muted) else slot
    if kind in BY_A:
        return placed(slot._replace(by_a=value)) if number > abs(slot.by_a) else slot
    return placed(slot._replace(by_b=value)) if number > abs(slot.by_b) else slot


def placed(slot: Slot) -> Slot:
    """Return the slot with its follow in the right set.

    A follow whose number does not exceed the pair's last block or unblock can never count again.
    """
    if slot.state not in ("member", "held"):
        return slot
    if slot.follow <= max(abs(slot.by_a), abs(slot.by_b)):
        return slot._replace(state="gone")
    return slot._replace(state="held" if slot.by_a > 0 or slot.by_b > 0 else "member")


def follows(log: list[Kind]) -> bool:
    """Return the definition: whether `a` follows `b` after these events.

    A follow counts if it is the last event of the follow, no block stands in either direction, and it came after the
    pair's last block or unblock.
    """
    of_follow = [n for n, kind in enumerate(log) if kind in FOLLOWS]
    of_blocks = [n for n, kind in enumerate(log) if kind in (*BLOCKS, *UNBLOCKS)]
    stands = any(last_of(log, (block, unblock)) is block for block, unblock in zip(BLOCKS, UNBLOCKS, strict=True))
    is_last = bool(of_follow) and log[of_follow[-1]] is Kind.FOLLOWED
    return is_last and not stands and (not of_blocks or of_follow[-1] > of_blocks[-1])


def mutes(log: list[Kind]) -> bool:
    """Return whether `a` mutes `b` after these events."""
    return last_of(log, MUTES) is Kind.MUTED


def last_of(log: list[Kind], kinds: tuple[Kind, ...]) -> Kind | None:
    """Return the last event of these kinds."""
    return next((kind for kind in reversed(log) if kind in kinds), None)
