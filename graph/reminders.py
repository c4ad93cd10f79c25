"""Limits log messages about lasting problems: each is logged when it is new, and once a minute while it repeats."""

import time

SECONDS = 60.0


class Reminder:
    """Decides whether a message is due."""

    def __init__(self) -> None:
        self._last = ""
        self._next = 0.0

    def is_due(self, message: str) -> bool:
        """Return True if the message differs from the last one, or a minute has passed since it was last due."""
        now = time.monotonic()
        if message == self._last and now < self._next:
            return False
        self._last, self._next = message, now + SECONDS
        return True
