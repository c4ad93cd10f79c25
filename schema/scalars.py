"""The custom scalars of the API."""

import re
from datetime import UTC, datetime

import strawberry
from graphql import GraphQLError
from strawberry.types.scalar import ScalarDefinition

RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


def print_time(time: datetime | str) -> str:
    """Return a time in UTC, in RFC 3339 format, such as `2026-01-02T03:04:05.678Z`. Return a string unchanged."""
    if isinstance(time, str):
        return time
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime:
    """Return the time that an RFC 3339 string denotes, to the microsecond.

    Raises GraphQLError for another format, and for times that do not exist, such as February 30th or a leap second.
    """
    if not isinstance(text, str) or not RFC_3339.fullmatch(text):
        raise GraphQLError("A DateTime must be a string in the format of RFC 3339, such as 2026-01-02T03:04:05.678Z.")
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise GraphQLError(f"{text} is not a valid date and time: {error}.") from None


print_time.exact = str  # type: ignore[attr-defined]  # read by the executor: it puts values of this type into the response unchanged

DATE_TIME: ScalarDefinition = strawberry.scalar(
    name="DateTime",
    description="A date and time in RFC 3339 format. Results are in UTC, with milliseconds: "
    "`2026-01-02T03:04:05.678Z`. Input may have any UTC offset.",
    specified_by_url="https://scalars.graphql.org/chillicream/date-time.html",
    serialize=print_time,
    parse_value=parse_time,
)
