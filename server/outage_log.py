"""The log of outages that make operations fail: the first error at once, then the number of errors once a minute."""

import logging
import time
from collections import Counter

MINUTE = 60.0

logger = logging.getLogger("fanline.server")


class OutageLog:
    """Counts errors by code, and logs them once a minute."""

    def __init__(self) -> None:
        self._errors: Counter[str] = Counter()
        self._next = 0.0

    def add(self, code: str, reason: str) -> None:
        """Count an error. At most once a minute, log this reason and the counts since the previous line."""
        self._errors[code] += 1
        now = time.monotonic()
        if now >= self._next:
            found = ", ".join(f"{each} ({count:,})" for each, count in self._errors.most_common())
            logger.warning("Operations failed because of an outage: %s. The last reason: %s", found, reason)
            self._errors.clear()
            self._next = now + MINUTE
