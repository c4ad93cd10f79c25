"""A store that is full or cannot save: what works, what is refused, and how the store recovers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import redis

from graph import Graph, Tuning, keys
from graph.errors import Overloaded, StoreFull, StoreUnavailable
from graph.log.events import Followed, PostPublished, Unfollowed
from graph.log.log import IdempotencyKey
from graph.model import FollowOutcome
from graph.store import capacity
from graph.store.commands import all_scripts
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from tests.support.graph_worlds import (
    PASSWORD,
    PATIENCE,
    append_events,
    archive_log,
    background,
    befriend,
    cached,
    counts_of,
    home,
    outcomes_of,
    own,
    people,
    posts,
    reached,
)
from tests.support.graphs import open_graph

TUNING = Tuning(
    argon2_time_cost=1,
    argon2_memory_kib=8,
    argon2_parallelism=1,
    hot_posts=2,
    hot_slack=0,
    log_retention=timedelta(0),
)
LONG = 1000
MANY = 3000


class Small:
    """A server that tests can make full or unable to save."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.url = store.url
        self.client = redis.Redis.from_url(store.url, decode_responses=True)
        self._folder = store.folder

    def used(self) -> int:
        """Return the memory in use, in bytes."""
        return int(self.client.info("memory")["used_memory"])

    def limit(self, size: int) -> None:
        """Limit the memory; 0 for no limit."""
        self.client.config_set("maxmemory", size)

    def fill(self) -> None:
        """Let the store reach its memory limit."""
        self.limit(1)

    def fail_to_save(self) -> None:
        """Let a snapshot fail, as on a full disk: the server then refuses writes."""
        (self._folder / "dump.rdb").mkdir()
        self.client.config_set("save", "3600 1")
        self.client.bgsave()
        until = time.monotonic() + PATIENCE
        while self.client.info("persistence")["rdb_last_bgsave_status"] != "err":
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    """Run a server for one test. Its memory is read at every check."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store:
        server = Small(store)
        server.client.config_set("appendonly", "no")
        yield server
        server.client.config_set("save", "")  # otherwise the server would not end without a snapshot
        server.client.close()


@pytest.fixture
async def full(small: Small) -> AsyncIterator[Graph]:
    """Open a graph on this server, which the test must fill."""
    graph = await open_graph(small.url, TUNING, partial(Store, single_slot=True))
    try:
        yield graph
    finally:
        await graph.close()


@pytest.fixture(params=["fill", "fail_to_save"])
def broken(request: pytest.FixtureRequest) -> str:
    """Return the way in which the server becomes unable to write."""
    return str(request.param)


def test_only_what_begins_something_is_refused_by_a_full_server() -> None:
    """All other scripts only read, follow a commit, maintain existing data, or make room, and declare that."""
    refused = {each.name for each in all_scripts() if each.source.startswith("#!lua\n")}
    assert refused == {
        *("append", "claim_login", "start_session", "begin_attempt", "charge_rates"),
        *("begin_rebuild", "finish_rebuild"),
        *("bind", "begin_fill", "fill", "end_fill"),
    }


async def test_pages_can_be_read(small: Small, full: Graph, broken: str) -> None:
    """Pages with and without a home cache can be read. No cache is built meanwhile."""
    alice, bob, carol = await people(full, "alice", "bob", "carol")
    await befriend(full, alice, bob)
    await befriend(full, carol, bob)
    written = await posts(full, bob, "one", "two")
    await cached(full, carol)
    expected = [written[1], written[0]]
    getattr(small, broken)()

    assert await home(full, alice) == await home(full, carol) == await own(full, bob) == expected
    await full.timelines.wait_for_rebuilds()
    assert await home(full, alice) == expected
    assert [count.posts for count in await counts_of(full, [bob])] == [2]
    assert await full.users.ids_of_logins(["carol"]) == [carol]
    assert (await full.backlog()).length == 7


async def test_what_withdraws_something_is_accepted(small: Small, full: Graph) -> None:
    """Deletions, unfollows and log-outs are accepted, with their effects."""
    alice, bob = await people(full, "alice", "bob")
    await befriend(full, alice, bob)
    kept, deleted = await posts(full, bob, "kept", "deleted")
    session = await full.sessions.start(bob)
    await cached(full, alice)
    small.fill()

    await full.posts.delete(bob, deleted)
    assert await home(full, alice) == [kept]
    assert await full.follows.unfollow(alice, [bob]) == [FollowOutcome.UNFOLLOWED]
    assert await home(full, alice) == []
    await full.sessions.end(bob, session.id)
    assert await full.sessions.is_live(bob, session.id) is False


async def test_sessions_stay_in_use(small: Small, full: Graph) -> None:
    """Sessions are extended, and users see when a session was last used. Both overwrite existing fields."""
    [alice] = await people(full, "alice")
    session = await full.sessions.start(alice)
    age = timedelta(days=2)
    expiry, used = int((session.expires_at - age).timestamp()), int(time.time() - age.total_seconds())
    small.client.hset(keys.sessions(alice), session.id, expiry)
    for name in ("created", "used"):
        small.client.hset(keys.session_details(alice), f"{session.id}:{name}", used)
    other = await open_graph(small.url, TUNING)
    small.fill()

    async def last_used() -> int:
        [info] = await full.sessions.live_sessions(alice)
        return int(info.last_used_at.timestamp())

    try:
        assert await other.sessions.is_live(alice, session.id)
        assert await other.sessions.renew(alice, session.id, session.expires_at - age)
        assert int(small.client.hget(keys.sessions(alice), session.id) or 0) > expiry
        await reached(last_used, used + 1)
    finally:
        await other.close()


async def test_what_adds_something_is_refused(small: Small, full: Graph) -> None:
    """Additions, including log-ins and sign-ups, are refused, and nothing is written."""
    alice, bob = await people(full, "alice", "bob")
    small.fill()
    await see_memory(full)
    before = small.client.dbsize()

    outcomes = await outcomes_of(
        full.posts.publish(alice, "more"),
        full.follows.follow(alice, [bob]),
        full.users.update_profile(alice, name="Alice"),
        full.users.sign_up("carol", PASSWORD),
        full.users.check_password("alice", PASSWORD),
    )

    assert {str(outcome) for outcome in outcomes} == {StoreFull.message}
    assert {type(outcome) for outcome in outcomes} == {Overloaded}
    assert small.client.dbsize() == before


async def test_a_full_store_refuses_before_the_memory_was_read(small: Small, full: Graph) -> None:
    """The store itself refuses changes. Repetitions of accepted requests are still answered."""
    [alice] = await people(full, "alice")
    key = IdempotencyKey(alice, "k")
    first = await append_events(full, [PostPublished(alice, "one")], key)
    small.fill()

    assert await append_events(full, [PostPublished(alice, "one")], key) == first
    with pytest.raises(Overloaded, match="The store is full"):
        await append_events(full, [PostPublished(alice, "two")])


async def see_memory(graph: Graph) -> None:
    """Read the current memory usage, after any read that is already running."""
    await graph.capacity.read()
    await graph.capacity.read()


async def test_changes_are_refused_before_the_store_is_full(small: Small, full: Graph) -> None:
    """Once nine tenths of the memory is used, only withdrawals and repetitions are accepted."""
    alice, bob = await people(full, "alice", "bob")
    first = await full.posts.publish(alice, "one", idempotency_key="k")
    small.limit(int(small.used() / 0.86))
    await see_memory(full)
    await befriend(full, alice, bob)

    small.limit(int(small.used() / 0.97))
    await see_memory(full)

    with pytest.raises(Overloaded, match="The store is full"):
        await full.posts.publish(alice, "two")
    assert await full.posts.publish(alice, "one", idempotency_key="k") == first
    await full.follows.unfollow(alice, [bob])
    await full.posts.delete(alice, first.id)


async def test_changes_are_accepted_once_room_was_seen(small: Small, full: Graph) -> None:
    [alice] = await people(full, "alice")
    small.fill()
    await see_memory(full)
    with pytest.raises(Overloaded):
        await full.posts.publish(alice, "one")
    await see_memory(full)

    small.limit(0)
    await see_memory(full)

    await full.posts.publish(alice, "two")


async def test_the_part_of_the_memory_can_be_set(small: Small) -> None:
    graph = await open_graph(small.url, Tuning(store_full_at=0.5))
    try:
        small.limit(int(small.used() / 0.6))
        await graph.capacity.read()
        with pytest.raises(Overloaded):
            await graph.commit([Followed(1, 2)])
    finally:
        await graph.close()


async def test_the_worker_projects_what_was_committed(small: Small, full: Graph) -> None:
    """The worker projects committed events: otherwise the watermark would stop, and the log could not be trimmed."""
    alice, bob = await people(full, "alice", "bob")
    await cached(full, alice)
    await befriend(full, alice, bob)
    await cached(full, alice)
    [post] = await append_events(full, [PostPublished(bob, "one")])
    small.fill()

    async with asyncio.timeout(PATIENCE):
        assert await full.worker().drain() == post.number
    assert await home(full, alice) == [post.number]


async def test_a_restarted_worker_joins_its_group(small: Small, full: Graph) -> None:
    """The worker joins its consumer group, even if the group was lost, and acknowledges what it projects."""
    await people(full, "alice")
    await full.worker().drain()
    small.client.xgroup_destroy(keys.LOG, "projections")
    small.fill()
    [event] = await append_events(full, [Unfollowed(1, 2)])

    async with background(full.worker().run()):
        await reached(full.log.watermark, event.number)

    assert small.client.xpending(keys.LOG, "projections")["pending"] == 0


async def test_the_archiver_works_and_the_log_is_trimmed(small: Small, full: Graph) -> None:
    """Hot timelines are cut, and the log becomes empty."""
    [alice] = await people(full, "alice")
    written = await posts(full, alice, *"abcdef")
    await full.worker().drain()
    small.fill()

    await archive_log(full)
    await full.scan.run_pass()
    await full.housekeeping.tidy()

    assert int(small.client.zcard(keys.posts(alice))) == 1 + TUNING.hot_posts
    assert small.client.xlen(keys.LOG) == 0
    assert await own(full, alice) == written[::-1]


async def test_a_dead_letter_is_kept(small: Small, full: Graph) -> None:
    small.fill()

    await full.dead_letters.keep("1-1", ["kind", "Followed"], "The database refuses it.")

    assert [letter.entry async for letter in full.dead_letters.all()] == ["1-1"]


async def test_an_archiver_that_must_stop_says_why(small: Small, full: Graph) -> None:
    await people(full, "alice")
    await full.worker().drain()
    small.client.set(keys.TRIMMED, await full.log.last())
    small.fill()

    async with background(full.archiver.run()), asyncio.timeout(PATIENCE):
        while not (await full.backlog()).alarm:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)


async def test_changes_are_accepted_again_after_posts_were_deleted(small: Small, full: Graph) -> None:
    [alice] = await people(full, "alice")
    text = "x" * LONG
    events = await full.commit([PostPublished(alice, text) for _ in range(MANY)])
    await full.worker().drain()
    small.limit(small.used())
    await see_memory(full)
    with pytest.raises(Overloaded):
        await full.posts.publish(alice, "more")

    async with background(full.worker().run()), asyncio.timeout(PATIENCE):
        for event in events[:10]:
            await full.posts.delete(alice, event.number)
        while True:
            try:
                await full.posts.publish(alice, "more")
                break
            except Overloaded:
                await asyncio.sleep(0.1)


async def test_a_store_that_cannot_save_is_unavailable(small: Small, full: Graph) -> None:
    """Every change is refused with the reason, and accepted as soon as the store can save again."""
    [alice] = await people(full, "alice")
    small.fail_to_save()
    await see_memory(full)

    with pytest.raises(StoreUnavailable):
        await full.posts.publish(alice, "lost")
    assert full.capacity.refusal.startswith("MISCONF")

    small.client.config_set("save", "")
    await full.posts.publish(alice, "saved")
    await see_memory(full)
    assert full.capacity.refusal == ""


async def test_the_worker_survives_a_store_that_cannot_save(small: Small, full: Graph) -> None:
    """The worker waits, and continues when the store can save again."""
    [alice] = await people(full, "alice")
    [event] = await append_events(full, [PostPublished(alice, "one")])
    small.fail_to_save()

    async with background(full.worker().run()):
        await asyncio.sleep(0.2)
        small.client.config_set("save", "")
        await reached(full.log.watermark, event.number)
