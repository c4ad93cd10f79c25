"""The live feed: subscriptions to timelines, threads, notifications and filtered events.

One reader follows the log for all subscriptions of a process. For each event, the feed uses four indexes to find the
live subscriptions that the event concerns. `graph.feed.subscription` describes how a subscription becomes live.
"""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from typing import Any

from graph.accounts.sessions import Sessions
from graph.accounts.users import Users
from graph.errors import NotPermitted, StoreUnavailable
from graph.feed.buffer import Buffer, C, CutOff, size_of
from graph.feed.combined_stream import CombinedStream
from graph.feed.deletions import deleted_posts
from graph.feed.filter_source import FilterSource, filtered_update
from graph.feed.filters import EventFilter
from graph.feed.handover import Courier, Handover
from graph.feed.home_source import HomeIndex, HomeSource
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.matching import FilterIndex
from graph.feed.notification_reads import NotificationReads
from graph.feed.notification_source import NotificationIndex, NotificationSource
from graph.feed.reader import LogReader
from graph.feed.session_watch import Claim, SessionWatch
from graph.feed.source import Source
from graph.feed.subscription import Shared, Subscription
from graph.feed.thread_source import ThreadReads, ThreadSource
from graph.feed.timeline_source import ListTimelineSource, TimelineSource
from graph.feed.topic_source import TopicIndex
from graph.feed.turns import ReplayTurns, Turn
from graph.feed.updates import (
    Checkpoint,
    FilteredChange,
    FilteredUpdate,
    Gap,
    HomeUpdate,
    NotificationUpdate,
    ThreadUpdate,
    TimelineUpdate,
)
from graph.log.account_events import UserDeleted
from graph.log.events import Event, Publication
from graph.log.log import Log
from graph.log.moderation_events import StoreRepaired, UserSuspended, UserUnsuspended
from graph.model import Permission
from graph.notifications.notifications import Notifications
from graph.people.follows import Follows
from graph.people.lists import Lists
from graph.post_lists import PostList
from graph.posts.posts import Posts
from graph.projections.projections import Projections
from graph.store.store import Store
from graph.visibility.views import Visibility

CHECKPOINT_SECONDS = 15.0
THROTTLE_SECONDS = 1.0  # the longest time that the reader waits for subscriptions, for each batch of events
THROTTLE_STEP_SECONDS = 0.02
LOOK_UP_SECONDS = 1.0  # the longest time that the reader waits for the look-up of deleted posts

logger = logging.getLogger("fanline.feed")


class Feed:
    """The live feed of one process.

    A subscription without updates gets a checkpoint every `checkpoint_seconds`. `cut_off` counts how often a
    subscription was cut off because it was too slow.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        posts: Posts,
        follows: Follows,
        sessions: Sessions,
        users: Users,
        projections: Projections,
        visibility: Visibility,
        notifications: Notifications,
        lists: Lists,
        *,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self._posts = posts
        self._follows = follows
        self._lists = lists
        self._projections = projections
        self._notification_reads = NotificationReads(log, notifications, projections, visibility)
        self._reader = LogReader(store, log, self)
        self._thread_reads = ThreadReads(log, self._reader, projections, posts)
        self._session_watch = SessionWatch(sessions, users, checkpoint_seconds)
        self._live: set[Buffer[Any]] = set()
        self._shared = Shared(log, posts, self._reader, self._session_watch, self._live, checkpoint_seconds, Handover())
        self._visibility = visibility
        self._views = LiveViews()
        self._home_index = HomeIndex()
        self._topic_index = TopicIndex()
        self._notification_index = NotificationIndex()
        self._filter_index: FilterIndex[Buffer[FilteredChange]] = FilterIndex()
        self._turns = ReplayTurns()
        self._checked: set[int] = set()
        self._deleted: set[int] = set()
        self._congested: set[Buffer[Any]] = set()
        self.cut_off = 0

    def home(
        self, viewer: int, after: int | None = None, session: str | None = None, *, courier: Courier | None = None
    ) -> AsyncGenerator[HomeUpdate]:
        """Stream the changes of the viewer's home timeline in log order, each once. The first update is a Checkpoint.

        With `after`, the stream starts with the changes after that number; a Gap reports changes that the log no longer
        holds. A client that applies every update has the current home timeline. Raises SessionOver when the session
        ends, or if it has already ended. Joining costs two round trips, however far the workers are behind.

        Updates that the `courier` delivers are not yielded.
        """
        view = LiveView(self._visibility, viewer)
        source = HomeSource(view, self._views, self._follows, self._projections, self._home_index)
        return self._updates(source, after, session, courier=courier)

    def timeline(
        self,
        viewer: int | None,
        post_list: PostList,
        owner: int,
        after: int | None = None,
        session: str | None = None,
        *,
        holder: Hashable = None,
        courier: Courier | None = None,
    ) -> AsyncGenerator[TimelineUpdate]:
        """Stream the changes of one of a user's post lists, as seen by the viewer, in log order, each once.

        `post_list` is TIMELINE or REPLIED. `viewer` is None for an anonymous client; `holder` then names the owner of
        the replays. See `home` for the other parameters and errors.
        """
        view = LiveView(self._visibility, viewer)
        source = TimelineSource(view, self._views, post_list, owner, self._projections, self._topic_index)
        return self._updates(source, after, session, holder=holder, courier=courier)

    def thread(
        self,
        viewer: int | None,
        post: int,
        author: int | None = None,
        after: int | None = None,
        session: str | None = None,
        *,
        holder: Hashable = None,
        delay: Callable[[], float] = float,
    ) -> AsyncGenerator[ThreadUpdate]:
        """Stream the changes of a thread: the direct replies to a post and, at most once a second, the post's counts.

        `author` is the author of the post, or None if the post is deleted. See `timeline` for the other parameters and
        errors, and `notifications` for `delay`.
        """
        view = LiveView(self._visibility, viewer)
        source = ThreadSource(view, self._views, post, author, self._projections, self._topic_index)
        updates = self._updates(source, after, session, holder=holder)
        return CombinedStream(post, self._thread_reads, delay).updates(updates)

    def list_timeline(
        self,
        viewer: int,
        list_id: int,
        after: int | None = None,
        session: str | None = None,
        *,
        courier: Courier | None = None,
    ) -> AsyncGenerator[TimelineUpdate]:
        """Stream the changes of the timeline of one of the viewer's lists in log order, each once.

        See `home` for the other parameters and errors.
        """
        view = LiveView(self._visibility, viewer)
        source = ListTimelineSource(view, self._views, self._lists, list_id, self._projections, self._topic_index)
        return self._updates(source, after, session, courier=courier)

    def notifications(
        self,
        viewer: int,
        after: int | None = None,
        session: str | None = None,
        *,
        delay: Callable[[], float] = float,
    ) -> AsyncGenerator[NotificationUpdate]:
        """Stream the changes of the viewer's notifications in log order, each group at most once a second.

        See `home` for the other parameters and errors. Updates are delayed further while `delay` returns more than 0
        seconds. An update takes two round trips, which all streams of the viewer share, and more if its event is not
        projected yet.
        """
        updates = self._updates(NotificationSource(viewer, self._notification_index), after, session)
        return CombinedStream(viewer, self._notification_reads, delay).updates(updates)

    def events(
        self,
        viewer: int | None,
        filter_: EventFilter,
        after: int | None = None,
        session: str | None = None,
        *,
        holder: Hashable = None,
        courier: Courier | None = None,
    ) -> AsyncGenerator[FilteredUpdate]:
        """Stream the events that match the filter, in log order, each once.

        See `home` for the other parameters and errors. `viewer` is the user who reads, or None if anonymous. Events
        that are hidden from this user are left out.

        Posts that have been deleted are left out. Replayed deletions match every keyword and every box, so that clients
        cannot find out what a deleted post said. A firehose requires a permission. Raises NotPermitted if the viewer
        does not have the permission, or when it is revoked.

        Replays of the same viewer take turns. `holder` names the owner of the replays if there is no viewer.
        """
        permissions: list[Claim] = []
        if filter_.firehose:
            if viewer is None:
                raise NotPermitted("The firehose requires the 'firehose' permission. Log in as a user who has it.")
            permissions.append((viewer, Permission.FIREHOSE))
        source = FilterSource(LiveView(self._visibility, viewer), self._views, filter_, self._filter_index)
        return self._updates(source, after, session, *permissions, holder=holder, courier=courier)

    def _updates(
        self,
        source: Source[C],
        after: int | None,
        session: str | None,
        *permissions: Claim,
        holder: Hashable = None,
        courier: Courier | None = None,
    ) -> AsyncGenerator[C | Checkpoint | Gap]:
        """Return the updates of a subscription, which ends when its viewer's session or one of the permissions ends."""
        viewer = source.viewer
        sessions: list[Claim] = [] if session is None or viewer is None else [(viewer, session)]
        turn = Turn(self._turns, viewer if viewer is not None else object() if holder is None else holder)
        return Subscription(self._shared, source, after, [*sessions, *permissions], turn, courier).updates()

    def __len__(self) -> int:
        """Return the number of live subscriptions."""
        return len(self._live)

    def home_viewers(self) -> list[int]:
        """Return the viewers with a live stream of their home timeline in this process."""
        return self._home_index.viewers()

    def watch(self, user: int, session: str, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` once when the session ends. Return a function that stops watching.

        A log-out is noticed immediately. Expiry and replacement by a newer session are noticed within one checkpoint
        interval.
        """
        self._reader.start()
        return self._session_watch.watch((user, session), on_end)

    async def close(self) -> None:
        """Stop the reader and the session watch."""
        await self._reader.close()
        await self._session_watch.close()

    async def look_up(self, events: Sequence[Event]) -> None:
        """Look up which of the published posts that concern a subscription are deleted. At most one round trip.

        If a shard does not answer within a second, each subscription checks its own posts, and only the subscriptions
        that need the shard wait for it.
        """
        published = [event for event in events if isinstance(event.body, Publication) and self._concerns_any(event)]
        self._checked, self._deleted = set(), set()
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                self._deleted = await deleted_posts(self._posts, published)
            self._checked = {event.number for event in published}
        except (StoreUnavailable, TimeoutError) as outage:
            logger.warning("The live feed cannot look up deleted posts: %s", getattr(outage, "reason", "no answer"))

    def _concerns_any(self, event: Event) -> bool:
        return (
            self._home_index.has_receivers(event)
            or self._topic_index.has_receivers(event)
            or self._filter_index.matches_any(event)
            or self._notification_index.has_receivers(event)
        )

    def receive(self, event: Event) -> bool:
        """Add the updates of an event to the buffers of the subscriptions it concerns. Return True if there are any."""
        self._session_watch.apply(event)
        self._views.apply(event)
        self._note_suspension(event)
        if isinstance(event.body, StoreRepaired):
            self._begin_again()
            return False
        homes, filtered = self._home_index.deliveries(event), self._filter_index.matching(event)
        timelines, notified = self._topic_index.deliveries(event), self._notification_index.receivers(event)
        if not (homes or timelines or filtered or notified) or event.number in self._deleted:
            return False
        # A subscription or a follow may have begun after `look_up`: then the subscription checks the post.
        is_checked = event.number in self._checked or not isinstance(event.body, Publication)
        for change, buffers in homes:
            self._add(change, buffers, is_checked=is_checked)
        for topic_change, buffers in timelines:
            self._add(topic_change, buffers, is_checked=is_checked)
        if filtered and (streamed := filtered_update(event)):
            self._add(streamed, filtered, is_checked=is_checked)
        for notice, buffers_of_viewer in notified:
            self._add(notice, buffers_of_viewer, is_checked=True)
        return True

    def _add(self, update: C, buffers: Iterable[Buffer[C]], *, is_checked: bool) -> None:
        now, size = asyncio.get_running_loop().time(), size_of(update)
        checked_at = now if is_checked else -math.inf
        for buffer in buffers:
            self.cut_off += not buffer.add(update, size, checked_at)
            if buffer.is_congested(now):
                self._congested.add(buffer)

    def learn(self, unprojected: Sequence[Event]) -> None:
        """Record suspensions, ends of suspensions and user deletions that may not be projected yet."""
        for event in unprojected:
            self._note_suspension(event)

    def _note_suspension(self, event: Event) -> None:
        if isinstance(event.body, UserSuspended | UserUnsuspended | UserDeleted):
            is_hidden = not isinstance(event.body, UserUnsuspended)
            self._visibility.note_suspension(event.body.user, event.number, suspended=is_hidden)

    async def throttle(self) -> None:
        """Wait, for at most a second, while more than half of the live buffers are congested.

        In that case this process is slow, not its clients. A few slow clients do not delay the others. The log keeps
        the events that are committed in the meantime.
        """
        await asyncio.sleep(0)
        clock = asyncio.get_running_loop().time
        deadline = clock() + THROTTLE_SECONDS
        while self._congested and clock() < deadline:
            self._congested = {buffer for buffer in self._congested & self._live if buffer.is_congested(clock())}
            if 2 * len(self._congested) <= len(self._live):
                return
            await asyncio.sleep(THROTTLE_STEP_SECONDS)

    def lose_events(self) -> None:
        """Cut off all live subscriptions because events were skipped. They join again and report the gap."""
        self._visibility.forget_noted_suspensions()
        self._begin_again()

    def _begin_again(self) -> None:
        """Cut off all live subscriptions. They join again, and replay the events after their positions."""
        self._home_index.clear()
        for buffer in self._live:
            buffer.cut(CutOff.REPLAY)
