"""An exhaustive explorer of the rule for likes below the floor (`graph/scripts/change_likes.lua`).

A history is a sequence of likes and unlikes of one post, with the numbers 1, 2, …. The explorer visits every state
that projections, cuts, trims and the archiver can reach, in any order, with a crash between any two steps, repetitions
included. A projection whose user is in neither set asks the archive in a step of its own, so that floors and the
archive may change before the answer is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MOST_RUNNING = 2


class Change(NamedTuple):
    """A like or an unlike by a user, who is a place in the sets."""

    user: int
    is_like: bool


class Running(NamedTuple):
    """A projection of an event that was told to ask about `floor`; `was_liked` is None until the archive answers."""

    number: int
    floor: int
    was_liked: bool | None = None


class Cut(NamedTuple):
    """A cut up to `upto` that has read the floor and the live rows of the archive: per user a number or 0."""

    floor: int
    upto: int
    rows: tuple[int, ...]


class State(NamedTuple):
    """Everything that decides what may happen next.

    `projected` are the numbers that were projected completely, as bits. `archived` is the archive watermark.
    """

    members: tuple[int, ...]
    tombstones: tuple[int, ...]
    floor: int = 0
    trimmed: int = 0
    cold: int = 0
    projected: int = 0
    archived: int = 0
    running: tuple[Running, ...] = ()
    cut: Cut | None = None


@dataclass(frozen=True)
class Rule:
    """The rule, and the versions of it that leave something out."""

    asks: bool = True
    rechecks: bool = True
    asks_about_both_floors: bool = True
    trims_only_archived: bool = True
    cuts_only_archived: bool = True
    compares_rows: bool = True
    stops_below_archive_floor: bool = True


class Wrong(AssertionError):
    """A reachable state breaks an invariant."""


class Explorer:
    """Explores one history. `users` are the number of users in it."""

    def __init__(self, history: tuple[Change, ...], rule: Rule = Rule()) -> None:
        self.history = history
        self.users = 1 + max(change.user for change in history)
        self.rule = rule
        self.states = 0

    def run(self) -> int:
        """Visit all reachable states, and return their number. Raises Wrong for a state that breaks an invariant."""
        nothing = (0,) * self.users
        first = State(nothing, nothing)
        seen, waiting = {first}, [first]
        while waiting:
            state = waiting.pop()
            self.check(state)
            for after in self.successors(state):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return len(seen)

    def live(self, user: int, upto: int) -> int:
        """Return the number of a user's like as of a number, 0 if the user did not like the post then."""
        for number in range(upto, 0, -1):
            if self.history[number - 1].user == user:
                return number if self.history[number - 1].is_like else 0
        return 0

    def watermark(self, state: State) -> int:
        """Return the number up to which every event is projected."""
        number = 0
        while state.projected >> (number + 1) & 1:
            number += 1
        return number

    def check(self, state: State) -> None:
        """Check the count of the likes below the floor, and once all is projected, the count and the pages."""
        below = max(state.floor, state.trimmed)
        known = [bool(m or t) for m, t in zip(state.members, state.tombstones, strict=True)]
        cold = [user for user in range(self.users) if not known[user] and self.live(user, below)]
        if state.cold != len(cold):
            raise Wrong(f"{state.cold} likes are counted below the floor, not {len(cold)}: {self.history} {state}")
        if self.watermark(state) < len(self.history):
            return
        liked = {user: number for user in range(self.users) if (number := self.live(user, len(self.history)))}
        if sum(map(bool, state.members)) + state.cold != len(liked):
            raise Wrong(f"the count is not {len(liked)}: {self.history} {state}")
        rows = {user: self.live(user, state.archived) for user in range(self.users) if not known[user]}
        page = {user: number for user, number in enumerate(state.members) if number}
        page |= {user: number for user, number in rows.items() if 0 < number <= state.floor}
        if page != liked:
            raise Wrong(f"a page shows {page}, not {liked}: {self.history} {state}")

    def successors(self, state: State) -> Iterator[State]:
        """Yield the states after each step that may come next."""
        watermark = self.watermark(state)
        if state.archived < watermark:
            yield state._replace(archived=state.archived + 1)
        if len(state.running) < MOST_RUNNING:
            for number in range(1, len(self.history) + 1):
                yield self.project(state, Running(number, -1))
        for work in set(state.running):
            rest = list(state.running)
            rest.remove(work)
            without = state._replace(running=tuple(rest))
            yield without  # the process crashes
            if work.was_liked is not None:
                yield self.project(without, work)
            elif work.floor <= state.archived:
                yield with_running(
                    without, work._replace(was_liked=bool(self.live(self.history[work.number - 1].user, work.floor)))
                )
        yield from self.trims(state, watermark)
        yield from self.cuts(state, watermark)

    def trims(self, state: State, watermark: int) -> Iterator[State]:
        """Yield the states after trims of tombstones."""
        upto = min(watermark, state.archived) if self.rule.trims_only_archived else watermark
        for highest in {tombstone for tombstone in state.tombstones if 0 < tombstone <= upto}:
            kept = tuple(0 if tombstone <= highest else tombstone for tombstone in state.tombstones)
            yield state._replace(tombstones=kept, trimmed=highest)

    def cuts(self, state: State, watermark: int) -> Iterator[State]:
        """Yield the states after the two steps of a cut: the read of the archive, and the script."""
        upto = min(watermark, state.archived) if self.rule.cuts_only_archived else watermark
        if state.cut is None:
            for highest in {member for member in state.members if state.floor < member <= upto}:
                rows = (self.live(user, state.archived) for user in range(self.users))
                within = tuple(row if state.floor < row <= highest else 0 for row in rows)
                yield state._replace(cut=Cut(state.floor, highest, within))
            return
        yield state._replace(cut=None)
        floor, highest, within = state.cut
        old = [user for user, member in enumerate(state.members) if 0 < member <= highest]
        if floor == state.floor and (not self.rule.compares_rows or all(state.members[u] == within[u] for u in old)):
            kept = tuple(0 if member <= highest else member for member in state.members)
            yield state._replace(members=kept, floor=highest, cold=state.cold + len(old), cut=None)

    def project(self, state: State, work: Running) -> State:
        """Return the state after the script that projects an event. `work.floor` is -1 if the archive was not asked."""
        number, (user, is_like) = work.number, self.history[work.number - 1]
        version = state.members[user] or state.tombstones[user]
        if not version:
            floor = max(state.floor, state.trimmed) if self.rule.stops_below_archive_floor else state.trimmed
            asked = max(state.floor, state.trimmed) if self.rule.asks_about_both_floors else state.floor
            version = floor
            if number > floor and state.floor and self.rule.asks:
                if work.was_liked is None or (work.floor != asked and self.rule.rechecks):
                    return with_running(state, Running(number, asked))
                state = state._replace(cold=state.cold - work.was_liked)
        if number > version:
            members, tombstones = list(state.members), list(state.tombstones)
            members[user], tombstones[user] = (number, 0) if is_like else (0, number)
            state = state._replace(members=tuple(members), tombstones=tuple(tombstones))
        return state._replace(projected=state.projected | 1 << number)


def with_running(state: State, work: Running) -> State:
    """Return the state with one more projection that waits for its next step."""
    return state._replace(running=tuple(sorted((*state.running, work), key=repr)))
