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

MINUTES = [f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60)]
SECONDS = [f"{second:02}." for second in range(60)]
MILLISECONDS = [f"{millisecond:03}Z" for millisecond in range(1000)]


def moments(numbers: Iterable[int]) -> list[Moment]:
    """Write the times at which facts with these numbers were appended, as `2026-01-02T03:04:05.678Z`."""
    return [moment(number) for number in numbers]


def moment(number: int) -> Moment:
    """Write the time at which the fact with this number was appended."""
    seconds, millisecond = divmod(number >> SEQUENCE_BITS, 1000)
    minutes, second = divmod(seconds, 60)
    day, minute = divmod(minutes, 1440)
    return Moment(date(day) + MINUTES[minute] + SECONDS[second] + MILLISECONDS[millisecond])


@cache
def date(day: int) -> str:
    """Write a day, counted since the epoch of numbers."""
    return (EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")
