"""An exhaustive explorer of the rule for likes below the floor (`graph/scripts/change_likes.lua`).

A history is a sequence of likes and unlikes of one post, with the numbers 1, 2, …. The explorer visits every state that
projections and their repetitions, cuts, trims and the archiver can reach, in any order, with a crash between any two
steps. A projection whose user is in neither set asks the archive in a separate step, so that floors and the archive may
change before the answer is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_RUNNING = 2


class Change(NamedTuple):
    """A like or an unlike by a user. The user is an index of the tuples."""

    user: int
    is_like: bool


class Running(NamedTuple):
    """A projection of an event that was told to ask about `floor`; `was_liked` is -1 until the archive answers."""

    number: int
    floor: int
    was_liked: int = -1


class Cut(NamedTuple):
    """A cut up to `up_to` that has read the floor and the live rows of the archive: a number or 0 for each user."""

    floor: int
    up_to: int
    rows: tuple[int, ...]


class State(NamedTuple):
    """Everything that decides what may happen next.

    `projected` is a bit mask of the events that were projected completely. `archived` is the archive watermark.
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
    """The rule, and versions of it with a part left out."""

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
    """Explores one history. `users` is the number of users in it."""

    def __init__(self, history: tuple[Change, ...], rule: Rule = Rule()) -> None:
        self.history = history
        self.users = 1 + max(change.user for change in history)
        self.rule = rule
        up_to = range(len(history) + 1)
        self.lives = [[live(history[:number], user) for number in up_to] for user in range(self.users)]
        self.watermarks = [watermark(projected) for projected in range(2 << len(history))]

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

    def check(self, state: State) -> None:
        """Check the count of the likes below the floor and, once everything is projected, the count and the pages."""
        below = max(state.floor, state.trimmed)
        known = [bool(m or t) for m, t in zip(state.members, state.tombstones, strict=True)]
        cold = [user for user, lives in enumerate(self.lives) if not known[user] and lives[below]]
        if state.cold != len(cold):
            raise Wrong(f"{state.cold} likes are counted below the floor, not {len(cold)}: {self.history} {state}")
        if self.watermarks[state.projected] < len(self.history):
            return
        liked = {user: lives[-1] for user, lives in enumerate(self.lives) if lives[-1]}
        if sum(map(bool, state.members)) + state.cold != len(liked):
            raise Wrong(f"the count is not {len(liked)}: {self.history} {state}")
        rows = {user: lives[state.archived] for user, lives in enumerate(self.lives) if not known[user]}
        page = {user: number for user, number in enumerate(state.members) if number}
        page |= {user: number for user, number in rows.items() if 0 < number <= state.floor}
        if page != liked:
            raise Wrong(f"a page shows {page}, not {liked}: {self.history} {state}")

    def successors(self, state: State) -> Iterator[State]:
        """Yield the states after each possible next step."""
        watermark = self.watermarks[state.projected]
        if state.archived < watermark:
            yield state._replace(archived=state.archived + 1)
        if len(state.running) < MOST_RUNNING:
            for number in range(1, len(self.history) + 1):
                yield self.project(state, Running(number, -1))
        for place, work in enumerate(state.running):
            if work in state.running[:place]:
                continue
            without = with_all_running(state, (*state.running[:place], *state.running[place + 1 :]))
            yield without  # the process crashes
            if work.was_liked >= 0:
                yield self.project(without, work)
            elif work.floor <= state.archived:
                was_liked = int(self.lives[self.history[work.number - 1].user][work.floor] > 0)
                yield with_running(without, Running(work.number, work.floor, was_liked))
        yield from self.trims(state, watermark)
        yield from self.cuts(state, watermark)

    def trims(self, state: State, watermark: int) -> Iterator[State]:
        """Yield the states after trims of tombstones."""
        up_to = min(watermark, state.archived) if self.rule.trims_only_archived else watermark
        for highest in {tombstone for tombstone in state.tombstones if 0 < tombstone <= up_to}:
            kept = tuple(0 if tombstone <= highest else tombstone for tombstone in state.tombstones)
            yield state._replace(tombstones=kept, trimmed=highest)

    def cuts(self, state: State, watermark: int) -> Iterator[State]:
        """Yield the states after the two steps of a cut: the read of the archive, and the script."""
        up_to = min(watermark, state.archived) if self.rule.cuts_only_archived else watermark
        if state.cut is None:
            for highest in {member for member in state.members if state.floor < member <= up_to}:
                rows = [lives[state.archived] for lives in self.lives]
                within = tuple([row if state.floor < row <= highest else 0 for row in rows])
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
        counted = 0
        if not version:
            floor = max(state.floor, state.trimmed) if self.rule.stops_below_archive_floor else state.trimmed
            asked = max(state.floor, state.trimmed) if self.rule.asks_about_both_floors else state.floor
            version = floor
            if number > floor and state.floor and self.rule.asks:
                if work.was_liked < 0 or (work.floor != asked and self.rule.rechecks):
                    return with_running(state, Running(number, asked))
                counted = work.was_liked
        if number <= version and state.projected >> number & 1:
            return state
        members, tombstones, floor, trimmed, cold, projected, archived, running, cut = state
        if number > version:
            like, tombstone = (number, 0) if is_like else (0, number)
            members = (*members[:user], like, *members[user + 1 :])
            tombstones = (*tombstones[:user], tombstone, *tombstones[user + 1 :])
        projected |= 1 << number
        return State(members, tombstones, floor, trimmed, cold - counted, projected, archived, running, cut)


def live(history: Sequence[Change], user: int) -> int:
    """Return the number of a user's like after a history, or 0 if the user does not like the post then."""
    last = max((number for number, change in enumerate(history, 1) if change.user == user), default=0)
    return last if last and history[last - 1].is_like else 0


def watermark(projected: int) -> int:
    """Return the number up to which every event is projected."""
    number = 0
    while projected >> (number + 1) & 1:
        number += 1
    return number


def with_running(state: State, work: Running) -> State:
    """Return the state with one more projection, which waits for its next step."""
    return with_all_running(state, (*state.running, work) if state.running <= (work,) else (work, *state.running))


def with_all_running(state: State, all_running: tuple[Running, ...]) -> State:
    """Return the state with these projections in place of its own."""
    members, tombstones, floor, trimmed, cold, projected, archived, _, cut = state
    return State(members, tombstones, floor, trimmed, cold, projected, archived, all_running, cut)
