"""How the values of settings are written in the environment: durations, lists, counts."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

MAX_COUNT = 2**53  # integers that Lua scripts count exactly
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_duration(value: object) -> object:
    """Read `90s`, `15m`, `24h` or `30 d`. Raises ValueError for any other text."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d{1,9})\s*([smhd])", value.strip())
    if match is None:
        raise ValueError("must be a number and a unit, like 90s, 15m, 24h or 30d")
    if not int(match[1]):
        raise ValueError("must be longer than zero")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def read_list(value: object) -> object:
    """Read entries separated by commas or white space."""
    return tuple(re.split(r"[\s,]+", value.strip(", \n\t"))) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(read_duration), Field(gt=timedelta(0))]
Count = Annotated[int, Field(gt=0, le=MAX_COUNT)]
