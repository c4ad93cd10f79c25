"""The scalar DateTime."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from schema.scalars import parse_time, print_time

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (MOMENT, "2026-01-02T03:04:05.678Z"),
        (MOMENT.replace(microsecond=0), "2026-01-02T03:04:05.000Z"),
        (MOMENT.replace(microsecond=678999), "2026-01-02T03:04:05.678Z"),
        (MOMENT.astimezone(timezone(timedelta(hours=8))), "2026-01-02T03:04:05.678Z"),
    ],
)
def test_prints_utc_to_the_millisecond(time: datetime, text: str) -> None:
    """The output always has milliseconds and ends with Z."""
    assert print_time(time) == text


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05.678Z", "2026-01-02T11:04:05.678+08:00"])
def test_parses_any_utc_offset(text: str) -> None:
    assert parse_time(text) == MOMENT


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-02T03:04:05", 1767323045, None])
def test_rejects_invalid_times(text: object) -> None:
    """A time without a UTC offset is invalid."""
    with pytest.raises(ValueError, match=r"DateTime|isoformat"):
        parse_time(text)
