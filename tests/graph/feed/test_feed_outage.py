"""Tests of the live feed while one shard, which holds some posts, does not answer."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from graph import Graph, keys
from graph.errors import SessionOver, StoreUnavailable
from graph.feed.updates import AuthorAdded
from graph.log.events import PostPublished
from graph.store.commands import Command, keys_of
from graph.store.reads import Convert, Read
from tests.conftest import CHEAP
from tests.graph.feed.watching import feed_of, numbers, watching
from tests.support.graph_worlds import background, befriend, people, posts
from tests.support.graphs import open_graph
from tests.support.stores import HookedStore, Stop, sends


class StoreWithoutShard(HookedStore):
    """A store that does not answer reads of the keys in `away`; other reads of the same round trip are answered."""

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        super().__init__(url, single_slot=single_slot)
        self.away: set[str] = set()
        self.hangs = False

    def ask(self, commands: Sequence[Command], convert: Convert, kind: type[Read] = Read) -> "asyncio.Future[Any]":
        if self.away.isdisjoint(key for command in commands for key in keys_of(command)):
            return super().ask(commands, convert, kind)
        future = asyncio.get_running_loop().create_future()
        if not self.hangs:
            future.set_exception(StoreUnavailable("a shard that is away"))
        return future


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.feed.deletions.RETRY_SECONDS", 0.01)


async def test_the_streams_of_other_posts_do_not_wait_for_a_shard_that_hangs(
    graph: Graph, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.feed.feed.LOOK_UP_SECONDS", 0.05)
    reading = await open_graph(store_url, CHEAP, partial(StoreWithoutShard, single_slot=True))
    assert isinstance(reading.store, StoreWithoutShard)
    alice, bob = await people(graph, "alice", "bob")
    async with feed_of(reading) as feed, watching(feed, alice), watching(feed, bob) as unconcerned:
        stop = Stop(reading.store, sends("XREAD"))
        await unconcerned.until((await posts(graph, bob, "wakes the reader"))[0])
        await stop.reached.wait()
        away, there = [
            event.number for event in await graph.commit([PostPublished(alice, "a"), PostPublished(bob, "b")])
        ]
        reading.store.hangs, reading.store.away = True, {keys.post(away)}
        stop.resume()

        assert numbers(await unconcerned.take(1)) == [there]
    await reading.close()


async def test_only_the_streams_of_posts_whose_shard_is_away_wait(graph: Graph, store_url: str) -> None:
    """Follows, log-outs and other posts arrive. A post that is deleted meanwhile is left out."""
    reading = await open_graph(store_url, CHEAP, partial(StoreWithoutShard, single_slot=True))
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    await befriend(graph, alice, bob)
    await befriend(graph, carol, dave)
    sessions = [(await graph.sessions.start(user)).id for user in (alice, carol)]
    assert isinstance(reading.store, StoreWithoutShard)
    async with (
        feed_of(reading) as feed,
        watching(feed, alice) as waiting,
        watching(feed, alice, session=sessions[0]) as logged_out,
        watching(feed, carol, session=sessions[1]) as unconcerned,
        watching(feed, erin) as following,
    ):
        stop = Stop(reading.store, sends("XREAD"))
        await unconcerned.until((await posts(graph, carol, "wakes the reader"))[0])
        await stop.reached.wait()
        bodies = [PostPublished(author, "hi") for author in (bob, bob, dave)]
        gone, kept, elsewhere = [event.number for event in await graph.commit(bodies)]
        await befriend(graph, erin, bob)
        reading.store.away = {keys.post(gone), keys.post(kept)}
        stop.resume()

        async with background(waiting.take(1)) as taking, background(logged_out.take(1)) as ending:
            assert numbers(await unconcerned.take(1)) == [elsewhere]
            assert isinstance((await following.take(1))[0], AuthorAdded)
            await graph.sessions.end(alice, sessions[0])
            with pytest.raises(SessionOver):
                await ending
            await graph.posts.delete(bob, gone)
            assert not taking.done()
            reading.store.away = set()
            assert numbers(await taking) == [kept]
    await reading.close()
