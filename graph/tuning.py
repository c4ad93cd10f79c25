"""The sizes, limits and lifetimes of a graph."""

import math
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Tuning:
    """The sizes, limits and lifetimes of a graph.

    `home_size` is the number of posts in a home cache, which lives for at most `hibernate_after` after its rebuild. A
    mutation pushes a post to the newest `sync_followers` followers; workers push it to the others, in tasks of
    `fan_out_task` followers. Posts of authors with more than `push_limit` followers are merged when a page is read
    instead: infinity means that all posts are pushed, 0 that none are. The store keeps the newest `hot_posts` posts of
    a list and up to `hot_slack` more; of the posts that are older than `hot_age`, it keeps only the newest
    `hot_newest`. Tombstones live for at least `tombstones_live`. The log holds at most `log_limit` events; the last
    tenth is reserved for blocks and for events that withdraw something, such as deletions, unfollows and log-outs. The
    store accepts only these events once the fraction `store_full_at` of its memory is used. Pictures and videos must be
    hosted on one of the `media_hosts`, which are lower-case domain names with an optional port. No user can sign up
    with one of the `reserved_logins`. A user's list of notifications keeps the newest `notifications_kept` groups. A
    user can follow at most `max_following` others, mute at most `max_blocked`, and block at most `max_blocked`.
    """

    home_size: int = 800
    sync_followers: int = 1000
    push_limit: float = math.inf
    fan_out_task: int = 10_000
    hot_posts: int = 1000
    hot_slack: int = 1000
    hot_age: timedelta = timedelta(days=30)
    hot_newest: int = 50
    hibernate_after: timedelta = timedelta(days=7)
    log_retention: timedelta = timedelta(hours=24)
    log_limit: int = 2_000_000
    store_full_at: float = 0.9
    tombstones_live: timedelta = timedelta(days=30)
    max_following: int = 5000
    max_blocked: int = 10_000
    media_hosts: frozenset[str] = frozenset()
    reserved_logins: frozenset[str] = frozenset()
    notifications_kept: int = 1000
    session_ttl: timedelta = timedelta(days=30)
    argon2_time_cost: int = 3
    argon2_memory_kib: int = 65536
    argon2_parallelism: int = 4
