"""Views of a process with a near cache: they take few commands, and their data is never older than the request."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.moderation_events import UserSuspended
from graph.log.numbers import entry_id
from graph.store.store import Store
from graph.visibility.suspensions import FEW as MANY
from graph.visibility.views import FEW, FEW_NEAR, View
from tests.conftest import CHEAP
from tests.support.graph_worlds import append_events, counted, people, posts
from tests.support.graphs import open_graph
from tests.support.raw import open_blocking

pytestmark = pytest.mark.single_server("on a cluster, views use no near values")


@pytest.fixture
async def near(graph: Graph, store_url: str) -> AsyncIterator[Graph]:
    """Open a process with a near cache and a connection. `graph` is another process."""
    near = await open_graph(store_url, CHEAP, partial(Store, single_slot=True, near_cache=1000))
    await near.store.read([("EXISTS", "session")])
    yield near
    await near.close()


async def request(near: Graph, viewer: int | None) -> View:
    """Start a request, and let its view begin with the request's first read."""
    view = near.visibility.of(viewer, near.store.begin())
    view.begin()
    await near.store.read([("EXISTS", "session")])
    return view


async def hidden(near: Graph, viewer: int | None, *users: int) -> set[int]:
    """Return the given users who are hidden from a viewer in a new request."""
    return set(await (await request(near, viewer)).hidden(users))


async def test_a_view_costs_no_command_once_its_sets_are_near(near: Graph, graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.blocks.block(alice, bob)
    assert await hidden(near, alice, bob, carol) == {bob}

    async with counted(near) as cost:
        view = await request(near, alice)
        assert await view.hidden([bob, carol]) == {bob}
        assert await view.silenced([bob, carol]) == {bob}

    assert (cost.round_trips, cost.commands) == (1, 1)
    async with counted(near) as cost:
        assert not await hidden(near, None, bob)
    assert (cost.round_trips, cost.commands) == (1, 1)


@pytest.mark.parametrize("size", [0, FEW_NEAR, FEW_NEAR + 1, FEW + 1])
async def test_changes_by_another_process_count_in_later_requests(
    near: Graph, graph: Graph, raw: Redis, size: int
) -> None:
    """The changes count whether a viewer blocks few users or many."""
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    if size:
        await raw.zadd(keys.blocking(alice), {str(user): 1 for user in range(1, size + 1)})
    assert not await hidden(near, alice, bob, carol, dave)

    await graph.blocks.block(alice, bob)
    await graph.blocks.block(carol, alice)
    assert await hidden(near, alice, bob, carol, dave) == {bob, carol}
    await graph.blocks.mute(alice, dave)
    assert await (await request(near, alice)).silenced([bob, carol, dave]) == {bob, carol, dave}
    await graph.blocks.unblock(alice, bob)
    await graph.moderation.suspend(dave)
    assert await hidden(near, alice, bob, carol, dave) == {carol, dave}
    assert await hidden(near, None, bob, carol, dave) == {dave}
    await graph.moderation.unsuspend(dave)
    assert await hidden(near, alice, bob, carol, dave) == {carol}


async def test_many_marks_are_looked_up_in_the_first_round_trip(near: Graph, graph: Graph, raw: Redis) -> None:
    """Once the process knows that there are many, the first round trip includes all look-ups."""
    alice, bob = await people(graph, "alice", "bob")
    await raw.zadd(keys.blocking(alice), {str(user): 1 for user in (bob, *range(1, FEW + 1))})
    assert await hidden(near, alice, bob) == {bob}

    async with counted(near) as cost:
        view = near.visibility.of(alice, near.store.begin())
        view.begin([bob])
        await near.store.read([("EXISTS", "session")])
        assert await view.hidden([bob]) == {bob}

    assert cost.round_trips == 1


async def test_what_changes_before_the_first_reply_is_read(near: Graph, graph: Graph) -> None:
    """The near cache held the sets when the request began, and drops them with the reply to its first read."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    assert not await hidden(near, alice, bob, carol)
    view, anonymous = (near.visibility.of(viewer, near.store.begin()) for viewer in (alice, None))
    view.begin()
    anonymous.begin()
    await graph.blocks.block(alice, bob)
    await graph.moderation.suspend(carol)
    await near.store.read([("EXISTS", "session")])

    assert await anonymous.hidden([bob, carol]) == {carol}
    assert await view.hidden([bob, carol]) == {bob, carol}


@pytest.mark.parametrize("first", ["suspended", "exclusions"])
async def test_a_view_that_has_read_nothing_else_reads_its_sets(
    near: Graph, graph: Graph, store_url: str, first: str
) -> None:
    """The process has not noticed the changes yet."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    assert not await hidden(near, alice, bob, carol)
    with open_blocking(store_url) as blocking:
        blocking.zadd(keys.blocking(alice), {str(bob): 1})
        blocking.hset(keys.SUSPENDED, str(carol), "1")
        blocking.set(keys.SUSPENDED_VERSION, "new")

        view = near.visibility.of(alice, near.store.begin())
        view.begin()
        await getattr(view, first)([bob, carol])

    assert await view.hidden([bob, carol]) == {bob, carol}


async def test_noted_suspensions_count_until_a_read_ends_them(near: Graph, graph: Graph, raw: Redis) -> None:
    """A stream has received the event, and a failover loses it."""
    alice, bob = await people(graph, "alice", "bob")
    assert not await hidden(near, alice, bob)
    [event] = await append_events(graph, [UserSuspended(bob)])
    near.visibility.note_suspension(bob, event.number, suspended=True)
    for _ in range(2):
        assert await hidden(near, alice, bob) == {bob}
    await raw.xdel(keys.LOG, entry_id(event.number))
    await posts(graph, alice, "later")
    assert await graph.worker().drain() > event.number
    await near.log.watermark()

    assert not await hidden(near, alice, bob)


async def test_a_version_that_the_process_has_not_read_is_not_taken_for_its_own(
    near: Graph, graph: Graph, raw: Redis
) -> None:
    """Another request has read the new version, but not yet the suspensions, which are very many."""
    alice, bob = await people(graph, "alice", "bob")
    assert not await hidden(near, alice, bob)
    view = near.visibility.of(None, near.store.begin())
    view.begin()
    await raw.hset(keys.SUSPENDED, mapping={str(user): "1" for user in range(1, MANY + 2)})
    await graph.moderation.suspend(bob)
    await near.store.read([("EXISTS", "session")])
    await request(near, None)

    assert await view.hidden([alice, bob]) == {bob}


async def test_the_number_of_unread_notifications_uses_near_records(near: Graph, graph: Graph) -> None:
    """The first request keeps the records of the posts. A deletion by another process counts in the next request."""
    alice, bob = await people(graph, "alice", "bob")
    mentions = await posts(graph, bob, *["hello @alice"] * 5)
    assert await near.notifications.unread_count(await request(near, alice)) == 5
    view = await request(near, alice)
    async with counted(near) as cost:
        assert await near.notifications.unread_count(view) == 5
    assert (cost.round_trips, cost.commands) == (1, 1)
    await graph.posts.delete(bob, mentions[0])
    assert await near.notifications.unread_count(await request(near, alice)) == 4
