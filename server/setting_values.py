"""The values of settings: enums, and the formats of durations, lists and counts in the environment."""

import re
from datetime import timedelta
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator, Field

from graph.text.validation import folded_login
from graph.text.web_urls import normal_authority

MAX_COUNT = 2**53  # Lua represents all integers up to this one exactly
MIN_LOG = 10_000  # a hundred times the events that one mutation writes
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # RFC 9110, section 5.6.2
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Env(Enum):
    """Whether the process serves developers or the public."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class LogFormat(Enum):
    """How log messages are written."""

    TEXT = "text"
    JSON = "json"


class TimelineMode(Enum):
    """Whether posts are pushed to followers when published, merged when timelines are read, or both (`hybrid`).

    In `hybrid`, posts of authors with up to `push_limit` followers are pushed, and those of other authors are merged.
    """

    PUSH = "push"
    PULL = "pull"
    HYBRID = "hybrid"


class TrustedDocumentsMode(Enum):
    """Whether trusted documents are ignored (`off`), may be requested (`allow`), or are required (`only`)."""

    OFF = "off"
    ALLOW = "allow"
    ONLY = "only"


def read_duration(value: object) -> object:
    """Parse a duration such as `90s`, `15m`, `24h` or `30 d`. Return a non-string unchanged. Raises ValueError."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d{1,9})\s*([smhd])", value.strip())
    if match is None:
        raise ValueError("must be a number and a unit, like 90s, 15m, 24h or 30d")
    if not int(match[1]):
        raise ValueError("must be longer than zero")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def read_list(value: object) -> object:
    """Return the entries of a string, separated by commas or white space. Return a non-string unchanged."""
    return tuple(re.split(r"[\s,]+", value.strip(", \n\t"))) if isinstance(value, str) else value


def read_hosts(value: object) -> object:
    """Return the hosts in a string, in lower case, with their ports if given. Raises ValueError for an invalid host."""
    hosts = read_list(value)
    if isinstance(hosts, tuple):
        normal = {host: normal_authority(host) for host in hosts if host}
        wrong = [host for host, name in normal.items() if name is None]
        if wrong:
            form = "a domain name, such as media.example.org or media.example.org:8443"
            raise ValueError(f"every host must be {form}, not {wrong[0]!r}")
        return tuple(name for name in normal.values() if name)
    return hosts


def read_logins(value: object) -> object:
    """Return the logins in a string, in lower case. Raises ValueError for an invalid login."""
    logins = read_list(value)
    if not isinstance(logins, tuple):
        return logins
    folded = {login: folded_login(login) for login in logins if login}
    wrong = [login for login, name in folded.items() if name is None]
    if wrong:
        raise ValueError(f"every login must have 2 to 30 characters from a-z, 0-9 and the underscore, not {wrong[0]!r}")
    return tuple(sorted({name for name in folded.values() if name}))


def read_header_names(value: object) -> object:
    """Return the header names in a string, in lower case, without duplicates. Raises ValueError for an invalid name."""
    names = read_list(value)
    if not isinstance(names, tuple):
        return names
    for name in filter(None, names):
        if name == "*" or HEADER_NAME.fullmatch(name) is None:
            raise ValueError(f"every entry must be the name of a header, such as x-client-name, not {name!r}")
    return tuple(sorted({name.lower() for name in names if name}))


Duration = Annotated[timedelta, BeforeValidator(read_duration), Field(gt=timedelta(0))]
Names = Annotated[tuple[str, ...], BeforeValidator(read_list)]
HeaderNames = Annotated[tuple[str, ...], BeforeValidator(read_header_names)]
Hosts = Annotated[tuple[str, ...], BeforeValidator(read_hosts)]
Logins = Annotated[tuple[str, ...], BeforeValidator(read_logins)]
Count = Annotated[int, Field(gt=0, le=MAX_COUNT)]
Share = Annotated[float, Field(gt=0, le=1)]
LogLimit = Annotated[int, Field(ge=MIN_LOG, le=MAX_COUNT)]
