"""Tables of the settings, from the fields of `server.settings.Settings`."""

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from functools import partial

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scripts.docs.tables import anchored, markdown
from server.settings import PREFIX, Settings

GROUPS = {
    "process": "env data_dir worker",
    "store": "store_url store_full_at durability replicas archive_url log_retention log_limit hot_posts hot_age "
    "near_cache",
    "timelines": "timeline_mode push_limit home_size sync_followers hibernate_after",
    "accounts": "secret secret_file session_ttl max_following max_blocked media_hosts reserved_logins",
    "web": "allowed_origins allowed_headers trusted_proxies introspection playground",
    "observability": "metrics_token log_format explain trace_endpoint trace_share",
    "documents": "trusted_documents trusted_documents_mode",
    "health": "worker_lag archive_lag max_archive_lag ready_while_degraded",
    "operations": "max_body max_tokens max_depth max_selections max_aliases max_directives max_cost max_event_cost "
    "max_response deadline load_shedding",
    "rates": "rate_limits points_per_minute writes_per_minute log_ins_per_minute sign_ups_per_hour operations_at_once "
    "max_anonymous_streams max_streams max_streams_per_field event_points_per_minute max_filter_terms max_connections",
}
"""The settings by table, in the order of docs/configuration.md."""

IN_WORDS = {
    "data_dir": "a user data folder",
    "store_url": "the embedded store",
    "archive_url": "an SQLite file in the data folder",
    "secret": "made once in the data folder",
    "rate_limits": "on in production, else off",
    "introspection": "open, but closed in production",
    "playground": "open, but closed in production",
    "explain": "on, but off in production",
    "trusted_documents_mode": "allow with trusted documents, off without",
}
"""Descriptions of the defaults that depend on other settings."""


def tables() -> dict[str, Callable[[], str]]:
    """Return the functions that build the tables, by the name of the generated part."""
    return {f"settings {group}": partial(table, group) for group in GROUPS}


def table(group: str) -> str:
    """Return the table of a group. Raises SystemExit if any setting belongs to no group."""
    if missing := Settings.model_fields.keys() - " ".join(GROUPS.values()).split():
        raise SystemExit(f"scripts/docs/settings.py: GROUPS lacks {', '.join(sorted(missing))}. Add each to a group.")
    rows = []
    for name in GROUPS[group].split():
        field = Settings.model_fields[name]
        rows.append((anchored(PREFIX + name.upper()), default_of(name, field), field.description or ""))
    return markdown(("name", "default", "meaning"), rows)


def default_of(name: str, field: FieldInfo) -> str:
    """Return the default of a setting as the page shows it."""
    if name in IN_WORDS:
        return IN_WORDS[name]
    default = field.default
    if default is None or default == () or default is PydanticUndefined:
        return "none"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, timedelta):
        return f"`{duration(default)}`"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def duration(value: timedelta) -> str:
    """Return a duration as the setting is written: in hours up to a day, then in days."""
    seconds = round(value.total_seconds())
    units = ((86_400, "d"),) if seconds > 86_400 else ((3600, "h"), (60, "m"), (1, "s"))
    return next(f"{seconds // size}{unit}" for size, unit in units if seconds >= size)
