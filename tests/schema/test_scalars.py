"""The scalar DateTime."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from graphql import GraphQLError

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


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05.678Z",
        "2026-01-02T11:04:05.678+08:00",
        "2026-01-01T23:34:05.678000000-03:30",
        "2026-01-02t03:04:05.678z",
    ],
)
def test_parses_any_utc_offset(text: str) -> None:
    assert parse_time(text) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "20260102T030405Z",
        "2026-W01-5T03:04:05Z",
        "2026-01-02T03:04Z",
        "2026-01-02T03:04:05,678Z",
        "٢٠٢٦-01-02T03:04:05Z",
        " 2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05Z\n",
        "2026-01-02T24:00:00Z",
        1767323045,
        None,
        [],
    ],
)
def test_rejects_what_is_no_time_of_rfc_3339(text: object) -> None:
    """A time without a UTC offset is invalid."""
    with pytest.raises(GraphQLError, match=r"A DateTime must be a string in the format of RFC 3339, such as 2026-"):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00Z",
        "2026-01-02T03:60:00Z",
        "2016-12-31T23:59:60Z",
        "0000-01-01T00:00:00Z",
        "2026-01-02T03:04:05+24:00",
    ],
)
def test_rejects_times_that_do_not_exist(text: str) -> None:
    """Leap seconds are rejected too."""
    with pytest.raises(GraphQLError, match=f"{re.escape(text)} is not a valid date and time: "):
        parse_time(text)
