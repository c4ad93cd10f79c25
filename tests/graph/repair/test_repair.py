"""Repair: whatever derived data is broken is found, mended and then right, also while the system goes on."""

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
from tests.graph.home.test_delivery import Model
from tests.graph.repair.broken import (
    BATCH,
    HOT,
    LIMIT,
    Broken,
    Picture,
    break_at_random,
    check_consistency,
    random_damages,
)
from tests.graph.repair.damages import DAMAGES
from tests.support.graph_worlds import background, cached, counted, crowd, posts
from tests.support.stores import Crashed, Death, HookedStore

TUNING = replace(CHEAP, hot_posts=HOT, archive_batch=BATCH, push_limit=LIMIT, home_size=6)


@asynccontextmanager
async def opened(url: str, rows: Path | None) -> AsyncIterator[Graph]:
    """Open a graph, with an archive if there is a file for it."""
    archive = None if rows is None else Archive(f"sqlite+aiosqlite:///{rows}")
    graph = await Graph.open(url, TUNING, partial(HookedStore, single_slot=True), archive)
    try:
        yield graph
    finally:
        await graph.close()


@pytest.fixture(scope="module")
def sound(running_store: EmbeddedStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Broken, Picture]:
    """Make the small world once, and take its picture."""
    rows = tmp_path_factory.mktemp("sound") / "archive.sqlite"

    async def make() -> Broken:
        async with Redis.from_url(running_store.url, decode_responses=True) as raw, opened(raw_url, rows) as graph:
            await raw.flushall()
            world = await Broken(graph, raw, rows).begin()
            await world.check_pages()
            return world

    raw_url = running_store.url
    world = asyncio.run(make())
    return world, Picture.take(raw_url, rows)


@pytest.fixture
async def world(store_url: str, sound: tuple[Broken, Picture], tmp_path: Path, raw: Redis) -> AsyncIterator[Broken]:
    """Give the small world, with an archive."""
    rows = tmp_path / "archive.sqlite"
    sound[1].restore(store_url, rows)
    async with opened(store_url, rows) as graph:
        yield sound[0].again(graph, raw, rows)


async def check(graph: Graph) -> Report:
    """Compare, and change nothing."""
    return await graph.repair().run(mend=False)


async def mend(graph: Graph) -> Report:
    """Compare and mend."""
    return await graph.repair().run(mend=True)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_every_damage_is_found_and_mended(world: Broken, damage: str) -> None:
    """A check finds it and changes nothing, a repair mends it, a second one finds nothing, and pages are right."""
    break_, kinds = DAMAGES[damage]
    await break_(world)
    before = world.everything()

    found = await check(world.graph)

    assert set(found.found) == kinds, found.examples
    assert not found.clean
    assert world.everything() == before
    mended = await mend(world.graph)
    assert set(mended.found) & kinds, mended.examples
    assert mended.clean, (mended.found, mended.mended, mended.skipped)
    again = await check(world.graph)
    assert again.clean, again.examples
    await world.rest()
    await world.check_pages()


@pytest.mark.parametrize("seed", range(2))
async def test_a_healthy_store_shows_no_difference(store_url: str, raw: Redis, tmp_path: Path, seed: int) -> None:
    """After random activity, with deletions, unfollows, large authors, archived posts and hibernated viewers."""
    async with opened(store_url, tmp_path / "archive.sqlite") as graph:
        model = Model(10, seed)
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
        assert report.upto == report.last
        await model.check(graph, size=5)


async def test_an_empty_store_shows_no_difference(graph: Graph) -> None:
    """There is nothing to compare, with or without an archive."""
    report = await mend(graph)

    assert report.clean
    assert not report.compared.total()


class Town:
    """People of whom each does one thing after the other, and all at once."""

    def __init__(self, world: Broken, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)  # noqa: S311 - reproducible

    async def live(self, graph: Graph, person: int, enough: Callable[[], bool]) -> None:
        """Let somebody publish, delete, follow, unfollow, read and stay away, and note what is true then."""
        world, others = self.world, [other for other in self.world.ids.values() if other != person]
        while not enough():
            other = self.random.choice(others)
            match self.random.choices(["post", "delete", "turn", "read", "leave"], [8, 3, 5, 5, 1])[0]:
                case "post" if len(world.posts[person]) < 30:
                    world.posts[person] += await posts(graph, person, "a post")
                case "delete" if world.posts[person]:
                    which = self.random.randrange(len(world.posts[person]))
                    await graph.posts.delete(person, world.posts[person].pop(which))
                case "turn" if other in world.follows[person]:
                    await graph.follows.unfollow(person, [other])
                    world.follows[person].discard(other)
                case "turn":
                    await graph.follows.follow(person, [other])
                    world.follows[person].add(other)
                case "leave":
                    await world.raw.unlink(keys.home(other))
                case _:
                    await cached(graph, person)


async def archive_forever(graph: Graph) -> None:
    """Move posts as fast as possible, not only every few seconds."""
    while graph.archiver is not None:
        await graph.archiver.work()
        await asyncio.sleep(0.005)


async def repair_forever(graph: Graph, reports: list[Report], *, mend: bool) -> None:
    """Repair again and again."""
    while True:
        reports.append(await graph.repair().run(mend=mend))


@pytest.mark.parametrize("seed", range(2))
async def test_repairing_while_everything_goes_on_finds_and_changes_nothing(world: Broken, seed: int) -> None:
    """Checks and repairs run beside two processes, a worker and an archiver; in the end all is what people did."""
    reports: list[Report] = []
    async with (
        opened(world.graph.store.url, world.rows) as other,
        opened(world.graph.store.url, world.rows) as workers,
        background(workers.worker().run()),
        background(archive_forever(workers)),
        background(repair_forever(other, reports, mend=False)),
        background(repair_forever(workers, reports, mend=True)),
    ):
        town = Town(world, seed)
        graphs = (world.graph, other)
        lives = [
            town.live(graphs[n % 2], person, lambda: len(reports) > 5) for n, person in enumerate(world.ids.values())
        ]
        await asyncio.gather(*lives)
    await world.rest()

    for report in reports:
        assert report.clean, (report.found, report.examples, report.skipped)
    assert (await check(world.graph)).clean
    await world.check_pages()


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_repair_that_dies_anywhere_is_finished_by_the_next(
    sound: tuple[Broken, Picture], running_store: EmbeddedStore, raw: Redis, tmp_path: Path, late: bool
) -> None:
    """Before or after any exchange with the store."""
    for exchange in range(12, 110, 24):
        await raw.flushall()
        rows = tmp_path / f"{exchange}.sqlite"
        sound[1].restore(running_store.url, rows)
        async with opened(running_store.url, rows) as graph, opened(running_store.url, rows) as dying:
            world = sound[0].again(graph, raw, rows)
            for damage in SOME_OF_EACH:
                await DAMAGES[damage][0](world)
            death = Death(dying.store, exchange, after=late)
            with contextlib.suppress(Crashed):
                await mend(dying)
            assert death.happened or exchange > 60

            await mend(graph)

            assert (await check(graph)).clean
            await world.check_pages()


SOME_OF_EACH = (
    "a_follower_is_dropped",
    "an_unfollow_has_reached_the_own_list_only",
    "a_timeline_with_archived_posts_is_lost",
    "a_record_is_lost",
    "a_deleted_post_has_its_record_back",
    "a_row_is_lost_whose_record_exists",
    "the_archive_holds_a_deleted_post",
    "a_count_is_wrong",
    "a_cache_merges_a_stranger",
    "a_profile_is_lost",
)


@pytest.mark.timeout(90)
def test_random_damage_ends_in_data_that_agrees(
    sound: tuple[Broken, Picture],
    running_store: EmbeddedStore,
    tmp_path_factory: pytest.TempPathFactory,
    long_profile: bool,
) -> None:
    """Whatever was dropped, added, moved or deleted: one repair mends it, and then all ways to read say the same."""
    url = running_store.url

    async def trial(damages: list[tuple[str, int, int]], rows: Path) -> None:
        async with Redis.from_url(url, decode_responses=True) as raw, opened(url, rows) as graph:
            world = sound[0].again(graph, raw, rows)
            for damage in damages:
                await break_at_random(world, *damage)
            report = await mend(graph)
            assert report.clean, (report.found, report.mended, report.examples)
            again = await check(graph)
            assert again.clean, again.examples
            await check_consistency(world)

    @settings(max_examples=2000 if long_profile else 10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(random_damages())
    @example([("move member", 15, 1), ("drop field", 200, 0)])  # a post without a record that stands in a wrong place
    def run(damages: list[tuple[str, int, int]]) -> None:
        rows = tmp_path_factory.mktemp("random") / "archive.sqlite"
        with redis.Redis.from_url(url) as client:
            client.flushall()
        sound[1].restore(url, rows)
        asyncio.run(trial(damages, rows))

    run()


async def test_what_is_not_drained_does_not_count(world: Broken) -> None:
    """A follow that is half projected is no difference, as long as its event may still be projected."""
    g = world.graph
    [event] = await g.log.append([Followed(world.dave, world.carol)])
    await world.raw.zadd(keys.followers(world.carol), {str(world.dave): event.number})

    report = await Repair(g.store, g.log, g.projections, g.archive, patience=0).run(mend=True)

    assert report.clean, report.examples
    assert report.upto < event.number == report.last


async def test_a_lost_archive_leaves_the_rest_to_be_mended(world: Broken, tmp_path: Path) -> None:
    """While it does not answer: what needs it is said to be skipped, and the repair is not clean."""
    await DAMAGES["a_follower_is_dropped"][0](world)
    await DAMAGES["a_count_is_wrong"][0](world)
    async with opened(world.graph.store.url, tmp_path) as without:
        report = await mend(without)

    assert report.skipped
    assert not report.clean
    assert report.mended == {Kind.FOLLOWER: 1}
    assert (await mend(world.graph)).mended == {Kind.COUNT: 1}


async def test_nothing_is_mended_from_another_archive(world: Broken, tmp_path: Path) -> None:
    """One that is empty, or belongs to another store, says nothing of this store's posts."""
    before = world.everything()
    for rows in (tmp_path / "another.sqlite", None):
        async with opened(world.graph.store.url, rows) as mistaken:
            report = await mend(mistaken)
        assert ("another archive" if rows else "was given none") in report.skipped
        assert not report.found
    assert world.everything() == before


async def test_without_the_archive_a_lost_timeline_waits(world: Broken) -> None:
    """Nobody knows its archive floor, and to guess it would cost the archived posts."""
    await DAMAGES["a_timeline_with_archived_posts_is_lost"][0](world)
    async with opened(world.graph.store.url, None) as without:
        report = await mend(without)

    assert report.found[Kind.UNLISTED]
    assert not report.mended[Kind.UNLISTED]
    assert await world.raw.exists(keys.posts(world.bob)) == 0
    assert (await mend(world.graph)).clean
    await world.check_pages()


async def test_what_nobody_can_know_is_reported_and_left_alone(world: Broken) -> None:
    """A profile whose sign-up the log has forgotten, and a login that leads to somebody else."""
    await world.raw.hdel(keys.user(world.carol), "name")
    await world.raw.xdel(keys.LOG, entry_id(world.carol))
    await world.raw.hset(keys.login("p3"), "user", world.alice)

    for _ in range(2):
        report = await mend(world.graph)
        assert report.found == {Kind.PROFILE: 1, Kind.LOGIN: 1}
        assert not report.mended.total()
        assert str(world.dave) in report.examples[Kind.LOGIN][0]


async def test_few_round_trips_do_for_many(graph: Graph) -> None:
    """What a store costs grows by the chunk, not by the person, the follow or the post."""
    people = await crowd(graph, 400)
    for step in (1, 2, 3, 5, 8):
        await graph.commit([Followed(person, people[(n + step) % 400]) for n, person in enumerate(people)])
    await graph.commit([PostPublished(author, "a post") for author in people[:100] for _ in range(5)])
    await graph.worker().drain()
    await cached(graph, *people[:60])

    async with counted(graph) as cost:
        report = await check(graph)

    assert report.clean, report.examples
    assert report.compared[Part.FOLLOWS] == 3 * 2000
    assert report.compared[Part.POSTS] == 3 * 500
    assert report.compared[Part.HOMES] == 60
    assert cost.round_trips < 100


async def test_a_list_of_any_length_is_walked_in_chunks(graph: Graph, raw: Redis) -> None:
    """No more of it is held at a time than about a thousand members, or some hundred owners."""
    await raw.zadd(keys.followers(1), {str(n): n for n in range(2, 5002)})
    scope = Scope(graph.store, graph.log, None, 0, archived=False)

    chunks = [chunk async for chunk in scope.members(keys.followers, [1, 2])]

    assert {follower for chunk in chunks for _, follower in chunk} == {*range(2, 5002)}
    assert max(map(len, chunks)) < 1500
    await raw.mset({keys.delivery(n): "pull" for n in range(3000)})
    owners = [chunk async for chunk in scope.owners(keys.delivery)]
    assert {owner for chunk in owners for owner in chunk} == {*range(3000)}
    assert max(map(len, owners)) <= 500
