"""The live feed: one reader of the log in each process, and the streams that subscribe to it.

A stream first reads the past, from the log or from what the reader keeps in memory, at its subscriber's pace. At the
moment it has reached the reader's head it takes its place in an index, and from then on waits for what the reader
passes on; there is no step in between in which an event could be missed or told twice. A subscriber that stays behind
while it catches up costs nobody any memory; one that stays behind later is cut off at a bound, and told so.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any

from graph.errors import NotPermitted, SessionOver
from graph.feed.filter_source import FilterSource, stream_update
from graph.feed.filters import EventFilter
from graph.feed.home_source import HomeIndex, HomeSource, home_update
from graph.feed.matching import FilterIndex
from graph.feed.reader import LogReader
from graph.feed.session_watch import Claim, SessionWatch
from graph.feed.source import Source
from graph.feed.stream import E, Stream, size_of
from graph.feed.turns import Turn, Turns
from graph.feed.updates import (
    Checkpoint,
    Gap,
    GapReason,
    HomeUpdate,
    PostAdded,
    PostPublished,
    StreamHappened,
    StreamUpdate,
)
from graph.follows import Follows
from graph.log.events import Event, SessionsEnded
from graph.log.events import PostPublished as LoggedPost
from graph.log.log import Log
from graph.model import Permission
from graph.posts import Posts
from graph.projections.projections import Projections
from graph.sessions import Sessions
from graph.store.store import Store
from graph.tasks import end
from graph.users import Users

QUIET_SECONDS = 15.0
DIGEST_SECONDS = 0.02
MOST_SECONDS_BEHIND = 1.0  # that the reader waits for streams, for each part of the log
TOLD_AT_ONCE = 100  # events of the past; with the longest texts they take what a stream may buffer
TOLD_IN_A_STEP = 10  # events of the past; with the longest texts and filters that takes a millisecond or two
BEHIND_SECONDS = 1.0  # that a stream which has to wait for the reader waits until it looks at the log again
STALE_SECONDS = 1.0  # after which a post that waited is looked at again: it may have been deleted


class Feed:
    """Follows the log once for all streams of a process. `quiet_seconds` is the time between checkpoints.

    `cut_off` is how often a stream was.
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
        *,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._log = log
        self._posts = posts
        self._follows = follows
        self._projections = projections
        self._reader = LogReader(store, log, self)
        self._homes = HomeIndex()
        self._filters: FilterIndex[Stream[StreamHappened]] = FilterIndex()
        self._session_watch = SessionWatch(sessions, users)
        self._quiet = quiet_seconds
        self._deleted: set[int] = set()
        self._streams: set[Stream[Any]] = set()
        self._crowded: set[Stream[Any]] = set()
        self._turns = Turns()
        self._sweep: asyncio.Task[None] | None = None
        self.cut_off = 0

    def home(self, viewer: int, after: int | None = None, session: str | None = None) -> AsyncGenerator[HomeUpdate]:
        """Stream what happens to the viewer's home timeline, in log order, nothing twice; a Checkpoint comes first.

        With `after`, what was missed since that number is replayed first; if the log no longer holds all of it, or
        never reached it, one Gap says so. A client that applies every update holds the home timeline. Raises
        SessionOver when the session has ended. The streams of a process share one connection; joining costs some five
        round trips.
        """
        claims: list[Claim] = [] if session is None else [(viewer, session)]
        source = HomeSource(viewer, self._follows, self._projections, self._homes)
        return self._stream(source, after, claims, Turn(self._turns, viewer))

    def events(
        self,
        filter_: EventFilter,
        after: int | None = None,
        viewer: int | None = None,
        session: str | None = None,
        *,
        holder: Hashable = None,
    ) -> AsyncGenerator[StreamUpdate]:
        """Stream every event that passes the filter, exactly once, in log order; the rest is as for `home`.

        Posts that were deleted since are left out. Deletions that were appended before the stream began, or that it
        replays, pass every keyword and every box, so that guesses about a deleted post learn nothing. A firehose needs
        the permission of a viewer: raises NotPermitted if it is not there, or as soon as it is revoked.

        `holder` is who shares the turns of replays: the viewer if there is one, else by default this stream alone.
        """
        claims: list[Claim] = [] if session is None or viewer is None else [(viewer, session)]
        if filter_.firehose:
            if viewer is None:
                raise NotPermitted("A firehose needs a viewer with the permission for it.")
            claims.append((viewer, Permission.FIREHOSE))
        turn = Turn(self._turns, viewer if viewer is not None else object() if holder is None else holder)
        return self._stream(FilterSource(filter_, self._filters), after, claims, turn)

    def __len__(self) -> int:
        """Tell how many streams are live."""
        return len(self._streams)

    def watch(self, user: int, session: str, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call `on_end` once, as soon as the session has ended. Returns what stops watching.

        A logging out is heard of from the log, the rest within the time between checkpoints.
        """
        self._start()
        return self._session_watch.watch((user, session), on_end)

    async def close(self) -> None:
        """Stop reading."""
        await self._reader.close()
        if self._sweep is not None:
            await end([self._sweep])

    def _start(self) -> None:
        self._reader.start()
        if self._sweep is None or self._sweep.done():
            self._sweep = asyncio.get_running_loop().create_task(self._session_watch.sweep(self._quiet))

    async def _stream(
        self, source: Source[E], after: int | None, claims: Sequence[Claim], turn: Turn
    ) -> AsyncGenerator[E | Checkpoint | Gap]:
        stream: Stream[E] = Stream()
        past: int | None = None
        stops = [self._session_watch.watch(claim, partial(_send_away, stream, claim)) for claim in claims]
        try:
            while True:
                joined = await self._join(source, stream, claims)
                if past is None:
                    past = await self._log.end() if source.reads_posts else 0
                stream.position = joined if after is None else after
                yield Checkpoint(stream.position, _now())
                async with aclosing(self._catch_up(source, stream, joined, past, turn)) as updates:
                    async for missed in updates:
                        yield missed
                self._register(source, stream)
                try:
                    async with aclosing(self._go_live(source, stream)) as live:
                        async for update in live:
                            yield update
                finally:
                    self._unregister(source, stream)
                after = stream.position
                if stream.cut_off is GapReason.SLOW_CONSUMER:
                    # Read before the client refetches its page: what comes between the two must be told.
                    resumed = max(after, await self._log.watermark())
                    yield Gap(after, _now(), GapReason.SLOW_CONSUMER)
                    after = resumed
        finally:
            for stop in stops:
                stop()

    async def _join(self, source: Source[E], stream: Stream[E], claims: Sequence[Claim]) -> int:
        """Know all that the meaning of events depends on, up to the reader's head, which is returned."""
        self._start()
        await self._reader.ready()
        stream.restart()
        if source.learns or claims:
            await self._learn(source)
        joined = self._reader.head
        source.join(joined)
        await self._session_watch.check(claims)
        stream.raise_ended()
        return joined

    async def _learn(self, source: Source[E]) -> None:
        """Look up what is projected, and learn what perhaps is not: the events after the watermark."""
        watermark = await self._log.watermark()
        await source.look_up()
        async with aclosing(self._reader.replay(watermark)) as parts:
            async for part in parts:
                if part.lost:
                    await source.look_up()
                source.learn(part.events)
                for event in part.events:
                    if isinstance(event.body, SessionsEnded):
                        self._session_watch.apply(event)

    async def _catch_up(
        self, source: Source[E], stream: Stream[E], joined: int, past: int, turn: Turn
    ) -> AsyncGenerator[E | Gap]:
        """Stream the past: up to the number `past`, then to the reader's head as it is at the very moment this ends.

        A reader behind `past` is waited for: what it passes on live may be matched exactly, and of what was in the log
        before the stream began, nothing may.
        """
        if stream.position > joined and stream.position > (last := await self._log.last()):
            stream.position = min(last, await self._log.watermark())
            yield Gap(stream.position, _now(), GapReason.RETENTION)
        reached = min(stream.position, joined)
        try:
            while True:
                async with aclosing(self._reader.replay(reached, TOLD_AT_ONCE)) as parts:
                    async for part in parts:
                        if part.lost:
                            await source.look_up()
                        if part.lost and part.upto > stream.position:
                            stream.position = part.upto
                            yield Gap(stream.position, _now(), GapReason.RETENTION)
                        async with aclosing(self._tell(source, stream, part.events, turn)) as updates:
                            async for update in updates:
                                yield update
                        reached = part.upto
                        stream.position = max(stream.position, reached)
                        turn.queue()
                if self._reader.head >= past:
                    return
                if not await self._reader.moves(BEHIND_SECONDS):
                    past = min(past, await self._log.end())  # a failover may have undone the newest entries
                stream.raise_ended()
        finally:
            turn.end()

    async def _tell(
        self, source: Source[E], stream: Stream[E], events: Sequence[Event], turn: Turn
    ) -> AsyncGenerator[E]:
        """Yield the updates of events of the past. Posts that were deleted since are left out before they are matched.

        So neither the updates nor the round trips depend on whether a deleted post matches. One round trip if posts
        were picked.
        """
        await turn.step()
        picked = [event for event in source.pick(events) if event.number > stream.position]
        looked_at = asyncio.get_running_loop().time()
        kept = await self._kept(picked)
        for start in range(0, len(kept), TOLD_IN_A_STEP):
            told = source.tell(kept[start : start + TOLD_IN_A_STEP])
            async with aclosing(self._withhold_deleted(told, looked_at)) as living:
                async for update in living:
                    await source.announce(update, self._unprojected)
                    stream.raise_ended()
                    stream.position = update.number
                    yield update
                    await turn.step()
            await turn.step()

    async def _kept(self, events: Sequence[Event]) -> Sequence[Event]:
        """Leave out the posts that were deleted since. One round trip if there are posts."""
        posts = [event.number for event in events if isinstance(event.body, LoggedPost)]
        gone = await self._deleted_of(posts)
        return [event for event in events if event.number not in gone] if gone else events

    async def _deleted_of(self, posts: Sequence[int]) -> set[int]:
        flags = await self._posts.are_deleted(posts) if posts else []
        return {post for post, deleted in zip(posts, flags, strict=True) if deleted}

    async def _go_live(self, source: Source[E], stream: Stream[E]) -> AsyncGenerator[E | Checkpoint]:
        """Stream what the reader passes on, until the stream is cut off."""
        clock = asyncio.get_running_loop().time
        quiet_until = clock() + self._quiet
        while True:
            if not await stream.wait(quiet_until):
                stream.position = max(stream.position, self._reader.head)
                yield Checkpoint(stream.position, _now())
                quiet_until = clock() + self._quiet
            stream.raise_ended()
            if stream.cut_off is not None:
                return
            async with aclosing(self._withhold_deleted(stream.take(), stream.waiting_since)) as living:
                async for update in living:
                    if update.number > stream.position:
                        await source.announce(update, self._unprojected)
                        stream.raise_ended()
                        stream.position = update.number
                        yield update
                        quiet_until = clock() + self._quiet

    def _register(self, source: Source[E], stream: Stream[E]) -> None:
        source.register(stream)
        self._streams.add(stream)

    def _unregister(self, source: Source[E], stream: Stream[E]) -> None:
        self._streams.discard(stream)
        source.unregister(stream)

    async def _unprojected(self) -> AsyncGenerator[Sequence[Event]]:
        """Yield what is perhaps not projected yet, up to the reader's head, as far as it is in memory."""
        start = max(await self._log.watermark(), self._reader.remembers_after)
        async with aclosing(self._reader.replay(start)) as parts:
            async for part in parts:
                yield part.events

    async def _withhold_deleted(self, updates: Sequence[E], looked_at: float) -> AsyncGenerator[E]:
        """Yield updates one by one, without the posts that were deleted before it was their turn.

        `looked_at` is when that was last looked up; it is again whenever a second or more has passed.
        """
        clock = asyncio.get_running_loop().time
        waiting = deque(updates)
        del updates
        while waiting:
            if clock() - looked_at > STALE_SECONDS:
                waiting, looked_at = deque(await self._living(waiting)), clock()
            if waiting:
                yield waiting.popleft()

    async def _living(self, updates: Iterable[E]) -> Iterable[E]:
        """Leave out posts that were deleted since. One round trip if there are posts."""
        deleted = await self._deleted_of([e.post.id for e in updates if isinstance(e, PostAdded | PostPublished)])
        return [e for e in updates if not (isinstance(e, PostAdded | PostPublished) and e.post.id in deleted)]

    async def prepare(self, events: Sequence[Event]) -> None:
        """Learn which of the published posts are deleted already. One round trip if somebody listens."""
        posts = [event.number for event in events if isinstance(event.body, LoggedPost)] if self._streams else []
        self._deleted = await self._deleted_of(posts)

    def receive(self, event: Event) -> int:
        """Offer an event to the streams that it concerns; tell how many they are."""
        self._session_watch.apply(event)
        concerned, passed = self._homes.concerned(event), self._filters.matching(event)
        if not (concerned or passed) or event.number in self._deleted:
            return 0
        now = asyncio.get_running_loop().time()
        if concerned and (happened := home_update(event)):
            self._offer(happened, concerned, now)
        if passed and (streamed := stream_update(event)):
            self._offer(streamed, passed, now)
        return len(concerned) + len(passed)

    def _offer(self, update: E, streams: Iterable[Stream[E]], now: float) -> None:
        size = size_of(update)
        for stream in streams:
            self.cut_off += stream.offer(update, size, now)
            if stream.is_crowded(now):
                self._crowded.add(stream)

    async def digest(self) -> None:
        """Give the streams time while more than half of them have much waiting: the process is slow then, not they.

        The log keeps what comes meanwhile. Few slow readers hold up nobody.
        """
        await asyncio.sleep(0)
        clock = asyncio.get_running_loop().time
        patience = clock() + MOST_SECONDS_BEHIND
        while self._crowded and clock() < patience:
            self._crowded = {stream for stream in self._crowded & self._streams if stream.is_crowded(clock())}
            if 2 * len(self._crowded) <= len(self._streams):
                return
            await asyncio.sleep(DIGEST_SECONDS)

    def lose(self) -> None:
        """Let every stream find out what it has lost: events were removed before the reader came to them, or undone."""
        self._homes.clear()
        for stream in self._streams:
            stream.cut(GapReason.RETENTION)


def _send_away(stream: Stream[Any], claim: Claim) -> None:
    """End the stream of somebody whose claim has ended."""
    if isinstance(claim[1], Permission):
        stream.end(NotPermitted(f"This needs the permission '{claim[1]}', which you do not have, or no longer."))
    else:
        stream.end(SessionOver("This session has ended."))


def _now() -> datetime:
    return datetime.now(UTC)
