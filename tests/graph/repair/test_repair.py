"""Tests of repairs: every damage is found and corrected, also while the system is in use."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.log.events import Followed, PostPublished
from graph.log.numbers import entry_id
from graph.repair.repair import Kind, Part, Repair, Report
from graph.repair.scope import Scope
from server.embedded import EmbeddedStore
from tests.conftest import CHEAP
from tests.graph.home.test_delivery import ExpectedWorld
from tests.graph.repair.broken import (
    BATCH,
    HOT,
    LIMIT,
    RepairWorld,
    Snapshot,
    apply_random_damage,
    check_consistency,
    random_damages,
)
from tests.graph.repair.damages import DAMAGES
from tests.support.graph_worlds import background, cached, counted, crowd, posts
from tests.support.stores import Crashed, Death, HookedStore

TUNING = replace(CHEAP, hot_posts=HOT, archive_batch=BATCH, push_limit=LIMIT, home_size=6)


@asynccontextmanager
async def opened(url: str, rows: Path | None) -> AsyncIterator[Graph]:
    """Open a graph, with an archive if `rows` is given."""
    archive = None if rows is None else Archive(f"sqlite+aiosqlite:///{rows}")
    graph = await Graph.open(url, TUNING, partial(HookedStore, single_slot=True), archive)
    try:
        yield graph
    finally:
        await graph.close()


@pytest.fixture(scope="module")
def world_and_snapshot(
    running_store: EmbeddedStore, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RepairWorld, Snapshot]:
    """Create the small world once, and take a snapshot."""
    rows = tmp_path_factory.mktemp("world_and_snapshot") / "archive.sqlite"

    async def make() -> RepairWorld:
        async with Redis.from_url(running_store.url, decode_responses=True) as raw, opened(raw_url, rows) as graph:
            await raw.flushall()
            world = await RepairWorld(graph, raw, rows).begin()
            await world.check_pages()
            return world

    raw_url = running_store.url
    world = asyncio.run(make())
    return world, Snapshot.take(raw_url, rows)


@pytest.fixture
async def world(
    store_url: str, world_and_snapshot: tuple[RepairWorld, Snapshot], tmp_path: Path, raw: Redis
) -> AsyncIterator[RepairWorld]:
    """Restore the small world, with an archive."""
    rows = tmp_path / "archive.sqlite"
    world_and_snapshot[1].restore(store_url, rows)
    async with opened(store_url, rows) as graph:
        yield world_and_snapshot[0].copy(graph, raw, rows)


async def check(graph: Graph) -> Report:
    """Compare without changes."""
    return await graph.repair().run(correct=False)


async def repair(graph: Graph) -> Report:
    """Compare and correct."""
    return await graph.repair().run(correct=True)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_every_damage_is_found_and_corrected(world: RepairWorld, damage: str) -> None:
    """A check finds the damage and changes nothing. A repair corrects it, and then pages are right."""
    apply, kinds = DAMAGES[damage]
    await apply(world)
    before = world.content()

    found = await check(world.graph)

    assert set(found.found) == kinds, found.examples
    assert not found.clean
    assert world.content() == before
    corrected = await repair(world.graph)
    assert set(corrected.found) & kinds, corrected.examples
    assert corrected.clean, (corrected.found, corrected.corrected, corrected.archive_error)
    again = await check(world.graph)
    assert again.clean, again.examples
    await world.drain()
    await world.check_pages()


@pytest.mark.parametrize("seed", range(2))
async def test_a_healthy_store_has_no_difference(store_url: str, raw: Redis, tmp_path: Path, seed: int) -> None:
    """The random activity includes deletions, unfollows, archived posts, hibernated viewers and all delivery modes."""
    async with opened(store_url, tmp_path / "archive.sqlite") as graph:
        assert graph.archiver is not None
        model = ExpectedWorld(10, seed)
        await model.begin(graph)
        for step in range(150):
            await model.step(graph)
            if step % 25 == 0:
                await graph.worker().drain()
                await graph.archiver.work()
                await raw.unlink(keys.home(model.random.choice(model.ids)))
        await graph.worker().drain()

        report = await check(graph)

        assert report.clean, report.examples
        assert set(report.compared) == set(Part)
        assert report.watermark == report.last
        await model.check(graph, size=5)


async def test_an_empty_store_has_no_difference(graph: Graph) -> None:
    report = await repair(graph)

    assert report.clean
    assert not report.compared.total()


class RandomActivity:
    """Users who act at random, one action after the other per user, all users concurrently."""

    def __init__(self, world: RepairWorld, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)  # noqa: S311 - reproducible

    async def run(self, graph: Graph, user: int, enough: Callable[[], bool]) -> None:
        """Publish, delete, follow, unfollow and read as one user, and update the expected state of the world."""
        world, others = self.world, [other for other in self.world.ids.values() if other != user]
        while not enough():
            other = self.random.choice(others)
            match self.random.choices(["post", "delete", "toggle follow", "read", "hibernate"], [8, 3, 5, 5, 1])[0]:
                case "post" if len(world.posts[user]) < 30:
                    world.posts[user] += await posts(graph, user, "a post")
                case "delete" if world.posts[user]:
                    which = self.random.randrange(len(world.posts[user]))
                    await graph.posts.delete(user, world.posts[user].pop(which))
                case "toggle follow" if other in world.follows[user]:
                    await graph.follows.unfollow(user, [other])
                    world.follows[user].discard(other)
                case "toggle follow":
                    await graph.follows.follow(user, [other])
                    world.follows[user].add(other)
                case "hibernate":
                    await world.raw.unlink(keys.home(other))
                case _:
                    await cached(graph, user)


async def archive_forever(graph: Graph) -> None:
    """Run the archiver without pauses."""
    while graph.archiver is not None:
        await graph.archiver.work()
        await asyncio.sleep(0.005)


async def repair_forever(graph: Graph, reports: list[Report], *, correct: bool) -> None:
    """Run repairs or checks without pauses."""
    while True:
        reports.append(await graph.repair().run(correct=correct))


@pytest.mark.parametrize("seed", range(2))
async def test_repairs_of_a_busy_healthy_system_find_nothing(world: RepairWorld, seed: int) -> None:
    """Checks and repairs run while two processes, a worker and an archiver are busy."""
    reports: list[Report] = []
    async with (
        opened(world.graph.store.url, world.rows) as other,
        opened(world.graph.store.url, world.rows) as workers,
        background(workers.worker().run()),
        background(archive_forever(workers)),
        background(repair_forever(other, reports, correct=False)),
        background(repair_forever(workers, reports, correct=True)),
    ):
        activity = RandomActivity(world, seed)
        graphs = (world.graph, other)
        users = [
            activity.run(graphs[n % 2], user, lambda: len(reports) > 5) for n, user in enumerate(world.ids.values())
        ]
        await asyncio.gather(*users)
    await world.drain()

    for report in reports:
        assert report.clean, (report.found, report.examples, report.archive_error)
    assert (await check(world.graph)).clean
    await world.check_pages()


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_repair_that_crashes_at_any_step_is_finished_by_the_next(
    world_and_snapshot: tuple[RepairWorld, Snapshot],
    running_store: EmbeddedStore,
    raw: Redis,
    tmp_path: Path,
    late: bool,
) -> None:
    """The process crashes before or after an exchange with the store."""
    for exchange in range(12, 110, 24):
        await raw.flushall()
        rows = tmp_path / f"{exchange}.sqlite"
        world_and_snapshot[1].restore(running_store.url, rows)
        async with opened(running_store.url, rows) as graph, opened(running_store.url, rows) as crashing:
            world = world_and_snapshot[0].copy(graph, raw, rows)
            for damage in SOME_OF_EACH:
                await DAMAGES[damage][0](world)
            death = Death(crashing.store, exchange, after=late)
            with contextlib.suppress(Crashed):
                await repair(crashing)
            assert death.happened or exchange > 60

            await repair(graph)

            assert (await check(graph)).clean
            await world.check_pages()


SOME_OF_EACH = (
    "a_follower_is_removed",
    "an_unfollow_changed_only_the_followers_list",
    "a_timeline_with_archived_posts_is_lost",
    "a_record_is_lost",
    "a_deleted_post_has_a_record",
    "a_row_is_lost_whose_record_exists",
    "the_archive_holds_a_deleted_post",
    "a_count_is_wrong",
    "a_cache_has_a_mark_for_an_author_who_is_not_followed",
    "a_profile_is_lost",
)


@pytest.mark.timeout(90)
def test_random_damage_is_corrected_by_one_repair(
    world_and_snapshot: tuple[RepairWorld, Snapshot],
    running_store: EmbeddedStore,
    tmp_path_factory: pytest.TempPathFactory,
    long_profile: bool,
) -> None:
    """Afterwards all reads agree with each other."""
    url = running_store.url

    async def trial(damages: list[tuple[str, int, int]], rows: Path) -> None:
        async with Redis.from_url(url, decode_responses=True) as raw, opened(url, rows) as graph:
            world = world_and_snapshot[0].copy(graph, raw, rows)
            for damage in damages:
                await apply_random_damage(world, *damage)
            report = await repair(graph)
            assert report.clean, (report.found, report.corrected, report.examples)
            again = await check(graph)
            assert again.clean, again.examples
            await check_consistency(world)

    @settings(max_examples=2000 if long_profile else 10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(random_damages())
    @example([("move member", 15, 1), ("drop field", 200, 0)])  # a post without a record, in a wrong position
    def run(damages: list[tuple[str, int, int]]) -> None:
        rows = tmp_path_factory.mktemp("random") / "archive.sqlite"
        with redis.Redis.from_url(url) as client:
            client.flushall()
        world_and_snapshot[1].restore(url, rows)
        asyncio.run(trial(damages, rows))

    run()


async def test_an_event_after_the_watermark_is_no_difference(world: RepairWorld) -> None:
    """The event of the follow is only partly projected."""
    g = world.graph
    [event] = await g.log.append([Followed(world.dave, world.carol)])
    await world.raw.zadd(keys.followers(world.carol), {str(world.dave): event.number})

    report = await Repair(g.store, g.log, g.projections, g.archive, timeout=0).run(correct=True)

    assert report.clean, report.examples
    assert report.watermark < event.number == report.last


async def test_an_unavailable_archive_does_not_stop_other_corrections(world: RepairWorld, tmp_path: Path) -> None:
    """The report has the reason, and is not clean."""
    await DAMAGES["a_follower_is_removed"][0](world)
    await DAMAGES["a_count_is_wrong"][0](world)
    async with opened(world.graph.store.url, tmp_path) as without:
        report = await repair(without)

    assert report.archive_error
    assert not report.clean
    assert report.corrected == {Kind.FOLLOWER_MISSING: 1}
    assert (await repair(world.graph)).corrected == {Kind.COUNT_WRONG: 1}


async def test_nothing_is_corrected_from_a_wrong_or_missing_archive(world: RepairWorld, tmp_path: Path) -> None:
    before = world.content()
    for rows in (tmp_path / "another.sqlite", None):
        async with opened(world.graph.store.url, rows) as mistaken:
            report = await repair(mistaken)
        assert ("not the one that holds" if rows else "no archive is configured") in report.archive_error
        assert not report.found
    assert world.content() == before


async def test_a_lost_timeline_is_not_restored_without_the_archive(world: RepairWorld) -> None:
    """Its archive floor is unknown, and a wrong floor would hide the archived posts."""
    await DAMAGES["a_timeline_with_archived_posts_is_lost"][0](world)
    async with opened(world.graph.store.url, None) as without:
        report = await repair(without)

    assert report.found[Kind.POST_UNLISTED]
    assert not report.corrected[Kind.POST_UNLISTED]
    assert await world.raw.exists(keys.posts(world.bob)) == 0
    assert (await repair(world.graph)).clean
    await world.check_pages()


async def test_differences_without_a_correction_are_reported(world: RepairWorld) -> None:
    """A profile whose sign-up event is no longer in the log, and a login that belongs to another user."""
    await world.raw.hdel(keys.user(world.carol), "name")
    await world.raw.xdel(keys.LOG, entry_id(world.carol))
    await world.raw.hset(keys.login("p3"), "user", world.alice)

    for _ in range(2):
        report = await repair(world.graph)
        assert report.found == {Kind.PROFILE_INCOMPLETE: 1, Kind.LOGIN_MISMATCH: 1}
        assert not report.corrected.total()
        assert str(world.dave) in report.examples[Kind.LOGIN_MISMATCH][0]


async def test_round_trips_grow_with_chunks(graph: Graph) -> None:
    """A check takes no round trip per user, follow or post."""
    users = await crowd(graph, 400)
    for step in (1, 2, 3, 5, 8):
        await graph.commit([Followed(user, users[(n + step) % 400]) for n, user in enumerate(users)])
    await graph.commit([PostPublished(author, "a post") for author in users[:100] for _ in range(5)])
    await graph.worker().drain()
    await cached(graph, *users[:60])

    async with counted(graph) as cost:
        report = await check(graph)

    assert report.clean, report.examples
    assert report.compared[Part.FOLLOWS] == 3 * 2000
    assert report.compared[Part.POSTS] == 3 * 500
    assert report.compared[Part.HOMES] == 60
    assert cost.round_trips < 100


async def test_long_lists_are_read_in_chunks(graph: Graph, raw: Redis) -> None:
    """A chunk has about 1,000 members of one owner, or 500 owners."""
    await raw.zadd(keys.followers(1), {str(n): n for n in range(2, 5002)})
    scope = Scope(graph.store, graph.log, None, 0, archived=False)

    chunks = [chunk async for chunk in scope.members(keys.followers, [1, 2])]

    assert {follower for chunk in chunks for _, follower in chunk} == {*range(2, 5002)}
    assert max(map(len, chunks)) < 1500
    await raw.mset({keys.delivery(n): "pull" for n in range(3000)})
    owners = [chunk async for chunk in scope.owners(keys.delivery)]
    assert {owner for chunk in owners for owner in chunk} == {*range(3000)}
    assert max(map(len, owners)) <= 500
