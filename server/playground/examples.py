"""The example operations of the playground, in groups."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGED = Path(__file__).parent / "examples"  # in a wheel
EXAMPLES = PACKAGED if PACKAGED.is_dir() else Path(__file__).parents[2] / "examples"  # else in the checkout
GROUPS = {
    "Timelines and posts": (
        "home",
        "whats-new",
        "public-timeline",
        "search",
        "post",
        "thread",
        "liked-posts",
        "bookmarks",
    ),
    "Users": ("search-users", "followers-with-relations", "profile", "viewer"),
    "Notifications": ("notifications", "mark-read", "new-notifications"),
    "Live updates": ("live", "live-timeline", "live-thread", "new-followers", "events"),
    "Changes": (
        *(
            "publish",
            "reply",
            "quote",
            "delete-post",
            "repost",
            "unrepost",
            "follow",
            "unfollow",
            "like",
            "unlike",
            "bookmark",
            "remove-bookmark",
            "report",
        ),
        "update-profile",
    ),
    "Mute and block": ("mute", "unmute", "muted-users", "block", "unblock", "blocked-users"),
    "Lists": ("lists", "list-timeline", "create-list", "update-list", "delete-list"),
    "Accounts and sessions": (
        "sign-up",
        "log-in",
        "log-out",
        "sessions",
        "end-session",
        "change-password",
        "delete-account",
    ),
    "Any object, limits": ("node", "nodes", "rate-limit"),
}
OPENED = ("home", "followers-with-relations", "publish", "live")
"""The examples that are open as tabs at first."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example: its name, its group in the menu, the name of its operation, a description, and the document."""

    name: str
    group: str
    operation: str
    about: str
    query: str


@cache
def examples() -> tuple[Example, ...]:
    """Return the examples in the order of the menu."""
    return tuple(_read(name, group) for group, names in GROUPS.items() for name in names)


def _read(name: str, group: str) -> Example:
    query = (EXAMPLES / f"{name}.graphql").read_text(encoding="utf-8")
    comment = " ".join(line.removeprefix("#").strip() for line in query.splitlines() if line.startswith("#"))
    about = re.split(r"(?<=[.:]) ", comment)[0].rstrip(":.").replace("`", "")
    [operation] = re.findall(r"^(?:query|mutation|subscription) (\w+)", query, re.MULTILINE)
    return Example(name, group, operation, about, query)
