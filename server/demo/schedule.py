"""Planned events of the demo world, and their event numbers."""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum, auto
from typing import TypeAlias

from graph.log.events import Event, EventBody
from graph.model import number_at
from server.demo.world import spread_apart

Planned: TypeAlias = tuple[datetime, EventBody]
"""An event and its approximate time, which `numbered` shifts to a millisecond that no other event has."""


class Lane(IntEnum):
    """The kinds of events. The millisecond of an event, modulo the number of kinds, is the number of its kind.

    Events of different kinds therefore never have the same time.
    """

    JOINING = 0
    FOLLOWING = auto()
    PUBLISHING = auto()
    REPLYING = auto()
    ANSWERING = auto()
    QUOTING = auto()
    REPOSTING = auto()
    LIKING = auto()
    UNDOING = auto()


def by_time(plans: Sequence[Planned]) -> list[Planned]:
    """Return planned events in chronological order."""
    return sorted(plans, key=lambda plan: plan[0])


def numbered(plans: Sequence[Planned], lane: Lane) -> list[Event]:
    """Return planned events, in chronological order, with the numbers that the log will give them."""
    times = spread_apart((at for at, _ in plans), lane, len(Lane))
    return [Event(number_at(at), body) for at, (_, body) in zip(times, plans, strict=True)]
