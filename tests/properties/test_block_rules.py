"""Every order, repetition and interruption of the projection of follows, blocks and mutes ends in the defined state.

The explorer takes short logs and tries each interleaving of the steps of their projections, a fan-out and a rebuild of
a home cache. A request may stop after any step; a worker projects every event completely.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

import pytest

from tests.properties.block_rules import BLOCKS, BY_A, FOLLOWS, MUTES, UNBLOCKS, Kind, Slot, apply, follows, mutes
from tests.support.exploring import also_at_length

PAIR = (*FOLLOWS, *BLOCKS, *UNBLOCKS)


@pytest.mark.parametrize("length", also_at_length(range(1, 5), [5]))
def test_a_slot_does_not_depend_on_order_or_repetition(length: int) -> None:
    """After all events, in any order and with any of them repeated, the follow counts as the definition says."""
    for log in product(PAIR, repeat=length):
        everything = (1 << length) - 1
        reached = {(0, Slot())}
        waiting = list(reached)
        while waiting:
            applied, slot = waiting.pop()
            if applied == everything:
                assert slot.is_member == follows(list(log)), log
            for index, kind in enumerate(log):
                after = applied | 1 << index, apply(slot, index + 1, kind)
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)


class World(NamedTuple):
    """The slots of `a` and `b`, whether `b` has published the post, and the home cache of `a`.

    The cache is None, or a pair: its token, which is 0 once it is complete, and whether it holds the post.
    """

    of_a: Slot
    of_b: Slot
    published: bool = False
    home: tuple[int, bool] | None = None


Step: TypeAlias = Callable[[World, bool], tuple[World, bool]]
"""An atomic step: it takes the world and the memory of the task, and returns both."""


def in_a(number: int, kind: Kind, *, forget: bool | None = None) -> Step:
    """Return the step in the slot of `a`. It deletes the cache if `forget`, or if that is None and the slot changes."""

    def step(world: World, memory: bool) -> tuple[World, bool]:
        slot = apply(world.of_a, number, kind)
        forgets = slot != world.of_a if forget is None else forget
        return world._replace(of_a=slot, home=None if forgets else world.home), memory

    return step


def in_b(number: int, kind: Kind) -> Step:
    """Return the step in the slot of `b`."""
    return lambda world, memory: (world._replace(of_b=apply(world.of_b, number, kind)), memory)


def forget_home(world: World, memory: bool) -> tuple[World, bool]:
    return world._replace(home=None), memory


def projection(number: int, kind: Kind) -> list[Step]:
    """Return the steps of the projection of an event, as in `graph.projections`."""
    of_a, of_b = in_a(number, kind), in_b(number, kind)
    if kind in MUTES:
        return [in_a(number, kind, forget=True)]
    if kind in FOLLOWS:
        return [of_b, of_a] if kind is Kind.FOLLOWED else [of_a, of_b]
    if kind in BY_A:  # the blocker's slot, the blocked user's slot, the blocker's cache
        return [in_a(number, kind, forget=False), of_b, forget_home]
    return [of_b, in_a(number, kind, forget=True)]


def publish(world: World, memory: bool) -> tuple[World, bool]:
    return world._replace(published=True), memory


def read_followers(world: World, memory: bool) -> tuple[World, bool]:
    return world, world.of_b.is_member


def insert(world: World, memory: bool) -> tuple[World, bool]:
    if memory and world.home is not None and world.of_a.is_shown:
        return world._replace(home=(world.home[0], True)), memory
    return world, memory


def rebuild(token: int) -> list[Step]:
    def begin(world: World, memory: bool) -> tuple[World, bool]:
        return (world._replace(home=(token, False)), world.of_a.is_shown) if world.home is None else (world, False)

    def merge(world: World, memory: bool) -> tuple[World, bool]:
        return world, memory and world.published

    def finish(world: World, memory: bool) -> tuple[World, bool]:
        if world.home is None or world.home[0] != token:
            return world, memory
        return world._replace(home=(0, world.home[1] or memory)), memory

    return [begin, merge, finish]


@dataclass(frozen=True, slots=True)
class Task:
    """Steps that run one after the other. A task that may stop can omit any number of its last steps."""

    steps: Sequence[Step]
    may_stop: bool = False


def outcomes(tasks: Sequence[Task]) -> Iterator[World]:
    """Yield the worlds after all tasks, for each interleaving of their steps."""
    start = (World(Slot(), Slot()), tuple((0, False) for _ in tasks))
    reached, waiting = {start}, [start]
    while waiting:
        world, places = waiting.pop()
        if all(place == len(task.steps) or task.may_stop for task, (place, _) in zip(tasks, places, strict=True)):
            yield world
        for index, (task, (place, memory)) in enumerate(zip(tasks, places, strict=True)):
            if place < len(task.steps):
                changed, remembered = task.steps[place](world, memory)
                after = changed, (*places[:index], (place + 1, remembered), *places[index + 1 :])
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)


def check(log: Sequence[Kind], *, repeated: Sequence[int]) -> None:
    """Check all interleavings of the projection of a log by workers, and of some events by requests that may stop."""
    projections = [projection(number, kind) for number, kind in enumerate(log, 1)]
    tasks = [Task(steps) for steps in projections]
    tasks += [Task(projections[index], may_stop=True) for index in repeated]
    tasks += [Task([publish, read_followers, insert]), Task([*rebuild(1), *rebuild(2)])]
    expected = follows(list(log))
    for world in outcomes(tasks):
        assert world.of_a.is_member == world.of_b.is_member == expected
        shown = expected and not mutes(list(log))
        assert world.home is None or world.home[0] != 0 or world.home[1] == shown, (log, world)


@pytest.mark.long
def test_caches_are_right_after_two_events() -> None:
    """Each event is also projected by a request that stops after any step."""
    for log in product((*PAIR, *MUTES), repeat=2):
        check(log, repeated=(0, 1))


BLOCKED_WHILE_FOLLOWING = [
    (Kind.BLOCKED_BY_A, Kind.FOLLOWED, Kind.UNBLOCKED_BY_A),
    (Kind.BLOCKED_BY_B, Kind.FOLLOWED, Kind.UNBLOCKED_BY_B),
    (Kind.FOLLOWED, Kind.BLOCKED_BY_A, Kind.UNBLOCKED_BY_A),
    (Kind.BLOCKED_BY_A, Kind.UNBLOCKED_BY_A, Kind.FOLLOWED),
    (Kind.BLOCKED_BY_B, Kind.UNBLOCKED_BY_B, Kind.FOLLOWED),
    (Kind.FOLLOWED, Kind.MUTED, Kind.UNMUTED),
]


@pytest.mark.parametrize("log", BLOCKED_WHILE_FOLLOWING)
def test_caches_are_right_after_three_events(log: Sequence[Kind]) -> None:
    check(log, repeated=(2,))


@pytest.mark.long
@pytest.mark.parametrize("first", [*PAIR, *MUTES])
def test_caches_are_right_after_any_three_events(first: Kind) -> None:
    for rest in product((*PAIR, *MUTES), repeat=2):
        check((first, *rest), repeated=())
