"""Streams of notifications: updates, the interval between updates, and how streams resume."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from graph import Graph
from graph.errors import SessionOver
from graph.feed import combined_stream
from graph.feed.combined_stream import CombinedStream
from graph.feed.feed import Feed
from graph.feed.notification_reads import NotificationReads
from graph.feed.notification_source import NotificationIndex, notices
from graph.feed.updates import Checkpoint, Gap, GapReason, Notice, NotificationAdded, NotificationsChanged
from graph.log.events import Event, Followed, Liked, NotificationsRead, PostPublished, Unfollowed
from graph.log.notification_groups import Group, NotificationKind
from graph.log.pair_events import Muted
from tests.graph.feed.watching import Watcher
from tests.graph.notifications.acting import act, take_back
from tests.graph.notifications.reading import newest
from tests.support.graph_worlds import append_events, befriend, crowd, home, people

MENTION = NotificationKind.MENTION


@asynccontextmanager
async def notified(
    feed: Feed, viewer: int, after: int | None = None, session: str | None = None
) -> AsyncIterator[Watcher]:
    """Subscribe to a user's notifications and take the first checkpoint. Without `after`, the subscription is live."""
    stream = feed.notifications(viewer, after, session)
    watcher = Watcher(stream)
    try:
        assert isinstance(await watcher.next(), Checkpoint)
        assert after is not None or await watcher.silent()
        yield watcher
    finally:
        await stream.aclose()


def reads_of(graph: Graph) -> NotificationReads:
    """Return the shared reads of notification streams."""
    return NotificationReads(graph.log, graph.notifications, graph.projections, graph.visibility)


async def mention(graph: Graph, author: int, *users: int) -> int:
    """Publish a post that mentions users, and return its id."""
    [event] = await graph.commit([PostPublished(author, "hello", mentions=users)])
    return event.number


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combined_stream, "SEND_SECONDS", 0.2)


async def test_a_notification_is_sent_with_its_users(graph: Graph, feed: Feed) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, alice)
    async with notified(feed, alice) as watcher:
        await befriend(graph, bob, alice)
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationAdded)
        assert update.number == update.notification.number == await graph.log.last()
        assert (update.notification.actors, update.notification.actors_count) == ((bob, carol), 2)
        post = await mention(graph, bob, alice)
        [update] = await watcher.take(1)
        assert (update.notification.kind, update.notification.post.id) == (MENTION, post)
        assert await watcher.silent()


async def test_only_the_streams_concerned_get_an_event(graph: Graph, feed: Feed) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    async with notified(feed, alice) as hers, notified(feed, bob) as his:
        await mention(graph, carol, bob)
        await graph.notifications.mark_read(bob, await graph.log.last())
        await befriend(graph, carol, alice)
        await graph.follows.unfollow(carol, [alice])
        kinds = [type(update) for update in await his.take(2)]
        assert kinds == [NotificationAdded, NotificationsChanged]
        [changed] = await hers.take(1)
        assert isinstance(changed, NotificationsChanged)
        assert await hers.silent()
        assert await his.silent()


async def test_a_busy_group_is_sent_once_per_interval(graph: Graph, feed: Feed) -> None:
    """Each update contains all users so far; the last one includes the newest."""
    alice, *fans = await crowd(graph, 13)
    async with notified(feed, alice) as watcher:
        for fan in fans:
            await befriend(graph, fan, alice)
        updates = await watcher.until(await graph.log.last())
        assert len(updates) < len(fans)
        assert updates[-1].notification.actors_count == len(fans)
        assert updates[-1].notification.actors[0] == fans[-1]
        assert await watcher.silent()


async def test_a_stream_resumes_after_any_update(graph: Graph, feed: Feed) -> None:
    """The replay has each group once, in the order of the log."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    start = await graph.log.last()
    await befriend(graph, bob, alice)
    first, second = await mention(graph, bob, alice), await mention(graph, bob, alice)
    await befriend(graph, carol, alice)
    last = await graph.log.last()
    async with notified(feed, alice, start) as watcher:
        assert [update.number for update in await watcher.take(3)] == [first, second, last]
    async with notified(feed, alice, first) as watcher:
        assert [update.number for update in await watcher.take(2)] == [second, last]
    async with notified(feed, alice, last) as watcher:
        assert await watcher.silent()


async def test_what_has_vanished_is_not_sent(graph: Graph, feed: Feed) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    start = await graph.log.last()
    post = await mention(graph, bob, alice)
    await graph.posts.delete(bob, post)
    await befriend(graph, carol, alice)
    await graph.follows.unfollow(carol, [alice])
    kept = await mention(graph, bob, alice)
    async with notified(feed, alice, start) as watcher:
        changed, added = await watcher.take(2)
        assert isinstance(changed, NotificationsChanged)
        assert added.number == kept


async def test_events_of_a_process_that_died_are_projected_first(graph: Graph, feed: Feed) -> None:
    """The client's next read shows them. The home cache of the viewer stays."""
    alice, bob = await people(graph, "alice", "bob")
    await home(graph, alice)
    await graph.timelines.wait_for_rebuilds()
    async with notified(feed, alice) as watcher:
        await append_events(graph, [Followed(bob, alice)])
        [update] = await watcher.take(1)
        assert update.notification.actors == (bob,)
        assert await graph.notifications.unread_count(graph.visibility.of(alice)) == 1
        await append_events(graph, [NotificationsRead(alice, update.number)])
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)
        assert await graph.notifications.unread_count(graph.visibility.of(alice)) == 0
        await append_events(graph, [PostPublished(bob, "hello", mentions=(alice,)), Unfollowed(bob, alice)])
        added, changed = await watcher.take(2)
        assert (added.notification.kind, type(changed)) == (MENTION, NotificationsChanged)
        assert await graph.notifications.unread_count(graph.visibility.of(alice)) == 1


async def like(graph: Graph, user: int, post: int) -> None:
    """Like a post."""
    await graph.likes.like(user, post)


CHANGES: dict[str, Callable[[Graph, int, int, int, int], Awaitable[Any]]] = {
    "read": lambda graph, alice, _bob, _hers, last: graph.notifications.mark_read(alice, last),
    "unliked": lambda graph, _alice, bob, hers, _last: graph.likes.unlike(bob, hers),
    "unreposted": lambda graph, _alice, bob, hers, _last: graph.reposts.unrepost(graph.visibility.of(bob), bob, hers),
    "unfollowed": lambda graph, alice, bob, _hers, _last: graph.follows.unfollow(bob, [alice]),
    "reply deleted": lambda graph, _alice, bob, _hers, last: graph.posts.delete(bob, last),
    "own post deleted": lambda graph, alice, _bob, hers, _last: graph.posts.delete(alice, hers),
    "muted": lambda graph, alice, bob, _hers, _last: graph.blocks.mute(alice, bob),
    "blocked": lambda graph, alice, bob, _hers, _last: graph.blocks.block(alice, bob),
    "blocked by the other": lambda graph, alice, bob, _hers, _last: graph.blocks.block(bob, alice),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_stream_tells_that_the_list_has_changed(graph: Graph, feed: Feed, change: str) -> None:
    """Notifications were read elsewhere or have vanished. The client's next read shows that."""
    alice, bob = await people(graph, "alice", "bob")
    hers = (await graph.posts.publish(alice, "hello")).id
    await befriend(graph, bob, alice)
    await like(graph, bob, hers)
    await graph.reposts.repost(graph.visibility.of(bob), bob, hers)
    last = (await graph.posts.publish(bob, "no", reply_to=hers)).id
    before = await graph.notifications.page(graph.visibility.of(alice), newest(9))
    async with notified(feed, alice) as watcher:
        await CHANGES[change](graph, alice, bob, hers, last)
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)
        assert update.number == await graph.log.last()
        assert await watcher.silent()
    assert await graph.notifications.page(graph.visibility.of(alice), newest(9)) != before


@pytest.mark.parametrize("is_block", [False, True])
async def test_a_stream_tells_that_notifications_appear_again(graph: Graph, feed: Feed, is_block: bool) -> None:
    alice, bob = await people(graph, "alice", "bob")
    post = await mention(graph, bob, alice)
    act, undo = (graph.blocks.block, graph.blocks.unblock) if is_block else (graph.blocks.mute, graph.blocks.unmute)
    await act(alice, bob)
    async with notified(feed, alice) as watcher:
        assert (await graph.notifications.page(graph.visibility.of(alice), newest(9))).items == ()
        await undo(alice, bob)
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)
    [shown] = (await graph.notifications.page(graph.visibility.of(alice), newest(9))).items
    assert shown.subject == post


@pytest.mark.parametrize("name", ["like", "follow", "repost"])
async def test_a_stream_tells_what_is_renewed_as_a_change(graph: Graph, feed: Feed, name: str) -> None:
    """The group is not at the top, so the client fetches the page. Its number of users has changed."""
    alice, bob = await people(graph, "alice", "bob")
    post = (await graph.posts.publish(alice, "hello")).id
    await act(graph, name, bob, alice, post)
    await take_back(graph, name, bob, alice, post)
    async with notified(feed, alice) as watcher:
        assert (await graph.notifications.page(graph.visibility.of(alice), newest(9))).items == ()
        await act(graph, name, bob, alice, post)
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)
        assert update.number == await graph.log.last()
        assert await watcher.silent()
    [shown] = (await graph.notifications.page(graph.visibility.of(alice), newest(9))).items
    assert shown.actors == (bob,)


async def test_users_hear_that_a_post_that_notified_them_is_deleted(graph: Graph, feed: Feed) -> None:
    """Only mentioned users and the authors of the parent and the quoted post get the update."""
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    parent, quoted = (await graph.posts.publish(alice, "1")).id, (await graph.posts.publish(bob, "2")).id
    post = await graph.posts.publish(dave, "@carol @dave", reply_to=parent, quote_of=quoted)
    async with (
        notified(feed, alice) as hers,
        notified(feed, bob) as his,
        notified(feed, carol) as third,
        notified(feed, erin) as other,
    ):
        await graph.posts.delete(dave, post.id)
        for watcher in (hers, his, third):
            [update] = await watcher.take(1)
            assert isinstance(update, NotificationsChanged)
        assert await other.silent()


async def test_muted_and_blocked_users_send_nothing(graph: Graph, feed: Feed) -> None:
    """Their actions notify nobody, even at the instant they are muted."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    post = (await graph.posts.publish(alice, "hello")).id
    await graph.blocks.mute(alice, bob)
    start = await graph.log.last()
    async with notified(feed, alice) as watcher:
        await mention(graph, bob, alice)
        await like(graph, bob, post)
        await append_events(graph, [Muted(alice, carol), Liked(carol, post, alice)])
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)
        assert await watcher.silent()
    async with notified(feed, alice, start) as watcher:
        [update] = await watcher.take(1)
        assert isinstance(update, NotificationsChanged)


async def test_a_stream_ends_with_its_session(graph: Graph, feed: Feed) -> None:
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    async with notified(feed, alice, session=session.id) as watcher:
        await graph.sessions.end(alice, session.id)
        with pytest.raises(SessionOver):
            await watcher.take(1)


async def test_the_end_of_a_session_is_no_error_of_a_stream_that_its_client_has_left(graph: Graph, feed: Feed) -> None:
    """Nothing is logged: otherwise each log-out would write a traceback."""
    [alice] = await people(graph, "alice")
    session = await graph.sessions.start(alice)
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    stream = feed.notifications(alice, None, session.id)
    assert isinstance(await anext(stream), Checkpoint)
    assert isinstance(await anext(stream), Checkpoint)
    await graph.sessions.end(alice, session.id)
    await asyncio.sleep(0.2)  # the stream notices it
    await stream.aclose()
    gc.collect()
    assert problems == []


async def test_a_stream_of_an_ended_session_sends_nothing(graph: Graph, feed: Feed) -> None:
    alice, bob = await people(graph, "alice", "bob")
    session = await graph.sessions.start(alice)
    start = await graph.log.last()
    await mention(graph, bob, alice)
    await graph.sessions.end(alice, session.id)
    with pytest.raises(SessionOver):
        await Watcher(feed.notifications(alice, start, session.id)).next()


async def test_a_gap_comes_after_the_updates_before_it(graph: Graph) -> None:
    """A checkpoint does not overtake waiting updates either."""
    alice, bob = await people(graph, "alice", "bob")
    post = await mention(graph, bob, alice)
    event = Event(post, PostPublished(bob, "hello", mentions=(alice,)))
    at = event.at

    async def source() -> AsyncGenerator[Notice | Checkpoint | Gap]:
        yield Checkpoint(1, at)
        yield Notice(post, event, Group(MENTION, post))
        yield Checkpoint(post, at)
        yield Gap(post, at, GapReason.SLOW_CONSUMER)
        await asyncio.Event().wait()

    stream = CombinedStream(alice, reads_of(graph), float)
    updates: Any = stream.updates(source())
    found = [type(await anext(updates)) for _ in range(3)]
    await updates.aclose()
    assert found == [Checkpoint, NotificationAdded, Gap]


def test_the_index_finds_only_streams_of_the_users_concerned() -> None:
    index = NotificationIndex()
    event = Event(9, Followed(1, 2))
    assert not index.has_receivers(event)
    hers: Any = object()
    index.add(2, hers)
    assert index.has_receivers(event)
    [(notice, buffers)] = index.receivers(event)
    assert (notice, buffers) == (next(notices(event))[1], [hers])
    assert index.receivers(Event(9, Followed(2, 1))) == []
    assert not index.has_receivers(Event(9, Followed(2, 1)))
    index.remove(2, hers)
    index.remove(2, hers)
    assert index.receivers(event) == []
