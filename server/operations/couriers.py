"""Couriers of subscriptions over WebSockets: they send what a shared run gives, without waking any task."""

import logging
from collections.abc import Callable
from typing import TypeAlias

from graph.feed.updates import Change
from resolvers.context import Context
from server.operations.completion import Completion
from server.operations.live_events import Group, Outcome, SharedRun
from server.operations.observation import Observation

SendNow: TypeAlias = Callable[[bytes], bool]
"""Sends a result given as JSON. Returns False, and has sent nothing, if that would have to wait for the client."""

logger = logging.getLogger("fanline.server")


class SocketCourier:
    """The courier of one subscription. It takes no updates before `start`.

    The subscription's task sends what the courier cannot: results with errors, and those of clients that do not read.
    `Completion` keeps the outcome for it.
    """

    __slots__ = ("_completion", "_context", "_group", "_live_from", "_observation", "_run", "_send", "_taken")

    def __init__(self, send: SendNow, observation: Observation) -> None:
        self._send = send
        self._observation = observation
        self._live_from = 0
        self._group: Group | None = None
        self._run: SharedRun | None = None
        self._taken: tuple[Change, Callable[[bool], None]] | None = None

    def start(self, completion: Completion, context: Context, live_from: int) -> None:
        """Take updates from now on, if the subscription belongs to a group."""
        self._completion = completion
        self._context = context
        self._live_from = live_from
        self._group = completion.group

    def take(self, update: Change, settle: Callable[[bool], None]) -> bool:
        """Join the run of an update.

        Return False if the subscription belongs to no group, or its viewer has to wait for points.
        """
        group = self._group
        if group is None or self._completion.delay():
            return False
        self._taken = update, settle
        run = self._run = group.run_of(update)
        group.join(run, self._context, self._deliver)
        return True

    def leave(self) -> None:
        """Drop the update that was taken, if any: the subscription has ended."""
        run, self._run, self._taken = self._run, None, None
        if run is not None:
            run.leave()

    def _deliver(self, outcome: Outcome) -> None:
        taken, run, self._run, self._taken = self._taken, self._run, None, None
        if taken is None or run is None:
            return
        update, settle = taken
        self._completion.charge_shared(run.size, outcome)
        if self._group is not None and not self._group.operation.is_independent:
            self._context.forget()  # what the run has loaded in it: the task may complete the next event
        if isinstance(outcome, bytes) and self._has_sent(outcome):
            self._observation.delivered(update, self._live_from)
            settle(True)
        else:
            self._completion.keep(update, outcome)
            settle(False)

    def _has_sent(self, payload: bytes) -> bool:
        try:
            return self._send(payload)
        except Exception:
            logger.exception("A result could not be sent")
            return False
