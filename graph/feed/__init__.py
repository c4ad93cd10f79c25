"""The live feed: one reader of the log in each process, and the streams that subscribe to it.

A stream joins the feed at its head, brings its picture of whom the viewer follows to that point, replays what the
client missed from the log, and goes on live; so there is no hole and no repetition where the two meet.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from graph import keys
from graph.errors import SessionOver, StoreUnavailable
from graph.events import AuthorAdded, AuthorRemoved, Checkpoint, Gap, GapReason, HomeEvent, PostAdded, PostRemoved
from graph.facts import Fact, Followed, PostDeleted, PostPublished, SessionsEnded, Unfollowed
from graph.follows import Follows
from graph.log import Log, entry_id, number_of, readable
from graph.posts import Posts, published_post
from graph.sessions import Sessions
from graph.store import BLOCK_SECONDS, Store
from graph.tasks import end

QUIET_SECONDS = 15.0
PAUSE_SECONDS = 0.2
READ_AT_ONCE = 500
HYDRATE_AT_ONCE = 100
MAX_WAITING_FACTS = 16_000  # references to facts that all streams of the process share: 128 KB

logger = logging.getLogger("fanline.feed")


@dataclass(slots=True, eq=False)
class Waiting:
    """The facts that wait for one slow or fast stream: bounded, and cut off when the bound is passed."""

    facts: deque[Fact] = field(default_factory=deque)
    cut_off: bool = False
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, facts: Iterable[Fact]) -> None:
        """Add facts; beyond the bound drop them all and remember it."""
        if not self.cut_off:
            self.facts.extend(facts)
        if len(self.facts) > MAX_WAITING_FACTS:
            self.cut_off = True
            self.facts.clear()
        self.arrived.set()

    def take(self) -> list[Fact]:
        """Take what waits."""
        taken = [self.facts.popleft() for _ in range(min(len(self.facts), HYDRATE_AT_ONCE))]
        if not self.facts and not self.cut_off:
            self.arrived.clear()
        return taken


class Feed:
    """Follows the log once for all streams of a process. `quiet_seconds` is the time between checkpoints."""

    def __init__(
        self,
        store: Store,
        log: Log,
        posts: Posts,
        follows: Follows,
        sessions: Sessions,
        *,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._store = store
        self._log = log
        self._posts = posts
        self._follows = follows
        self._sessions = sessions
        self._quiet = quiet_seconds
        self._streams: set[Waiting] = set()
        self._head = 0
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def home(
        self, viewer: int, after: int | None = None, session: str | None = None
    ) -> AsyncGenerator[HomeEvent]:
        """Stream what happens to the viewer's home timeline, in log order, nothing twice; a Checkpoint comes first.

        With `after`, what was missed since that number is replayed first; if the log no longer holds it, or never
        reached it, one Gap says so. A client that applies every event holds the home timeline. Raises SessionOver
        when the session is logged out. The streams of a process share one connection; joining costs some six trips.
        """
        while True:
            position = after or 0
            async with aclosing(self._joined(viewer, after, session)) as stream:
                async for event in stream:
                    position = event.number
                    yield event
            yield Gap(position, datetime.now(UTC), GapReason.SLOW_CONSUMER)
            after = None

    async def _joined(self, viewer: int, after: int | None, session: str | None) -> AsyncGenerator[HomeEvent]:
        """Stream until the reader proves too slow."""
        await self._run()
        drained = await self._log.drained()
        waiting = Waiting()
        self._streams.add(waiting)
        joined = self._head
        try:
            stream = HomeStream(viewer, session, await self._follows.followed_by(viewer))
            await self._check_session(stream)
            async for fact in self._log.replay(min(drained, joined), joined):
                stream.apply(fact)
            position = joined if after is None else after
            yield Checkpoint(position, datetime.now(UTC))
            if after is not None and not await self._held(after):
                position = joined
                yield Gap(position, datetime.now(UTC), GapReason.RETENTION)
            async with aclosing(self._catch_up(stream, position, joined)) as missed:
                async for event in missed:
                    yield event
            async with aclosing(self._go_live(stream, waiting, max(position, joined))) as live:
                async for event in live:
                    yield event
        finally:
            self._streams.discard(waiting)

    async def _check_session(self, stream: "HomeStream") -> None:
        """Raise SessionOver if the stream's session has ended, expired, or made way for newer ones."""
        if stream.session is not None and not await self._sessions.is_live(stream.viewer, stream.session):
            raise SessionOver("This session has ended.")

    async def _held(self, number: int) -> bool:
        """Tell whether the log still holds everything after this number, and has reached it."""
        return await self._log.trimmed() <= number <= await self._log.last()

    async def _catch_up(self, stream: "HomeStream", position: int, joined: int) -> AsyncGenerator[HomeEvent]:
        chunk: list[Fact] = []
        async with aclosing(self._log.replay(position, joined)) as replayed:
            async for fact in replayed:
                chunk.append(fact)
                if len(chunk) == HYDRATE_AT_ONCE:
                    for event in await self._living(stream.missed(chunk)):
                        yield event
                    chunk = []
        for event in await self._living(stream.missed(chunk)):
            yield event
        if position < joined and await self._log.trimmed() > position:
            yield Gap(joined, datetime.now(UTC), GapReason.RETENTION)

    async def _go_live(self, stream: "HomeStream", waiting: Waiting, position: int) -> AsyncGenerator[HomeEvent]:
        clock = asyncio.get_running_loop().time
        quiet_until = checked_until = clock() + self._quiet
        while True:
            if clock() >= checked_until:
                await self._check_session(stream)
                checked_until = clock() + self._quiet
            try:
                async with asyncio.timeout_at(quiet_until):
                    await waiting.arrived.wait()
            except TimeoutError:
                await self._check_session(stream)
                yield Checkpoint(position, datetime.now(UTC))
                quiet_until = checked_until = clock() + self._quiet
                continue
            if waiting.cut_off:
                return
            facts = waiting.take()
            for event in await self._living(stream.happened(facts, position)):
                yield event
                quiet_until = clock() + self._quiet
            position = max([position, *(fact.number for fact in facts[-1:])])

    async def _living(self, events: Sequence[HomeEvent]) -> list[HomeEvent]:
        """Leave out posts that were deleted since. One round trip if there are posts."""
        posts = [event.post.id for event in events if isinstance(event, PostAdded)]
        if not posts:
            return list(events)
        deleted = {post for post, gone in zip(posts, await self._posts.are_deleted(posts), strict=True) if gone}
        return [event for event in events if not (isinstance(event, PostAdded) and event.post.id in deleted)]

    async def _run(self) -> None:
        """Start the reader of the log unless it runs."""
        async with self._starting:
            if self._task is None or self._task.done():
                self._head = max(self._head, await self._log.last())
                self._task = asyncio.get_running_loop().create_task(self._follow_log())

    async def _follow_log(self) -> None:
        reader = self._store.reader()
        try:
            while True:
                try:
                    await self._read_on(reader)
                except StoreUnavailable as outage:
                    logger.warning("The live feed waits for the store: %s", outage.reason)
                    await asyncio.sleep(PAUSE_SECONDS)
                except Exception:
                    logger.exception("The live feed tries again")
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await reader.close()

    async def _read_on(self, reader: Store) -> None:
        reply = await reader.run(
            "XREAD",
            "COUNT",
            READ_AT_ONCE,
            "BLOCK",
            int(BLOCK_SECONDS * 1000),
            "STREAMS",
            keys.LOG,
            entry_id(self._head),
        )
        if not reply:
            return
        entries = reply[keys.LOG]
        facts = [fact for fact in map(readable, entries) if fact is not None]
        self._head = number_of(entries[-1][0])
        for waiting in self._streams:
            waiting.offer(facts)

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            await end([self._task])


class HomeStream:
    """What one stream knows: its viewer and whom the viewer follows, kept up by the viewer's own facts."""

    def __init__(self, viewer: int, session: str | None, followed: dict[int, int]) -> None:
        self.viewer = viewer
        self.session = session
        self._followed = followed

    def apply(self, fact: Fact) -> None:
        """Bring whom the viewer follows up to this fact, by number. Raises SessionOver if it ends the session."""
        event = fact.event
        if isinstance(event, Followed) and event.follower == self.viewer:
            self._followed[event.followee] = max(fact.number, self._followed.get(event.followee, 0))
        elif (
            isinstance(event, Unfollowed)
            and event.follower == self.viewer
            and self._followed.get(event.followee, fact.number) < fact.number
        ):
            del self._followed[event.followee]
        elif isinstance(event, SessionsEnded) and event.user == self.viewer and self.session in event.sessions:
            raise SessionOver("This session was logged out.")

    def missed(self, facts: Iterable[Fact]) -> list[HomeEvent]:
        """Tell what facts of the past meant, seen by whom the viewer follows now."""
        return [event for fact in facts for event in self._meaning(fact)]

    def happened(self, facts: Iterable[Fact], position: int) -> list[HomeEvent]:
        """Tell what facts mean as they come; those up to the position are known to the client already."""
        events: list[HomeEvent] = []
        for fact in facts:
            self.apply(fact)
            if fact.number > position:
                events += self._meaning(fact)
        return events

    def _meaning(self, fact: Fact) -> Iterable[HomeEvent]:
        event = fact.event
        if isinstance(event, PostPublished) and self._shows(event.author):
            yield PostAdded(fact.number, published_post(fact.number, event))
        elif isinstance(event, PostDeleted) and self._shows(event.author):
            yield PostRemoved(fact.number, event.post, event.author)
        elif isinstance(event, Followed) and event.follower == self.viewer:
            yield AuthorAdded(fact.number, event.followee)
        elif isinstance(event, Unfollowed) and event.follower == self.viewer:
            yield AuthorRemoved(fact.number, event.followee)

    def _shows(self, author: int) -> bool:
        return author == self.viewer or author in self._followed
