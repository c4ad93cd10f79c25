"""Formatting of the times in event numbers as `DateTime` values: RFC 3339 in UTC, with milliseconds.

A page has dozens of times. Formatting each one with `datetime` would take longer than looking up its post.
"""

from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import NewType

from graph.model import EPOCH, SEQUENCE_BITS

FormattedTime = NewType("FormattedTime", str)
"""A time in the format of the scalar `DateTime`."""

DAY = 86_400_000  # milliseconds
MINUTES = [f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60)]
SECONDS = [f"{second:02}." for second in range(60)]
MILLISECONDS = [f"{millisecond:03}Z" for millisecond in range(1000)]


def format_times(numbers: Iterable[int]) -> list[FormattedTime]:
    """Return the times when events with these numbers were appended, such as `2026-01-02T03:04:05.678Z`."""
    formatted: list[FormattedTime] = [
        format_date(milliseconds // DAY)  # type: ignore[misc]
        + MINUTES[milliseconds // 60_000 % 1440]
        + SECONDS[milliseconds // 1000 % 60]
        + MILLISECONDS[milliseconds % 1000]
        for milliseconds in [number >> SEQUENCE_BITS for number in numbers]
    ]
    return formatted


@cache
def format_date(day: int) -> str:
    """Return the date of a day, such as `2026-01-02`. Days are counted from the epoch of event numbers."""
    return (EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")
