"""The states that the explorer of the rule for plain reposts visits, and the steps that several of its parts share."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

COLD, DROPPED = -1, -2
"""States of the original besides 0, hot, and the number of its deletion. The two look alike in the store."""


class Entry(NamedTuple):
    """An event: of kind `repost`, `unrepost` of the repost `target`, or `delete` of the original."""

    kind: str
    target: int = 0


class Register(NamedTuple):
    """One element of a versioned set: the numbers of the member and of the tombstone, and the tombstone floor."""

    member: int = 0
    gone: int = 0
    floor: int = 0

    @property
    def version(self) -> int:
        """The number of the last event that changed the element."""
        return self.member or self.gone or self.floor

    def add(self, number: int) -> "Register":
        """Return the element after an addition."""
        return Register(number, 0, self.floor) if number > self.version else self

    def remove(self, number: int) -> "Register":
        """Return the element after a removal."""
        return Register(0, number, self.floor) if number > self.version else self

    def trim(self, up_to: int) -> "Register":
        """Return the element after a trim of its tombstone."""
        return Register(self.member, 0, max(self.floor, self.gone)) if 0 < self.gone <= up_to else self


class Listed(NamedTuple):
    """A list under a post: the reposts in it, the tombstones with their numbers, and the tombstone floor."""

    members: frozenset[int] = frozenset()
    gone: frozenset[tuple[int, int]] = frozenset()
    floor: int = 0

    def add(self, repost: int) -> "Listed":
        """Return the list after an addition. A repost is added and removed once."""
        if repost <= self.floor or any(each == repost for each, _ in self.gone):
            return self
        return self._replace(members=self.members | {repost})

    def remove(self, reposts: Collection[int], number: int) -> "Listed":
        """Return the list after a removal. If a repost is removed several times, the lowest number counts."""
        if number <= self.floor:
            return self
        return self._replace(members=self.members.difference(reposts), gone=with_tombstones(self.gone, reposts, number))

    def trim(self, up_to: int) -> "Listed":
        """Return the list after a trim of its tombstones."""
        old = [number for _, number in self.gone if number <= up_to]
        gone = frozenset(each for each in self.gone if each[1] > up_to)
        return self._replace(gone=gone, floor=max(self.floor, *old, 0)) if old else self


class Job(NamedTuple):
    """A projection of an event whose next step is `step`. `found` is the result of the previous steps."""

    number: int
    by_worker: bool
    step: str = "begin"
    found: int = 0


class Client(NamedTuple):
    """A tab: its remaining operations, the next step, and the values that the operation has read.

    `version` is that of the register, `watermark` was read before it, `since` is the length of the log at the start.
    """

    operations: tuple[str, ...]
    step: str = "begin"
    version: int = 0
    watermark: int = 0
    since: int = 0
    job: Job | None = None


class State(NamedTuple):
    """The log, the idempotency keys, the three slots, and everything that runs.

    `reposts` is the list under the original, `reposted` the original in the user's register. `listed` are the reposts
    in the user's timeline, and `unlisted` its tombstones, as pairs of a repost and a number. `records` are the reposts
    with a record, and `buried` those with a tombstone, with its number.
    """

    clients: tuple[Client, ...]
    log: tuple[Entry, ...] = ()
    used: frozenset[tuple[str, int]] = frozenset()
    original: int = 0
    reposts: Listed = Listed()
    reposted: Register = Register()
    listed: frozenset[int] = frozenset()
    unlisted: frozenset[tuple[int, int]] = frozenset()
    records: frozenset[int] = frozenset()
    buried: frozenset[tuple[int, int]] = frozenset()
    jobs: tuple[Job, ...] = ()
    projected: int = 0
    archived: int = 0
    late: int = 0


def bury(state: State, reposts: Collection[int], number: int) -> State:
    """Replace records with tombstones that have this number. If a record has several, the lowest number counts."""
    buried = with_tombstones(state.buried, reposts, number)
    return state._replace(buried=buried, records=state.records.difference(reposts))


def with_tombstones(
    held: frozenset[tuple[int, int]], elements: Collection[int], number: int
) -> frozenset[tuple[int, int]]:
    """Return tombstones after adding one with a number for each element. An element keeps its lowest number."""
    numbers = dict(held)
    numbers.update({element: min(number, numbers.get(element, number)) for element in elements})
    return frozenset(numbers.items())


def appended(state: State, entry: Entry, key: str) -> tuple[State, tuple[int, bool]]:
    """Return the state after an append, the number of the event, and whether it is new."""
    used = dict(state.used)
    if key in used:
        return state, (used[key], False)
    number = len(state.log) + 1
    return state._replace(log=(*state.log, entry), used=state.used | {(key, number)}), (number, True)


def next_operation(client: Client) -> Client:
    """Return a client at the beginning of its next operation."""
    return Client(client.operations[1:])


def watermark_of(state: State) -> int:
    """Return the number up to which every event is projected."""
    number = 0
    while state.projected >> number & 1:
        number += 1
    return number


def latest(state: State, watermark: int) -> int:
    """Return the last event of the pair after the watermark or in the register, or 0."""
    after = [n for n, entry in enumerate(state.log, 1) if n > watermark and entry.kind != "delete"]
    return max(state.reposted.member, state.reposted.gone, *after, 0)


def is_repost(log: Sequence[Entry], number: int) -> bool:
    """Return True if the event with this number is a repost."""
    return log[number - 1].kind == "repost"


def standing(log: Sequence[Entry], up_to: int) -> int:
    """Return the repost that exists after the first `up_to` events, or 0 if there is none."""
    last = max((n for n, entry in enumerate(log[:up_to], 1) if entry.kind != "delete"), default=0)
    return last if last and is_repost(log, last) else 0


def deletion(log: Sequence[Entry]) -> int:
    """Return the number of the deletion of the original, or 0 if it is not deleted."""
    return next((n for n, entry in enumerate(log, 1) if entry.kind == "delete"), 0)
