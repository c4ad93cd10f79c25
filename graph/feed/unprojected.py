"""The follows, mutes, blocks and log-outs that may not be projected yet, by user, for subscriptions that join.

A subscription loads projected state, such as whom its viewer follows, and then applies the events that the state may
lack. One copy of these events per process makes a join cost the same, however far the workers are behind.
"""

import time

from graph.log.events import Blocked, Event, Followed, Muted, SessionsEnded, Unblocked, Unfollowed, Unmuted

KEEP_SECONDS = 5.0  # a load during which events are forgotten may have to be repeated


def concerns_joins(event: Event) -> bool:
    """Return True for a follow, a mute, a block, the end of each of them, and a log-out."""
    return bool(users_of(event))


def users_of(event: Event) -> tuple[int, ...]:
    """Return the users whose subscriptions an event concerns when they join."""
    match event.body:
        case Followed(user, _) | Unfollowed(user, _) | Muted(user, _) | Unmuted(user, _) | SessionsEnded(user, _):
            return (user,)
        case Blocked(user, other) | Unblocked(user, other):
            return user, other
        case _:
            return ()


class Unprojected:
    """Events that concern joins: all after `since`, and the events up to `watermark` are projected.

    Events are kept in two generations. The older one is forgotten when all of it is projected, at the earliest after
    `KEEP_SECONDS`. Memory: about 300 bytes per event, and up to twice the events that are not projected.
    """

    def __init__(self, since: int) -> None:
        self.since = self.watermark = since
        self._older: dict[int, list[Event]] = {}
        self._newer: dict[int, list[Event]] = {}
        self._end_of_older = since
        self._kept_since = time.monotonic()

    def add(self, event: Event) -> None:
        """Add the next event of the log."""
        for user in users_of(event):
            self._newer.setdefault(user, []).append(event)

    def note_watermark(self, watermark: int, head: int) -> None:
        """Note that the events up to `watermark` are projected, and that the last event added is not above `head`."""
        self.watermark = max(self.watermark, watermark)
        now = time.monotonic()
        if self.watermark >= self._end_of_older and now - self._kept_since >= KEEP_SECONDS:
            self.since, self._end_of_older, self._kept_since = self._end_of_older, head, now
            self._older, self._newer = self._newer, {}

    def of(self, user: int) -> list[Event]:
        """Return the events of a user, oldest first."""
        return [*self._older.get(user, ()), *self._newer.get(user, ())]
