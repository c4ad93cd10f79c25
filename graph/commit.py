"""The commit of a change: one append to the log, and the projection that the next read depends on."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from graph.archive.usage import used_by
from graph.binding import Binding
from graph.errors import StoreReplaced, StoreUnavailable
from graph.home.fan_out import FanOutInterrupted
from graph.log.account_events import UserDeleted
from graph.log.event_ids import ids_in
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    SessionsEnded,
    Unfollowed,
)
from graph.log.log import Appended, IdempotencyKey, Log
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.store.capacity import Capacity
from graph.unshown import UNSHOWN

PROJECTION_SECONDS = 4.0
"""The time limit for projecting fewer than 100 events, longer than a failover takes. For every 100 events, the limit
increases by the same amount."""
IMMEDIATE = (
    PasswordChanged,
    SessionsEnded,
    PermissionGranted,
    PermissionRevoked,
    UserSuspended,
    UserUnsuspended,
    UserDeleted,
)
"""Kinds of events that must be projected before a change succeeds, because revoked tokens, old passwords and revoked
permissions must stop working at once."""
MUST_BE_PROJECTED = (PostDeleted, Unfollowed, Blocked, Muted)
"""Kinds of events that must be projected within the time limit for a change to succeed, because the content that they
hide must not be shown afterwards."""
QUIET_SECONDS = 1.0

logger = logging.getLogger("fanline.commit")


class Commit:
    """Commits events. Users, posts, follows and sessions write through the same instance.

    `left_to_worker` counts the commits whose projection was left to the worker.
    """

    def __init__(self, log: Log, projections: Projections, binding: Binding, capacity: Capacity) -> None:
        self._log = log
        self._projections = projections
        self._binding = binding
        self._capacity = capacity
        self._quiet_until = 0.0
        self.left_to_worker = 0

    async def __call__(
        self,
        bodies: Sequence[EventBody],
        idempotency_key: IdempotencyKey | None = None,
        *,
        erasing: bool = False,
    ) -> list[Event]:
        """Append events to the log, and project the changes that must be visible when a mutation returns.

        Return the events with their numbers. The append is the commit. If the projection is not completed, because the
        process ends, a shard does not answer or the time limit passes, a worker completes it. Raises Rejected
        (IDEMPOTENCY_MISMATCH), StoreUnavailable if the events may not be in the log, Overloaded if the log is full or
        the store nearly full, and ClockAhead. Unless `erasing` is True, it raises AccountDeleted and FolloweesDeleted
        for events of deleted users. For events of the types in `IMMEDIATE` and `MUST_BE_PROJECTED`, it also raises
        StoreUnavailable if they were appended but not projected. One round trip for the append, plus those of
        `Projections.project`.
        """
        events, _ = await self.idempotently(bodies, idempotency_key, erasing=erasing)
        return events

    async def idempotently(
        self, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None, *, erasing: bool = False
    ) -> tuple[list[Event], bool]:
        """Commit like `__call__`, and also return whether the events are new: False if the key was used before."""
        if not bodies:
            return [], False
        refusal = self._capacity.refusal_of_changes()
        append = partial(self._log.append_once, bodies, idempotency_key, refusal=refusal, erasing=erasing)
        appended = await self._append(append)
        events = [event for event in appended.events if event.number not in appended.missing]
        with used_by(None):  # the caller is not charged for projections, which other users wait for, too
            if any(isinstance(body, IMMEDIATE) for body in bodies):
                await self._projections.project(events, Mode.REQUEST)
            else:
                await self._project(events)
        return appended.events, appended.is_new

    def check_capacity(self) -> None:
        """Raise Overloaded if the store is nearly full. Call it before writes that are not events."""
        self._capacity.check()

    async def _project(self, events: Sequence[Event]) -> None:
        """Project events as far as the store allows within the time limit.

        If only the fan-out to other users is incomplete, a worker completes it. If anything else is incomplete, raise
        StoreUnavailable if the events include `MUST_BE_PROJECTED`, else add the ids in the events to `UNSHOWN`.
        """
        try:
            async with asyncio.timeout(PROJECTION_SECONDS * (1 + len(events) // 100)):
                await self._projections.project(events, Mode.REQUEST)
        except FanOutInterrupted as outage:
            self._leave(outage.reason)
        except (StoreUnavailable, TimeoutError) as outage:
            reason = outage.reason if isinstance(outage, StoreUnavailable) else "the time limit has passed"
            self._leave(reason)
            if any(isinstance(event.body, MUST_BE_PROJECTED) for event in events):
                raise StoreUnavailable(reason) from outage
            if (unshown := UNSHOWN.get()) is not None:
                unshown.update(id_ for event in events for id_ in ids_in(event))

    def _leave(self, reason: str) -> None:
        """Count a projection that is left to the worker, and log the reason, at most once a second."""
        self.left_to_worker += 1
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            logger.warning("A committed change has not been projected yet; a worker will project it: %s", reason)

    async def _append(self, append: Callable[..., Awaitable[Appended]]) -> Appended:
        """Append events. If the store was replaced in the meantime, read its binding again and retry once."""
        try:
            return await append(binding=await self._binding.token())
        except StoreReplaced:
            self._binding.forget()
            return await append(binding=await self._binding.token())
