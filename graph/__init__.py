"""The social graph: users, posts, follows and timelines.

Other packages use the social graph through `Graph`. The social graph does not depend on GraphQL.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from argon2 import PasswordHasher

from graph import keys
from graph.accounts.account_deletion import AccountDeletion
from graph.accounts.password_changes import PasswordChanges
from graph.accounts.sessions import Sessions
from graph.accounts.sign_ups import SignUps
from graph.accounts.users import Users
from graph.archiver.archiver import Archiver
from graph.archiver.hot_window_cutter import HotWindowCutter
from graph.archiver.indexing import Indexing
from graph.archiver.lease import Lease
from graph.archiver.moves import Moves
from graph.archiver.scan import Scan
from graph.binding import Binding
from graph.commit import Commit
from graph.erasure.eraser import Eraser
from graph.feed.feed import Feed
from graph.home.cache import HomeCache
from graph.home.delivery import DeliveryModes
from graph.home.fan_out import FanOuts
from graph.log.backlog import Backlog, read_backlog
from graph.log.dead_letters import DeadLetters
from graph.log.log import Log
from graph.log.losses import Losses
from graph.moderation import Moderation
from graph.notifications.notifications import Notifications
from graph.people.blocks import Blocks
from graph.people.follows import Follows
from graph.people.lists import Lists
from graph.people.relationships import Relationships
from graph.posts.bookmarks import Bookmarks
from graph.posts.likes import Likes
from graph.posts.mentions import Mentions
from graph.posts.posts import Posts
from graph.posts.reposts import Reposts
from graph.projections.projections import Projections
from graph.rates import Rates
from graph.search.post_search import Searches
from graph.search.user_search import UserSearches
from graph.store.capacity import Capacity
from graph.store.store import Store, unchanged
from graph.timelines.list_timelines import ListTimelines
from graph.timelines.public_timeline import PublicTimeline
from graph.timelines.timelines import Timelines
from graph.tuning import Tuning
from graph.visibility.views import Visibility
from graph.worker.conversion import Conversion
from graph.worker.healing import Healing
from graph.worker.housekeeping import Housekeeping
from graph.worker.worker import LEASE, Worker

if TYPE_CHECKING:
    from graph.archive.archive import Archive
    from graph.export import Export
    from graph.rebuild.rebuild import Rebuild
    from graph.repair.repair import Repair
    from graph.worker.redelivery import Redelivery

__all__ = ["Graph", "Tuning"]


class Graph:
    """The social graph of one store and its archive, which holds the whole log. Connections are opened on first use."""

    def __init__(self, store: Store, archive: "Archive", tuning: Tuning | None = None) -> None:
        self.tuning = tuning = tuning or Tuning()
        self.store = store
        self.archive = archive
        self.log = Log(store, tuning.log_limit)
        cache = HomeCache(store, tuning.home_size, tuning.hibernate_after)
        self.fan_outs = FanOuts(store, cache, tuning.fan_out_task)
        self.binding = Binding(store, archive)
        modes = DeliveryModes(store, cache, self.fan_outs, tuning.push_limit)
        self.projections = Projections(store, self.log, self.fan_outs, modes, self.binding, tuning)
        self.capacity = Capacity(store, tuning.store_full_at)
        self.commit = Commit(self.log, self.projections, self.binding, self.capacity)
        hasher = PasswordHasher(tuning.argon2_time_cost, tuning.argon2_memory_kib, tuning.argon2_parallelism)
        self.users = Users(store, self.commit, hasher, tuning.media_hosts, tuning.reserved_logins)
        self.sessions = Sessions(store, self.commit, tuning.session_ttl)
        self.visibility = Visibility(store, lambda: self.log.known_watermark)
        mentions = Mentions(self.users.ids_of_logins)
        self.posts = Posts(
            store, self.log, self.commit, self.binding, self.visibility, mentions, media_hosts=tuning.media_hosts
        )
        self.likes = Likes(store, self.log, self.commit, self.binding, self.posts, self.visibility)
        self.reposts = Reposts(store, self.log, self.commit, self.posts)
        self.follows = Follows(store, self.log, self.commit, tuning.max_following)
        self.blocks = Blocks(store, self.log, self.commit, self.visibility, tuning.max_blocked)
        self.relationships = Relationships(store, self.visibility)
        self.notifications = Notifications(store, self.commit, self.posts)
        self.rates = Rates(store)
        self._prepare_accounts()
        self._prepare_pages(cache)
        self.feed = self._new_feed()
        self._prepare_background(tuning)

    def _new_feed(self) -> Feed:
        return Feed(
            self.store,
            self.log,
            self.posts,
            self.follows,
            self.sessions,
            self.users,
            self.projections,
            self.visibility,
            self.notifications,
            self.lists,
        )

    def _prepare_pages(self, cache: HomeCache) -> None:
        """Create the services for moderation, lists of users, bookmarks, timelines and searches."""
        self.moderation = Moderation(self.store, self.commit, self.binding, self.log, self.users, self.posts)
        self.lists = Lists(self.store, self.log, self.commit)
        self.bookmarks = Bookmarks(self.store, self.log, self.commit, self.binding, self.posts)
        self.timelines = Timelines(self.store, self.binding, self.posts, cache, self.visibility)
        self.list_timelines = ListTimelines(self.store, self.binding, self.posts, self.lists)
        self.public_timeline = PublicTimeline(self.binding, self.posts)
        self.searches = Searches(self.binding, self.posts)
        self.user_searches = UserSearches(self.binding, self.users)

    def _prepare_accounts(self) -> None:
        """Create the services for password changes and account deletion."""
        self.sign_ups = SignUps(self.store, self.commit, self.users)
        self.passwords = PasswordChanges(self.store, self.commit, self.users, self.sessions)
        self.account_deletion = AccountDeletion(self.store, self.commit, self.users)

    def _prepare_background(self, tuning: Tuning) -> None:
        """Create the objects that workers and archivers use."""
        store, archive = self.store, self.archive
        self.dead_letters = DeadLetters(store)
        self.lease = lease = Lease(store)
        self.hot_window = HotWindowCutter(store, self.binding, self.projections, self.dead_letters, tuning)
        self.archiver = Archiver(
            store, archive, self.binding, self.projections, self.hot_window, self.dead_letters, lease, self.commit
        )
        self.scan = Scan(store, self.binding, self.commit, self.hot_window, lease, tuning.tombstones_live)
        self.indexing = Indexing(self.binding, lease)
        self.moves = Moves(self.binding, lease)
        self.eraser = Eraser(store, self.log, self.binding, self.dead_letters, lease)
        self.losses = Losses(store, self.log)
        self.healing = Healing(
            self.log, self.losses, lease, lambda *, announces: self.repair().run(correct=True, announces=announces)
        )
        self.conversion = Conversion(store, self.log, self.binding, lease, self.repair)
        self.housekeeping = Housekeeping(store, self.log, self.dead_letters, tuning.log_retention)

    @classmethod
    async def open(
        cls,
        url: str,
        archive: "Archive",
        tuning: Tuning | None = None,
        store: Callable[[str], Store] = Store,
    ) -> "Graph":
        """Return the graph in the store at this URL. Raises ValueError if the URL is not a valid store URL.

        `Graph.close` also closes the archive.
        """
        return cls(store(url), archive, tuning)

    def worker(self, lease: timedelta = LEASE) -> Worker:
        """Return a worker that projects this graph's log.

        The worker takes over the events and tasks of any other worker that has not renewed its lease for the duration
        of `lease`.
        """
        return Worker(
            self.store,
            self.log,
            self.binding,
            self.projections,
            self.fan_outs,
            self.archiver,
            self.scan,
            self.indexing,
            self.moves,
            self.eraser,
            self.housekeeping,
            self.dead_letters,
            self.losses,
            self.healing,
            self.conversion,
            lease=lease,
        )

    def redelivery(self) -> "Redelivery":
        """Return the service that delivers dead letters again."""
        from graph.worker.redelivery import Redelivery

        live = self.tuning.tombstones_live
        return Redelivery(self.dead_letters, self.log, self.projections, self.fan_outs, live)

    async def backlog(self) -> Backlog:
        """Return the unfinished work of workers and of the archiver, and the size of the log. One round trip."""
        return await read_backlog(self.store)

    def probe(self, answered: Callable[[str], None]) -> None:
        """Start a read that checks whether the store answers. It shares the round trip of other reads.

        Each call reads from the next primary in turn. When the reply arrives, `answered` is called with the key that
        was read. It is not called if the primary does not answer.
        """
        key = self.store.next_sample() or keys.LOG

        def end_probe(reply: "asyncio.Future[list[Any]]") -> None:
            if not reply.cancelled() and reply.exception() is None:
                answered(key)

        self.store.ask([("EXISTS", key)], unchanged).add_done_callback(end_probe)

    def repair(self) -> "Repair":
        """Return the service that repairs the keys in this graph's store that are derived from events."""
        from graph.repair.repair import Repair

        return Repair(self.store, self.log, self.archive, self.binding, self.commit, self.tuning)

    def export(self) -> "Export":
        """Return the service that exports users' data."""
        from graph.export import Export

        return Export(self.log, self.archive, self.binding, self.users, self.sessions)

    def rebuild(self) -> "Rebuild":
        """Return the service that rebuilds this graph's store from its archive."""
        from graph.rebuild.rebuild import Rebuild

        return Rebuild(self.store, self.archive, self.tuning)

    async def close(self) -> None:
        """End background tasks and close all connections."""
        await asyncio.gather(self.feed.close(), self.timelines.close(), self.capacity.close())
        self.users.hashing.close()
        await self.archive.close()  # before the store, which unfinished transactions use
        await self.store.close()
