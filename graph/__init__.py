"""The social graph: users, posts, follows and timelines.

`Graph` is the entry point for the packages above. The social graph does not depend on GraphQL.
"""

import asyncio
import math
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from argon2 import PasswordHasher

from graph.archive.archiver import Archiver
from graph.archive.binding import ArchiveBinding
from graph.commit import Commit
from graph.feed.feed import Feed
from graph.follows import Follows
from graph.home.cache import HomeCache
from graph.home.delivery import DeliveryModes
from graph.home.fan_out import FanOuts
from graph.imports import Imports
from graph.log.log import Log
from graph.posts import Posts
from graph.projections.projections import Projections
from graph.rates import Rates
from graph.relationships import Relationships
from graph.repair.repair import Repair
from graph.sessions import Sessions
from graph.store.store import Store
from graph.timelines import Timelines
from graph.tuning import Tuning
from graph.users import Users
from graph.worker.dead_letters import DeadLetters
from graph.worker.housekeeping import Housekeeping
from graph.worker.worker import LEASE, Worker

if TYPE_CHECKING:
    from graph.archive.archive import Archive

__all__ = ["Graph", "Tuning"]


class Graph:
    """The social graph in one store. Older posts move to the archive, if there is one.

    Connections are opened on first use.
    """

    def __init__(self, store: Store, tuning: Tuning | None = None, archive: "Archive | None" = None) -> None:
        tuning = tuning or Tuning()
        self.tuning = tuning
        self.store = store
        self.archive = archive
        self.log = Log(store)
        cache = HomeCache(store, tuning.home_size, tuning.hibernate_after)
        self.fan_outs = FanOuts(store, cache, tuning.fan_out_task)
        self.projections = Projections(
            store,
            self.log,
            self.fan_outs,
            DeliveryModes(store, cache, tuning.push_limit),
            sync_followers=tuning.sync_followers,
            archivable_from=math.inf if archive is None else tuning.hot_posts + tuning.archive_batch,
            tombstones_live=tuning.tombstones_live,
        )
        self.commit = Commit(self.log, self.projections)
        self.binding = ArchiveBinding(store, archive)
        hasher = PasswordHasher(tuning.argon2_time_cost, tuning.argon2_memory_kib, tuning.argon2_parallelism)
        self.users = Users(store, self.commit, hasher)
        self.sessions = Sessions(store, self.commit, tuning.session_ttl)
        self.posts = Posts(store, self.log, self.commit, self.binding)
        self.follows = Follows(store, self.commit, tuning.max_following)
        self.relationships = Relationships(store)
        self.rates = Rates(store)
        self.timelines = Timelines(store, self.binding, self.posts, cache)
        self.archiver: Archiver | None = None
        if archive is not None:
            self.archiver = Archiver(store, self.log, archive, self.binding, tuning.hot_posts, tuning.archive_batch)
        self.dead_letters = DeadLetters(store)
        self.housekeeping = Housekeeping(store, self.log, self.dead_letters, tuning.log_retention)
        self.imports = Imports(store, self.log, self.projections, self.housekeeping, tuning.log_retention)
        self.feed = Feed(store, self.log, self.posts, self.follows, self.sessions, self.users, self.projections)

    @classmethod
    async def open(
        cls,
        url: str,
        tuning: Tuning | None = None,
        store: Callable[[str], Store] = Store,
        archive: "Archive | None" = None,
    ) -> "Graph":
        """Return the graph in the store at this URL. Raises ValueError if the URL does not name a store.

        `close` also closes the archive.
        """
        return cls(store(url), tuning, archive)

    def worker(self, lease: timedelta = LEASE) -> Worker:
        """Return a worker that projects this graph's log.

        It claims events and tasks of other workers that have not renewed their lease for this duration.
        """
        return Worker(
            self.store,
            self.log,
            self.projections,
            self.fan_outs,
            self.archiver,
            self.housekeeping,
            self.dead_letters,
            lease=lease,
        )

    def repair(self) -> Repair:
        """Return a repair of this graph's derived data."""
        return Repair(self.store, self.log, self.projections, self.archive)

    async def close(self) -> None:
        """End background tasks and close all connections."""
        await asyncio.gather(self.feed.close(), self.timelines.close())
        self.users.hashing.close()
        await self.store.close()
        if self.archive is not None:
            await self.archive.close()
