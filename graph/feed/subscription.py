"""One subscription, from its first read of the log until it ends.

1. Join: load the state that decides which events concern the viewer, and check the session.
2. Replay: read the log from the position of the client up to the reader's head, at the client's pace.
3. Live: register a buffer, to which the reader's events are added from then on.

Nothing else runs between reaching the head and registering, so no event is missed or sent twice. A slow client costs no
memory during the replay. A slow live client is cut off when its buffer is full: it gets a Gap and joins again.

Live updates may go to a courier instead of being yielded: see `graph.feed.handover`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any, Generic

from graph.chunks import chunks
from graph.errors import NotPermitted, SessionOver
from graph.feed.buffer import Buffer, C, CutOff
from graph.feed.deletions import counted, fresh, post_counts, withhold_deleted, without_deleted
from graph.feed.handover import HANDED_OVER, Courier, Handover
from graph.feed.reader import LogReader
from graph.feed.session_watch import Claim, SessionWatch
from graph.feed.source import Source
from graph.feed.turns import Turn
from graph.feed.updates import Checkpoint, Gap, GapReason, ItemRemoved
from graph.log.events import Event, SessionsEnded
from graph.log.log import Log
from graph.log.moderation_events import StoreRepaired
from graph.model import Counts, Permission
from graph.posts.posts import Posts

REMEMBERED_DELETIONS = 50  # per subscription
REPLAY_BATCH = 100  # events; with the longest texts they take as much memory as a full buffer
NO_COUNTS = Counts()
REPLAY_STEP = 10  # events; with the longest texts and filters they take one or two milliseconds
PAGES_SECONDS, PAGES_STEP_SECONDS = 3.0, 0.05
PROGRESS_SECONDS = 1.0  # how long a replay waits for a lagging reader before it looks at the log again


@dataclass(frozen=True, slots=True)
class Shared:
    """The state shared by all subscriptions of a process. `live` holds the buffers of live subscriptions."""

    log: Log
    posts: Posts
    reader: LogReader
    session_watch: SessionWatch
    live: set[Buffer[Any]]
    checkpoint_seconds: float
    handover: Handover


class Subscription(Generic[C]):
    """A subscription to a source. It resumes after the number `after`, or starts at the end of the log if None.

    The subscription ends when one of its claims ends: its session, or a permission that it needs. On joining, claims
    are watched first, and then checked once.

    `_checkpoint_at` is when the next Checkpoint is due, unless an update is sent first. `_position` is the number up to
    which all updates have been sent. `_deleted` are the posts whose deletions were sent last: the archiver's scan
    appends the deletion of a post again if a failover has lost it. `_lost` is the last `reader.lost` that was handled.
    `_lent_number` is the number of the update that the courier took last.
    """

    __slots__ = (
        "_after",
        "_buffer",
        "_checkpoint_at",
        "_claims",
        "_courier",
        "_deleted",
        "_lent_number",
        "_lost",
        "_position",
        "_shared",
        "_source",
        "_turn",
    )

    def __init__(
        self,
        shared: Shared,
        source: Source[C],
        after: int | None,
        claims: Sequence[Claim],
        turn: Turn,
        courier: Courier | None = None,
    ) -> None:
        self._shared = shared
        self._source = source
        self._after = after
        self._claims = claims
        self._turn = turn
        self._courier = courier
        self._buffer: Buffer[C] = Buffer()
        self._lent_number = self._position = 0
        self._checkpoint_at = 0.0
        self._deleted: tuple[int, ...] = ()
        self._lost: tuple[tuple[int, int], ...] = ()

    async def updates(self) -> AsyncGenerator[C | Checkpoint | Gap]:
        """Yield the updates, beginning with a Checkpoint. Raises SessionOver, NotPermitted and StoreUnavailable."""
        log, watch = self._shared.log, self._shared.session_watch.watch
        stops = [watch(claim, partial(self._end, claim)) for claim in self._claims]
        try:
            joined = await self._join(check=True)
            past = await log.end() if self._source.reads_posts else 0
            self._position = joined if self._after is None else self._after
            while True:
                yield Checkpoint(self._position, _now())
                async with aclosing(self._replay(joined, past)) as replayed:
                    async for missed in replayed:
                        yield missed
                async with aclosing(self._go_live()) as live:
                    async for update in live:
                        yield update
                if self._buffer.cut_off is CutOff.FULL:
                    gap = Gap(self._position, _now(), GapReason.SLOW_CONSUMER)
                    await self._before(gap)
                    # Read this before the client refetches its page: events committed in between must be streamed.
                    resumed = max(self._position, await log.watermark())
                    yield gap
                    self._position = resumed
                # The session watch sees the events that the reader reads, but not those that the reader skipped.
                joined = await self._join(check=self._buffer.cut_off is CutOff.REPLAY)
        finally:
            for stop in stops:
                stop()
            self._source.close()

    def _end(self, claim: Claim) -> None:
        if isinstance(claim[1], Permission):
            self._buffer.fail(NotPermitted(f"The permission '{claim[1]}' is required."))
        else:
            self._buffer.fail(SessionOver("The session has ended. Log in again."))

    async def _join(self, *, check: bool) -> int:
        """Load the source's state up to the reader's head, and check the claims if `check` is True. Return the head."""
        reader = self._shared.reader
        await reader.ready()
        self._buffer.reset()
        if self._source.has_state or (check and self._claims):
            await self._load()
        joined = reader.head
        self._source.join(joined)
        if check:
            await self._shared.session_watch.check(self._claims)
        self._buffer.raise_error()
        return joined

    async def _load(self) -> None:
        """Load the projected state, and apply the viewer's events up to the head that may not be projected yet.

        Load again if the reader has forgotten an event that was not projected when the load began.
        """
        reader, source = self._shared.reader, self._source
        while True:
            projected = reader.unprojected.watermark
            await source.load()
            if reader.unprojected.since <= projected:
                break
        if source.viewer is not None:
            events = reader.unprojected.of(source.viewer)
            source.apply(events)
            for event in events:
                if isinstance(event.body, SessionsEnded):
                    self._shared.session_watch.apply(event)

    async def _replay(self, joined: int, past: int) -> AsyncGenerator[C | Gap]:
        """Yield the updates of events that are in the log already, until the position is the reader's head.

        Return early if a failover loses events: `_go_live` then cuts the subscription off. `past` is the end of the log
        when the subscription began. If the reader is behind `past`, wait for it: live events are matched by the content
        of posts, but past deletions must not be.
        """
        log, reader = self._shared.log, self._shared.reader
        if self._position > (last := await self._last_kept(joined)):
            self._position = min(last, await log.watermark())
            yield Gap(self._position, _now(), GapReason.RETENTION)
        reached = min(self._position, joined)
        try:
            while True:
                async with aclosing(reader.replay(reached, REPLAY_BATCH)) as parts:
                    async for part in parts:
                        if reader.lost != self._lost:
                            return
                        if part.lost:
                            await self._source.load()
                        if part.lost and part.up_to > self._position:
                            self._position = part.up_to
                            yield Gap(self._position, _now(), GapReason.RETENTION)
                        async with aclosing(self._replay_part(part.events)) as updates:
                            async for update in updates:
                                yield update
                        reached = part.up_to
                        self._position = max(self._position, reached)
                        self._turn.queue()
                if reader.head >= past:
                    return
                if not await reader.wait_for_progress(PROGRESS_SECONDS):
                    past = min(past, await log.end())  # a failover may have lost the newest entries
                self._buffer.raise_error()
        finally:
            self._turn.end()

    async def _last_kept(self, joined: int) -> int:
        """Return the position or, if it is among events that a failover has lost, the last number before them."""
        unknown = self._shared.reader.lost[len(self._lost) :]
        self._lost += unknown
        kept = self._position
        for after, up_to in unknown:
            if after < kept <= up_to:
                kept = after
        if kept < self._position or kept <= joined:
            return kept
        return min(kept, await self._shared.log.last())

    async def _replay_part(self, events: Sequence[Event]) -> AsyncGenerator[C | Gap]:
        """Yield the updates of replayed events, and a Gap at each repair.

        At a repair, wait until the cursors of pages are beyond the repair, and load the state of the source again. A
        subscription from an earlier cursor would send the Gap again.

        One round trip if posts are selected, and for each repair another two and the cost of `Source.before_update`.
        """
        repairs = [place for place, event in enumerate(events) if isinstance(event.body, StoreRepaired)]
        for after, up_to in pairwise((-1, *repairs, len(events))):
            async with aclosing(self._replay_events(events[after + 1 : up_to])) as updates:
                async for update in updates:
                    yield update
            if up_to < len(events) and events[up_to].number > self._position:
                gap = Gap(events[up_to].number, events[up_to].at, GapReason.REPAIR)
                await self._wait_for_pages(gap.number)
                await self._join(check=False)
                await self._before(gap)
                self._position = gap.number
                yield gap

    async def _wait_for_pages(self, number: int) -> None:
        """Wait, for a limited time, until live cursors of this process's new pages are at or after a number."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PAGES_SECONDS):
                while await self._shared.log.recent_watermark() < number:  # noqa: ASYNC110 - the store sends no notification
                    await asyncio.sleep(PAGES_STEP_SECONDS)

    async def _replay_events(self, events: Sequence[Event]) -> AsyncGenerator[C]:
        """Yield the updates of replayed events. One round trip if posts are selected.

        Deleted posts are removed before posts are matched by their content. Therefore neither the updates nor the
        round trips reveal whether a deleted post matches.
        """
        await self._turn.step()
        selected = [event for event in self._source.select(events) if event.number > self._position]
        checked_at = asyncio.get_running_loop().time()
        counts = await post_counts(self._shared.posts, selected)
        remaining = [event for event in selected if counts.get(event.number, NO_COUNTS) is not None]
        for some in chunks(remaining, REPLAY_STEP):
            replayed = await self._source.visible(self._source.updates_of(some))
            updates = [counted(update, counts) for update in replayed]
            withheld = withhold_deleted(self._shared.posts, updates, checked_at, self._buffer.raise_error)
            async with aclosing(withheld) as visible:
                async for update in visible:
                    if not self._is_repeated(update):
                        yield await self._next(update)
                    await self._turn.step()
            await self._turn.step()

    async def _go_live(self) -> AsyncGenerator[C | Checkpoint]:
        """Yield the updates that the feed adds to the buffer, and checkpoints, until the subscription is cut off."""
        shared, buffer = self._shared, self._buffer
        clock = asyncio.get_running_loop().time
        self._source.register(buffer)
        shared.live.add(buffer)
        buffer.on_update = None if self._courier is None else self._queue
        if shared.reader.lost != self._lost:
            buffer.cut(CutOff.REPLAY)
        try:
            self._checkpoint_at = clock() + shared.checkpoint_seconds
            while True:
                if not await buffer.wait(self._checkpoint_at):
                    self._position = max(self._position, shared.reader.head)
                    yield Checkpoint(self._position, _now())
                    self._checkpoint_at = clock() + shared.checkpoint_seconds
                buffer.raise_error()
                if buffer.cut_off is not None:
                    return
                checked_at = buffer.checked_at
                taken = deque(await self._source.visible(buffer.take()))
                while taken:
                    if not fresh(checked_at):
                        checked_at = await without_deleted(shared.posts, taken, buffer.raise_error)
                        continue
                    update = taken.popleft()
                    if update.number > self._position and not self._is_repeated(update):
                        yield await self._next(update)
                        self._checkpoint_at = clock() + shared.checkpoint_seconds
        finally:
            buffer.on_update = None
            if self._courier is not None:
                self._courier.leave()
            buffer.stop_timer()
            shared.live.discard(buffer)
            self._source.unregister(buffer)

    def _queue(self) -> None:
        self._shared.handover.add(self._hand_over)

    def _hand_over(self, now: float) -> None:
        """Lend the oldest update to the courier, or wake the task if the courier cannot deliver the update."""
        buffer, courier = self._buffer, self._courier
        update = buffer.offered()
        if update is None:
            return
        if (
            courier is not None
            and fresh(buffer.checked_at, now)
            and update.number > self._position
            and isinstance(update, HANDED_OVER)
            and self._source.shows(update)
            and courier.take(update, self._settle)
        ):
            self._lent_number = update.number
            buffer.lend(now)
        else:
            buffer.wake()

    def _settle(self, delivered: bool) -> None:
        """End a loan to the courier."""
        if delivered:
            self._position = self._lent_number
            self._checkpoint_at = asyncio.get_running_loop().time() + self._shared.checkpoint_seconds
            self._buffer.delivered(self._checkpoint_at)
        else:
            self._buffer.give_back()

    def _is_repeated(self, update: C) -> bool:
        """Return True if the update is a deletion that was sent before. Remember any other deletion as sent."""
        if isinstance(update, ItemRemoved):
            if update.post in self._deleted:
                return True
            self._deleted = (*self._deleted[1 - REMEMBERED_DELETIONS :], update.post)
        return False

    async def _next(self, update: C) -> C:
        """Let the source prepare for an update, advance the position and return the update."""
        await self._before(update)
        self._buffer.raise_error()
        self._position = update.number
        return update

    async def _before(self, update: C | Gap) -> None:
        if isinstance(update, self._source.prepares):
            await self._source.before_update(update, partial(self._unprojected, update.number))

    async def _unprojected(self, up_to: int, authors: Collection[int]) -> AsyncGenerator[Sequence[Event]]:
        """Yield the events described in `graph.feed.source.ReadUnprojected`, up to a number."""
        unprojected, viewer = self._shared.reader.unprojected, self._source.viewer
        since = await self._shared.log.watermark()
        changes = [*unprojected.of_all(), *(unprojected.of(viewer) if viewer is not None else ())]
        yield [event for event in changes if since < event.number <= up_to]
        numbers = [number for number in unprojected.by_authors(authors) if since < number <= up_to]
        async with aclosing(self._shared.reader.events(numbers)) as parts:
            async for part in parts:
                yield part


def _now() -> datetime:
    return datetime.now(UTC)
