"""The state after the last event, projected or not.

A request appends no event if the store says that its change is already done, and the last event confirms that. The
store alone is not enough: the event of a request that failed or was interrupted after its commit is projected later,
and could undo the change. If the store says that there is something to change, the event is appended, perhaps a second
time: projections are idempotent.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from graph.log.events import Event
from graph.log.log import Log
from graph.store.commands import Command
from graph.store.store import Store

S = TypeVar("S")


class Latest(NamedTuple):
    """Replies of the store, and the events that may not be projected yet. The events override the replies.

    `events` is None if there are too many of them to search.
    """

    rows: list[Any]
    events: Sequence[Event] | None

    def after(self, state: S, apply: Callable[[S, Event], S]) -> S:
        """Apply the events to a state from the replies, and return the result."""
        return reduce(apply, self.events or (), state)


async def read_latest(store: Store, log: Log, reads: Sequence[Command], watermark: int) -> Latest:
    """Return the replies to reads, and the events above a watermark that was read earlier.

    If there are too many events to search, a caller appends its event in any case, or trusts the store. One round trip,
    and one per 500 of these events.
    """
    rows, events = await asyncio.gather(store.read(reads), log.unprojected(watermark))
    return Latest(rows, events)
