"""The custom scalars of the API."""

from datetime import UTC, datetime

import strawberry
from strawberry.types.scalar import ScalarDefinition


def print_time(time: datetime | str) -> str:
    """Return a time in UTC as RFC 3339, such as `2026-01-02T03:04:05.678Z`. Return a string unchanged."""
    if isinstance(time, str):
        return time
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime:
    """Return the time that an RFC 3339 string denotes. Raises ValueError if it is malformed or has no UTC offset."""
    if not isinstance(text, str):
        raise ValueError("A DateTime must be a string, such as 2026-01-02T03:04:05.678Z.")
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("A DateTime must have a UTC offset, as in 2026-01-02T03:04:05.678Z.")
    return time


print_time.exact = str  # type: ignore[attr-defined]  # read by the executor: such values are what the response holds

DATE_TIME: ScalarDefinition = strawberry.scalar(
    name="DateTime",
    description="A date and time in UTC as RFC 3339, with milliseconds: `2026-01-02T03:04:05.678Z`.",
    specified_by_url="https://scalars.graphql.org/chillicream/date-time.html",
    serialize=print_time,
    parse_value=parse_time,
)
