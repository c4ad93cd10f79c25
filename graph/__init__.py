"""The social graph: users, posts, follows and timelines.

`Graph` is the entry point for the packages above. The social graph does not depend on GraphQL.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from argon2 import PasswordHasher

from graph.archiver.archiver import Archiver
from graph.archiver.hot_window import HotWindow
from graph.archiver.lease import Lease
from graph.archiver.scan import Scan
from graph.backlog import Backlog, read_backlog
from graph.binding import Binding
from graph.commit import Commit
from graph.feed.feed import Feed
from graph.follows import Follows
from graph.home.cache import HomeCache
from graph.home.delivery import DeliveryModes
from graph.home.fan_out import FanOuts
from graph.log.dead_letters import DeadLetters
from graph.log.log import Log
from graph.posts import Posts
from graph.projections.projections import Projections
from graph.rates import Rates
from graph.rebuild.rebuild import Rebuild
from graph.relationships import Relationships
from graph.repair.repair import Repair
from graph.sessions import Sessions
from graph.store.store import Store
from graph.timelines import Timelines
from graph.tuning import Tuning
from graph.users import Users
from graph.worker.housekeeping import Housekeeping
from graph.worker.worker import LEASE, Worker

if TYPE_CHECKING:
    from graph.archive.archive import Archive

__all__ = ["Graph", "Tuning"]


class Graph:
    """The social graph in one store, with the whole log in an archive. Connections are opened on first use."""

    def __init__(self, store: Store, archive: "Archive", tuning: Tuning | None = None) -> None:
        tuning = tuning or Tuning()
        self.tuning = tuning
        self.store = store
        self.archive = archive
        self.log = Log(store, tuning.log_limit)
        cache = HomeCache(store, tuning.home_size, tuning.hibernate_after)
        self.fan_outs = FanOuts(store, cache, tuning.fan_out_task)
        self.projections = Projections(
            store,
            self.log,
            self.fan_outs,
            DeliveryModes(store, cache, tuning.push_limit),
            sync_followers=tuning.sync_followers,
            tombstones_live=tuning.tombstones_live,
        )
        self.binding = Binding(store, archive)
        self.commit = Commit(self.log, self.projections, self.binding)
        hasher = PasswordHasher(tuning.argon2_time_cost, tuning.argon2_memory_kib, tuning.argon2_parallelism)
        self.users = Users(store, self.commit, hasher)
        self.sessions = Sessions(store, self.commit, tuning.session_ttl)
        self.posts = Posts(store, self.log, self.commit, self.binding)
        self.follows = Follows(store, self.commit, tuning.max_following)
        self.relationships = Relationships(store)
        self.rates = Rates(store)
        self.timelines = Timelines(store, self.binding, self.posts, cache)
        self.dead_letters = DeadLetters(store)
        lease = Lease(store)
        self.hot_window = HotWindow(store, self.binding, self.dead_letters, tuning)
        self.archiver = Archiver(
            store, archive, self.binding, self.projections, self.hot_window, self.dead_letters, lease
        )
        self.scan = Scan(store, self.binding, self.commit, self.hot_window, lease, tuning.tombstones_live)
        self.housekeeping = Housekeeping(
            store, self.log, self.dead_letters, tuning.log_retention, tuning.log_limit // 2
        )
        self.feed = Feed(store, self.log, self.posts, self.follows, self.sessions, self.users, self.projections)

    @classmethod
    async def open(
        cls,
        url: str,
        archive: "Archive",
        tuning: Tuning | None = None,
        store: Callable[[str], Store] = Store,
    ) -> "Graph":
        """Return the graph in the store at this URL. Raises ValueError if the URL does not name a store.

        `close` also closes the archive.
        """
        return cls(store(url), archive, tuning)

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
            self.scan,
            self.housekeeping,
            self.dead_letters,
            lease=lease,
        )

    async def backlog(self) -> Backlog:
        """Return the unfinished work of workers and of the archiver, and the size of the log. One round trip."""
        return await read_backlog(self.store)

    def repair(self) -> Repair:
        """Return a repair of what this graph's store derives from events."""
        return Repair(self.store, self.log, self.archive, self.binding, self.commit, self.tuning)

    def rebuild(self) -> Rebuild:
        """Return a rebuild of this graph's store from its archive."""
        return Rebuild(self.store, self.archive, self.tuning)

    async def close(self) -> None:
        """End background tasks and close all connections."""
        await asyncio.gather(self.feed.close(), self.timelines.close())
        self.users.hashing.close()
        await self.archive.close()  # a transaction that is not finished uses the store
        await self.store.close()
