"""The scalars of the API."""

from datetime import UTC, datetime

import strawberry
from strawberry.types.scalar import ScalarDefinition


def print_time(time: datetime | str) -> str:
    """Print a time as RFC 3339 in UTC to the millisecond, as `2026-01-02T03:04:05.678Z`; what is printed, stays."""
    if isinstance(time, str):
        return time
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime:
    """Read an RFC 3339 time. Raises ValueError if it is none, or has no offset from UTC."""
    if not isinstance(text, str):
        raise ValueError("A DateTime is a string.")
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("A DateTime needs an offset from UTC, as in 2026-01-02T03:04:05.678Z.")
    return time


print_time.exact = str  # type: ignore[attr-defined]  # read by the executor: such values are what the response holds

DATE_TIME: ScalarDefinition = strawberry.scalar(
    name="DateTime",
    description="A moment as RFC 3339 in UTC, to the millisecond: `2026-01-02T03:04:05.678Z`.",
    specified_by_url="https://scalars.graphql.org/chillicream/date-time.html",
    serialize=print_time,
    parse_value=parse_time,
)
