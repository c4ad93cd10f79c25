"""Moments as the API writes them, straight from the numbers that hold them: RFC 3339 in UTC, to the millisecond.

A page has dozens of times, and to make a `datetime` of each and print that took longer than to look its post up.
"""

from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import NewType

from graph.model import EPOCH, SEQUENCE_BITS

Moment = NewType("Moment", str)
"""A time as the API writes it."""

DAY = 86_400_000  # milliseconds
MINUTES = [f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60)]
SECONDS = [f"{millisecond // 1000:02}.{millisecond % 1000:03}Z" for millisecond in range(60_000)]


def moments(numbers: Iterable[int]) -> list[Moment]:
    """Write the times at which events with these numbers were appended, as `2026-01-02T03:04:05.678Z`."""
    written: list[Moment] = [
        date(milliseconds // DAY) + MINUTES[milliseconds // 60_000 % 1440] + SECONDS[milliseconds % 60_000]  # type: ignore[misc]
        for milliseconds in [number >> SEQUENCE_BITS for number in numbers]
    ]
    return written


@cache
def date(day: int) -> str:
    """Write a day, counted since the epoch of numbers."""
    return (EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")
