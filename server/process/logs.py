"""Logging: one line to stderr per record, as text or JSON, limited so that clients cannot fill the disk."""

import logging
import logging.config
import time
from collections.abc import MutableMapping
from copy import deepcopy
from typing import Any

import orjson

from server.log_context import logged_fields
from server.setting_values import LogFormat

LINES_A_MINUTE = 30  # of one kind
MINUTE = 60.0
LONGEST = 8_000  # characters of a message, and of a traceback


class Throttle(logging.Filter):
    """Passes at most 30 records of one kind per minute, and logs the number of suppressed records.

    Records are of the same kind if the same statement logged them. Records below the level WARNING always pass.
    """

    def __init__(self, name: str = "", *, lines: int = LINES_A_MINUTE, clock: Any = time.monotonic) -> None:
        super().__init__(name)
        self._lines = lines
        self._clock = clock
        self._since: dict[tuple[str, int, str], float] = {}
        self._passed: dict[tuple[str, int, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record should be logged."""
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
        """Return a record's text, truncated if it is too long."""
        return shortened(super().format(record))


def shortened(text: str) -> str:
    """Return a text, with its middle removed if it exceeds LONGEST characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n…\n{text[-LONGEST // 2 :]}"


def json_formatter() -> logging.Formatter:
    """Return the formatter that writes a record as a JSON object with the request id and the name of the operation.

    A traceback is written as text and does not contain the values of variables.
    """
    import structlog

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_operation,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            _shorten,
            structlog.processors.JSONRenderer(serializer=_as_json),
        ],
    )


def _add_operation(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event.update(logged_fields())
    return event


def _shorten(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in ("message", "exception"):
        if name in event:
            # a lone surrogate, such as in the name of a file, cannot be encoded in UTF-8
            event[name] = shortened(str(event[name])).encode(errors="backslashreplace").decode()
    return event


def _as_json(event: Any, **_options: Any) -> str:
    return orjson.dumps(event, default=repr, option=orjson.OPT_SORT_KEYS).decode()


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"throttle": {"()": Throttle}},
    "formatters": {"line": {"()": Line, "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["throttle"]}},
    "root": {"level": "INFO", "handlers": ["stderr"]},
    "loggers": {"uvicorn": {"level": "WARNING"}, "alembic": {"level": "WARNING"}},
}


def logging_config(written_as: LogFormat) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`."""
    config = deepcopy(LOGGING)
    if written_as is LogFormat.JSON:
        config["formatters"]["line"] = {"()": json_formatter}
    return config


def configure_logging(written_as: LogFormat) -> None:
    """Configure the log of this process."""
    logging.config.dictConfig(logging_config(written_as))
