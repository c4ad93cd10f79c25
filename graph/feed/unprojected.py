"""The follows and log-outs that may not be projected yet, by user, for subscriptions that join.

A subscription loads projected state, such as whom its viewer follows, and then applies the events that the state may
lack. One copy of these events per process makes a join cost the same, however far the workers are behind.
"""

import time

from graph.log.events import Event, Followed, SessionsEnded, Unfollowed

KEEP_SECONDS = 5.0  # a load during which events are forgotten may have to be repeated


def concerns_joins(event: Event) -> bool:
    """Return True for a follow, an unfollow and a log-out."""
    return isinstance(event.body, Followed | Unfollowed | SessionsEnded)


class Unprojected:
    """Follows, unfollows and log-outs: all after `since`, and the events up to `watermark` are projected.

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
        body = event.body
        if isinstance(body, Followed | Unfollowed):
            self._newer.setdefault(body.follower, []).append(event)
        elif isinstance(body, SessionsEnded):
            self._newer.setdefault(body.user, []).append(event)

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
