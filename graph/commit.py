"""The commit of a change: one append to the log, and the projection that the next read depends on."""

from collections.abc import Sequence

from graph.log.events import Event, EventBody
from graph.log.log import IdempotencyKey, Log
from graph.projections.mode import Mode
from graph.projections.projections import Projections


class Commit:
    """Commits events. Users, posts, follows and sessions write through the same instance."""

    def __init__(self, log: Log, projections: Projections) -> None:
        self._log = log
        self._projections = projections

    async def __call__(self, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None = None) -> list[Event]:
        """Append events to the log, and project what must be visible when a mutation returns.

        Return the events with their numbers. The append is the commit: if the process ends before the projection, a
        worker projects the events. Raises Rejected (IDEMPOTENCY_MISMATCH) and StoreUnavailable. One round trip for the
        append, plus those of `Projections.project`.
        """
        events = await self._log.append(bodies, idempotency_key)
        await self._projections.project(events, Mode.REQUEST)
        return events
