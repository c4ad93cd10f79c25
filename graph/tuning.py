"""The sizes, limits and lifetimes of a graph."""

import math
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers that shape a graph.

    `push_limit`: infinity is push, zero is pull, anything between hybrid. `fan_out_task` is how many followers one task
    of a long fan-out serves. With an archive, the store keeps the newest `hot_posts` of an author, and up to
    `archive_batch` more, which then move at once.
    """

    home_size: int = 800
    sync_followers: int = 1000
    push_limit: float = math.inf
    fan_out_task: int = 10_000
    hot_posts: int = 1000
    archive_batch: int = 1000
    hibernate_after: timedelta = timedelta(days=7)
    log_retention: timedelta = timedelta(hours=24)
    tombstones_live: timedelta = timedelta(hours=24)
    max_following: int = 5000
    session_ttl: timedelta = timedelta(days=30)
    argon2_time_cost: int = 3
    argon2_memory_kib: int = 65536
    argon2_parallelism: int = 4
