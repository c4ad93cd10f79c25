"""Delivers updates without waking the task of their subscription: waking costs more than all other steps together.

The task of a live subscription waits for its buffer most of the time. If an update arrives then, and nothing has to be
awaited before it is sent, a *courier* takes it from the buffer and delivers it. Until the update is delivered, it
counts as buffered, the task keeps sleeping, and later updates wait. Updates that the courier cannot deliver return to
the front of the buffer, and the task sends them. The task also handles everything else that happens to a subscription.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from graph.feed.updates import Change, PostAdded, RepostAdded, UserFollowed, UserUnfollowed

HANDED_OVER = (PostAdded, RepostAdded, UserFollowed, UserUnfollowed)
"""The types of updates that couriers take. Other types need work from the subscription's task before they are sent."""


class Courier(Protocol):
    """Delivers the updates of one subscription, one at a time."""

    def take(self, update: Change, settle: Callable[[bool], None]) -> bool:
        """Take an update if it can be delivered without waiting for the client. Return True if it was taken.

        `settle` is called later, not during the call: with True if the update was delivered, otherwise with False.
        """

    def leave(self) -> None:
        """Drop the update that was taken, if any, without calling `settle`: the subscription has ended."""


class Handover:
    """The subscriptions of a process that have an update for their couriers.

    An update is handed over when the subscription's task would otherwise run: after the reader has passed on the whole
    batch of events.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[float], None]] = deque()

    def add(self, hand_over: Callable[[float], None]) -> None:
        """Call a function in the next iteration of the event loop, with the loop's time. O(1)."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        self._waiting.append(hand_over)

    def _run(self) -> None:
        waiting, now = self._waiting, asyncio.get_running_loop().time()
        try:
            while waiting:
                waiting.popleft()(now)
        finally:
            if waiting:
                asyncio.get_running_loop().call_soon(self._run)
