"""The steps of a projection: each applies events of certain kinds. Their order is defined in one place."""

from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from graph.home.pacing import Pace
from graph.log.events import Event
from graph.projections.mode import Mode

Bodies: TypeAlias = Sequence[tuple[int, Any]]
"""The numbers and bodies of events."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The mode and the pace of a projection, and the number up to which tombstones may be trimmed."""

    mode: Mode
    pace: Pace
    trim_up_to: int


@dataclass(frozen=True, slots=True)
class Step:
    """Applies all events of certain kinds in a batch: `run` gets them grouped by kind, in this order."""

    kinds: tuple[type, ...]
    run: Callable[[Bodies, Circumstances], Awaitable[None]]


class Steps:
    """Steps in the order in which they run. No two have a kind in common. Events of other kinds change nothing."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._places = {kind: place for place, step in enumerate(steps) for kind in step.kinds}

    @property
    def kinds(self) -> Set[type]:
        """The kinds of events that any step applies."""
        return self._places.keys()

    async def run(self, events: Iterable[Event], circumstances: Circumstances) -> None:
        """Run the steps for which there are events. The other steps cost nothing."""
        by_kind: dict[type, list[tuple[int, Any]]] = {}
        for event in events:
            by_kind.setdefault(type(event.body), []).append((event.number, event.body))
        for place in sorted({self._places[kind] for kind in by_kind if kind in self._places}):
            step = self._steps[place]
            bodies = [pair for kind in step.kinds for pair in by_kind.get(kind, ())]
            await step.run(bodies, circumstances)
