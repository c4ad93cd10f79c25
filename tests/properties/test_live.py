"""Property tests of the live feed: any interleaving of events, disconnects, slow clients, outages and retention.

A client that applies every update of a timeline holds the timeline. An events client gets every matching event exactly
once, in log order, and every deletion that was in the log when it subscribed. A Gap reports what retention removed.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from redis.asyncio import Redis

from graph import Graph
from graph.errors import Rejected
from graph.feed.feed import Feed
from graph.feed.filters import Box, EventFilter, EventKind
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Followed,
    Liked,
    ListChanged,
    PostDeleted,
    PostPublished,
    Unblocked,
    Unfollowed,
    Unliked,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.numbers import entry_id
from graph.log.pair_events import Muted, Unmuted
from graph.model import Location
from graph.post_lists import REPLIED
from tests.conftest import CHEAP
from tests.graph.feed.watching import feed_of
from tests.properties.executed import Executed
from tests.properties.live import Client, EventsClient, ThreadClient, TimelineClient
from tests.properties.live_subjects import Home, OfList, Own, World
from tests.support.graph_worlds import append_events, crowd
from tests.support.graphs import empty, open_graph
from tests.support.stores import Fault, HookedStore, sends

pytestmark = pytest.mark.slow

CHECKPOINT_SECONDS = 0.03
EXAMPLES, PARTS = 20, 2
LONG_EXAMPLES, LONG_PARTS = 40_000, 8
PEOPLE = 4
TEXTS = ("rain in Berlin", "a #rain song", "北京下雨", "nothing")
PLACES = (None, None, Location(52.5, 13.4), Location(39.9, 116.4))

CHANGES: dict[str, type[Muted | Unmuted | Blocked | Unblocked]] = {
    "mute": Muted,
    "unmute": Unmuted,
    "block": Blocked,
    "unblock": Unblocked,
}
APPLIED = (
    PostPublished,
    PostDeleted,
    Followed,
    Unfollowed,
    ListChanged,
    UserSuspended,
    UserUnsuspended,
    *CHANGES.values(),
)

Step = tuple[Any, ...]

person = st.integers(0, PEOPLE - 1)
client = st.integers(0, 14)
process = st.integers(0, 1)
step = st.one_of(
    *[st.tuples(st.just("publish"), person, st.integers(0, 3), st.integers(1, 4))] * 4,
    *[st.tuples(st.just("poll"), client, st.sampled_from((1, 1, 2, 6)))] * 5,
    *[st.tuples(st.just("poll all"), st.sampled_from((1, 2, 6)))] * 3,
    *[st.tuples(st.just("tell"), person, st.integers(0, 3), st.integers(1, 4))] * 3,
    *[st.tuples(st.just("follow or unfollow"), person, person)] * 2,
    *[st.tuples(st.just("silence"), person, person, st.sampled_from((*CHANGES,)), st.booleans())] * 2,
    *[st.tuples(st.just("reply"), person, st.integers(0, 30), st.booleans())] * 2,
    *[st.tuples(st.just("change list"), person, st.booleans())] * 2,
    *[st.tuples(st.just("like"), person, st.booleans())] * 2,
    *[st.tuples(st.just("suspend"), person, st.booleans(), st.booleans())] * 2,
    *[st.tuples(st.just("move"), client, process)] * 2,
    st.tuples(st.just("delete"), st.integers(0, 30)),
    st.tuples(st.just("commit only"), person, st.integers(0, 30)),
    st.tuples(st.just("drain")),
    st.tuples(st.just("trim"), st.integers(0, 30)),
    st.tuples(st.just("lag"), process, st.integers(2, 10)),
    st.tuples(st.just("outage"), process, st.integers(1, 4)),
    st.tuples(st.just("disconnect")),
    st.tuples(st.just("rest")),
)
steps = st.lists(step, min_size=20, max_size=80)


class Interleaving:
    """Two processes with a feed each, a third process that writes, clients of both feeds, and the expected state."""

    def __init__(
        self, writer: Graph, feeds: list[tuple[Graph, Feed]], raw: Redis, people: list[int], list_id: int, root: int
    ) -> None:
        self.writer = writer
        self.feeds = feeds
        self.raw = raw
        self.people = people
        self.list_id = list_id
        self.root = root
        self.world = World(people)
        filters = (
            EventFilter.of(users=people[:2]),
            EventFilter.of(keywords=["rain", "北京"]),
            EventFilter.of(within=Box(30, 100, 60, 20), kinds=[EventKind.POST_ADDED, EventKind.POST_REMOVED]),
            EventFilter.of(users=people, sample=0.5),
        )
        self.clients: list[Client] = [
            TimelineClient(self.world, Home(people[0]), people[0]),
            TimelineClient(self.world, Home(people[1]), people[1], by_courier=True),
            *(EventsClient(self.world, chosen, by_courier=place != 0) for place, chosen in enumerate(filters)),
            TimelineClient(self.world, Home(people[0]), people[0], own=True, by_courier=True),
            TimelineClient(self.world, Home(people[1]), people[1], own=True, by_courier=True),
            TimelineClient(self.world, Home(people[2]), people[2], by_courier=True),
            TimelineClient(self.world, Own(people[0], None), None, by_courier=True),
            TimelineClient(self.world, Own(people[0], people[1]), people[1]),
            TimelineClient(self.world, Own(people[1], people[0], REPLIED), people[0], by_courier=True),
            TimelineClient(self.world, OfList(people[0], list_id), people[0], by_courier=True),
            ThreadClient(self.world, root, None),
            ThreadClient(self.world, root, people[1]),
        ]
        self.world.executed = {feed: Executed(graph) for graph, feed in feeds}
        self.at = [n // 2 % 2 for n in range(len(self.clients))]

    async def step(self, name: str, *arguments: Any) -> None:
        """Execute one step."""
        await getattr(self, f"_{name.replace(' ', '_')}")(*arguments)

    async def _publish(self, author: int, kind: int, times: int) -> None:
        for _ in range(times):
            await self._commit(self.writer.posts.publish(self.people[author], TEXTS[kind], location=PLACES[kind]))

    async def _tell(self, author: int, kind: int, times: int) -> None:
        """Publish while all clients that are not slow wait for updates."""
        await self._poll_all(20)
        await self._publish(author, kind, times)

    async def _reply(self, author: int, which: int, only_commit: bool) -> None:
        """Reply to a post of another user. Perhaps commit without projecting."""
        user = self.people[author]
        parents = [(post, by) for post, by in sorted(self.world.posts.items()) if by != user]
        if user != self.people[0] and which % 2:
            parents = [(self.root, self.people[0])]
        if parents:
            parent, by = parents[which % len(parents)]
            body = PostPublished(user, "a reply", reply_to=parent, root=parent, reply_to_author=by, listed=False)
            publish = self.writer.posts.publish
            with suppress(Rejected):  # there is a block, or a user is suspended
                await self._commit(
                    append_events(self.writer, [body]) if only_commit else publish(user, "a reply", reply_to=parent)
                )

    async def _like(self, who: int, only_commit: bool) -> None:
        """Like the post of the thread, or undo it. Perhaps commit without projecting."""
        user, author = self.people[who], self.people[0]
        [likes] = await self.writer.likes.liked_among(user, [self.root]) or [False]
        body = (Unliked if likes else Liked)(user, self.root, author)
        change = self.writer.likes.unlike if likes else self.writer.likes.like
        with suppress(Rejected):  # there is a block, or a user is suspended
            await self._commit(append_events(self.writer, [body]) if only_commit else change(user, self.root))

    async def _change_list(self, who: int, only_commit: bool) -> None:
        """Add a member to the list, or remove one. Perhaps commit without projecting."""
        user = self.people[who]
        removed, added = ((user,), ()) if user in self.world.members else ((), (user,))
        bodies: list[EventBody] = [ListChanged(self.people[0], self.list_id, added=added, removed=removed)]
        await self._commit(append_events(self.writer, bodies))
        if not only_commit:
            await self.writer.worker().drain()

    async def _delete(self, which: int) -> None:
        posts = sorted((post, author) for post, author in self.world.posts.items() if post != self.root)
        if posts:
            post, author = posts[which % len(posts)]
            with suppress(Rejected):  # the post is not projected yet
                await self._commit(self.writer.posts.delete(author, post))

    async def _follow_or_unfollow(self, follower: int, followee: int) -> None:
        pair = self.people[follower], self.people[followee]
        if pair in self.world.follows:
            await self._commit(self.writer.follows.unfollow(pair[0], [pair[1]]))
        elif follower != followee:
            await self._commit(self.writer.follows.follow(pair[0], [pair[1]]))

    async def _silence(self, who: int, whom: int, change: str, only_commit: bool) -> None:
        """Mute or block a user, or undo it. Perhaps commit without projecting, even if it changes nothing."""
        user, other = self.people[who], self.people[whom]
        if user != other:
            write = getattr(self.writer.blocks, change)
            bodies: list[EventBody] = [CHANGES[change](user, other)]
            with suppress(Rejected):  # the other user is suspended
                await self._commit(append_events(self.writer, bodies) if only_commit else write(user, other))

    async def _suspend(self, who: int, lifted: bool, only_commit: bool) -> None:
        """Suspend a user, or end the suspension. Perhaps commit without projecting, even if it changes nothing."""
        user, moderation = self.people[who], self.writer.moderation
        bodies: list[EventBody] = [UserUnsuspended(user) if lifted else UserSuspended(user)]
        write = moderation.unsuspend if lifted else moderation.suspend
        await self._commit(append_events(self.writer, bodies) if only_commit else write(user))

    async def _commit_only(self, who: int, kind: int) -> None:
        """Commit without projecting, like a process that dies after its commit."""
        me, other = self.people[who], self.people[kind % PEOPLE]
        followed: EventBody = Unfollowed(me, other) if (me, other) in self.world.follows else Followed(me, other)
        published = PostPublished(me, TEXTS[kind % 4])
        await self._commit(append_events(self.writer, [followed if kind % 2 and me != other else published]))

    async def _commit(self, write: Awaitable[Any]) -> None:
        before = await self.writer.log.last()
        await write
        for event in await self.writer.log.newest(await self.writer.log.last(), 3):
            if event.number > before and isinstance(event.body, APPLIED):
                self.world.apply(event)

    async def _poll(self, who: int, limit: int) -> None:
        graph, feed = self.feeds[self.at[who]]
        await self.clients[who].poll(graph, feed, limit)

    async def _poll_all(self, limit: int) -> None:
        """Poll all clients at the same time, so that they wait for the same events."""
        await asyncio.gather(*(self._poll(who, limit) for who in range(len(self.clients))))

    async def _move(self, who: int, process: int) -> None:
        await self.clients[who].disconnect()
        self.at[who] = process

    async def _drain(self) -> None:
        await self.writer.worker().drain()

    async def _trim(self, which: int) -> None:
        """Let retention remove projected events, up to some event."""
        watermark = await self.writer.worker().drain()
        numbers = [event.number for event in self.world.events if event.number <= watermark]
        if numbers and (up_to := numbers[which % len(numbers)]) > self.world.trimmed:
            self.world.trimmed = up_to
            await self.writer.store.send(
                [("SET", "{log}:trimmed", up_to), ("XTRIM", "{log}", "MINID", entry_id(up_to + 1))]
            )

    async def _outage(self, process: int, times: int) -> None:
        """Make some exchanges of a process with the store fail."""
        Fault(self.feeds[process][0].store, lambda _: True, times=times)

    async def _lag(self, process: int, times: int) -> None:
        """Make the reader of a process fall behind."""
        Fault(self.feeds[process][0].store, sends("XREAD"), times=times)

    async def _disconnect(self) -> None:
        """Close all connections to the store."""
        await self.raw.client_kill_filter(_type="normal", skipme=True)

    async def _rest(self) -> None:
        await asyncio.sleep(CHECKPOINT_SECONDS)

    async def check(self) -> None:
        """Let all clients finish, and check what they have received."""
        await self.writer.worker().drain()
        last = await self.writer.log.last()
        await asyncio.gather(*(each.finish(*self.feeds[self.at[who]], last) for who, each in enumerate(self.clients)))
        for each in self.clients:
            await each.check(self.writer)


async def run(url: str, steps_taken: list[Step]) -> None:
    """Run the steps in an empty store."""
    async with AsyncExitStack() as stack:
        graphs = []
        for _ in range(3):
            graphs.append(await open_graph(url, CHEAP, partial(HookedStore, single_slot=True)))
            stack.push_async_callback(graphs[-1].close)
        writer, *readers = graphs
        raw = await stack.enter_async_context(Redis.from_url(url, decode_responses=True))
        people = await crowd(writer, PEOPLE)
        friends = await writer.lists.create(people[0], "friends", [])
        root = await writer.posts.publish(people[0], "the post of a thread")
        await writer.worker().drain()
        feeds = [(graph, await stack.enter_async_context(feed_of(graph, CHECKPOINT_SECONDS))) for graph in readers]
        interleaving = Interleaving(writer, feeds, raw, people, friends.id, root.id)
        interleaving.world.apply(Event(root.id, PostPublished(people[0], root.text)))
        try:
            for name, *arguments in steps_taken:
                await interleaving.step(name, *arguments)
            await interleaving.check()
        finally:
            for each in interleaving.clients:
                await each.disconnect()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Split the long profile, which waits most of the time, into parts that processes run side by side."""
    metafunc.parametrize("part", range(LONG_PARTS if metafunc.config.getoption("--long") else PARTS))


@pytest.mark.timeout(300)
def test_clients_receive_every_update_once_in_order(
    part: int, store_url: str, long_profile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All limits are small, so that each of them is reached."""
    monkeypatch.setattr("graph.feed.buffer.MAX_BYTES", 1300)
    monkeypatch.setattr("graph.feed.combined_stream.SEND_SECONDS", 0.02)
    monkeypatch.setattr("graph.feed.combined_stream.SETTLE_SECONDS", 0.002)
    monkeypatch.setattr("graph.feed.buffer.TAKE_BATCH", 2)
    monkeypatch.setattr("graph.feed.reader.READ_BATCH", 3)
    monkeypatch.setattr("graph.feed.subscription.REPLAY_BATCH", 3)
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", 3)
    monkeypatch.setattr("graph.feed.reader.RETRY_SECONDS", 0.005)
    monkeypatch.setattr("graph.feed.deletions.RECHECK_SECONDS", 0.02)
    monkeypatch.setattr("graph.feed.unprojected.KEEP_SECONDS", 0.005 * (part % 2))

    @settings(
        max_examples=LONG_EXAMPLES // LONG_PARTS if long_profile else EXAMPLES // PARTS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(steps)
    def example(steps_taken: list[Step]) -> None:
        empty(store_url)
        asyncio.run(run(store_url, steps_taken))

    example()
