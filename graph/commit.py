"""The commit of a change: one append to the log, and the projection that the next read depends on."""

from collections.abc import Sequence

from graph.binding import Binding
from graph.errors import StoreReplaced
from graph.log.events import Event, EventBody
from graph.log.log import IdempotencyKey, Log
from graph.projections.mode import Mode
from graph.projections.projections import Projections


class Commit:
    """Commits events. Users, posts, follows and sessions write through the same instance."""

    def __init__(self, log: Log, projections: Projections, binding: Binding) -> None:
        self._log = log
        self._projections = projections
        self._binding = binding

    async def __call__(self, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None = None) -> list[Event]:
        """Append events to the log, and project what must be visible when a mutation returns.

        Return the events with their numbers. The append is the commit: if the process ends before the projection, a
        worker projects the events. Raises Rejected (IDEMPOTENCY_MISMATCH), StoreUnavailable, and Overloaded if the log
        is full. One round trip for the append, plus those of `Projections.project`.
        """
        if not bodies:
            return []
        events = await self._append(bodies, idempotency_key)
        await self._projections.project(events, Mode.REQUEST)
        return events

    async def _append(self, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None) -> list[Event]:
        """Append events; check the binding again if the store was rebuilt since it was read."""
        try:
            return await self._log.append(bodies, idempotency_key, binding=await self._binding.token())
        except StoreReplaced:
            self._binding.forget()
            return await self._log.append(bodies, idempotency_key, binding=await self._binding.token())
