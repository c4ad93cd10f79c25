"""The social graph: people, posts, follows and timelines in the store.

It has nothing to do with GraphQL, which it does not know: the name means who follows whom. Outsiders hold one
`Graph` and reach everything through it.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from argon2 import PasswordHasher

from graph.archive.archive import Archive
from graph.archive.archiver import Archiver
from graph.archive.binding import ArchiveBinding
from graph.feed.feed import Feed
from graph.follows import Follows
from graph.home.cache import HomeCache
from graph.home.delivery import Reach
from graph.home.fan_out import FanOuts
from graph.imports import Imports
from graph.log.events import Event, EventBody
from graph.log.log import IdempotencyKey, Log
from graph.posts import Posts
from graph.projections.projections import Projections
from graph.rates import Rates
from graph.relationships import Relationships
from graph.repair.repair import Repair
from graph.sessions import Sessions
from graph.store.store import Store
from graph.timelines import Timelines
from graph.users import Users
from graph.worker.worker import Worker

__all__ = ["Graph", "Tuning"]


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


class Graph:
    """The social graph on one store, and behind it an archive of cold posts; without one all posts stay in the store.

    Nothing connects before the first use.
    """

    def __init__(self, store: Store, tuning: Tuning | None = None, archive: Archive | None = None) -> None:
        tuning = tuning or Tuning()
        self.tuning = tuning
        self.store = store
        self.archive = archive
        self.log = Log(store)
        hasher = PasswordHasher(tuning.argon2_time_cost, tuning.argon2_memory_kib, tuning.argon2_parallelism)
        self.users = Users(store, self.commit, hasher)
        self.sessions = Sessions(store, self.commit, tuning.session_ttl)
        self.binding = ArchiveBinding(store, archive)
        self.posts = Posts(store, self.log, self.commit, self.binding)
        self.follows = Follows(store, self.commit, tuning.max_following)
        self.relationships = Relationships(store)
        self.rates = Rates(store)
        cache = HomeCache(store, tuning.home_size, tuning.hibernate_after)
        self.timelines = Timelines(store, self.binding, self.posts, cache)
        reach = Reach(store, cache, tuning.push_limit)
        self.fan_outs = FanOuts(store, cache, tuning.fan_out_task)
        self.archiver: Archiver | None = None
        archivable_from = math.inf
        if archive is not None:
            self.archiver = Archiver(store, self.log, archive, self.binding, tuning.hot_posts, tuning.archive_batch)
            archivable_from = tuning.hot_posts + tuning.archive_batch
        self.projections = Projections(
            store,
            self.log,
            self.fan_outs,
            reach,
            sync_followers=tuning.sync_followers,
            archivable_from=archivable_from,
            tombstones_live=tuning.tombstones_live,
        )
        self.imports = Imports(store, self.log, self.projections, self.worker(), tuning.log_retention)
        self.feed = Feed(store, self.log, self.posts, self.follows, self.sessions, self.users, self.projections)

    @classmethod
    async def open(
        cls,
        url: str,
        tuning: Tuning | None = None,
        store: Callable[[str], Store] = Store,
        archive: Archive | None = None,
    ) -> "Graph":
        """Open the graph in the store at this URL. Raises ValueError for a URL that names no store.

        The graph closes the archive when it is closed itself.
        """
        return cls(store(url), tuning, archive)

    async def commit(self, bodies: Sequence[EventBody], idempotency_key: IdempotencyKey | None = None) -> list[Event]:
        """Append events to the log, which commits them, and project what must be seen when a mutation returns."""
        events = await self.log.append(bodies, idempotency_key)
        await self.projections.project(events, whole=False)
        return events

    def worker(self, claim_after: timedelta = timedelta(seconds=30)) -> Worker:
        """Make a worker that projects this graph's log."""
        return Worker(
            self.store,
            self.log,
            self.projections,
            self.fan_outs,
            self.archiver,
            self.tuning.log_retention,
            claim_after=claim_after,
        )

    def repair(self) -> Repair:
        """Make a repair of what is derived in this graph."""
        return Repair(self.store, self.log, self.projections, self.archive)

    async def close(self) -> None:
        """Stop what runs in the background and close the connections."""
        await asyncio.gather(self.feed.close(), self.timelines.close())
        self.users.hashing.close()
        await self.store.close()
        if self.archive is not None:
            await self.archive.close()
