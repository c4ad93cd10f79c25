"""Logging: one line to stderr per record, limited so that clients cannot fill the disk."""

import logging
import time
from typing import Any

LINES_A_MINUTE = 30  # of one kind
MINUTE = 60.0
LONGEST = 8_000  # characters of a message, and of a traceback


class Throttle(logging.Filter):
    """Passes at most 30 records of one kind per minute, and logs the number of suppressed records.

    Records are of one kind if the same statement logged them. Records below the level WARNING always pass.
    """

    def __init__(self, name: str = "", *, lines: int = LINES_A_MINUTE, clock: Any = time.monotonic) -> None:
        super().__init__(name)
        self._lines = lines
        self._clock = clock
        self._since: dict[tuple[str, int, str], float] = {}
        self._passed: dict[tuple[str, int, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is to be written."""
        if record.levelno < logging.WARNING:
            return True
        kind, now = (record.pathname, record.lineno, record.name), self._clock()
        if now - self._since.get(kind, -MINUTE) >= MINUTE:
            kept_back = max(0, self._passed.get(kind, 0) - self._lines)
            self._since[kind], self._passed[kind] = now, 0
            if kept_back:
                record.msg, record.args = f"{record.getMessage()} ({kept_back:,} more like this were not logged)", ()
        self._passed[kind] += 1
        return self._passed[kind] <= self._lines


class Line(logging.Formatter):
    """Formats a record, and truncates messages and tracebacks, which may quote clients."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record's text, of bounded length."""
        text = super().format(record)
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n…\n{text[-LONGEST // 2 :]}"


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"throttle": {"()": Throttle}},
    "formatters": {"line": {"()": Line, "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["throttle"]}},
    "root": {"level": "INFO", "handlers": ["stderr"]},
    "loggers": {"uvicorn": {"level": "WARNING"}, "alembic": {"level": "WARNING"}},
}
