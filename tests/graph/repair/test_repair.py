"""Tests of repairs: every damage is found and corrected."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable, WrongArchive
from graph.log.events import Followed, PostPublished
from graph.model import Permission
from graph.repair import defects
from graph.repair.pairs import PairComparison
from graph.repair.repair import Repair
from graph.repair.scope import Scope
from server.embedded import EmbeddedStore
from tests.graph.home.test_delivery import ExpectedWorld
from tests.graph.repair.broken import (
    RepairWorld,
    Snapshot,
    apply_random_damage,
    check,
    check_consistency,
    kinds_found,
    opened,
    random_damages,
    repair,
    worlds,
)
from tests.graph.repair.notification_damages import DAMAGES
from tests.graph.repair.public_damages import DAMAGES as ALL_DAMAGES
from tests.support.graph_worlds import cached, counted, crowd, posts
from tests.support.raw import open_raw


async def test_every_damage_is_found_and_corrected(store_url: str, raw: Redis) -> None:
    """A check finds the damage and changes nothing. A repair corrects it, after which pages are correct.

    Each kind of damage is done to a separate world.
    """
    async with opened(store_url) as graph:
        damaged = dict(zip(ALL_DAMAGES, await worlds(graph, raw, len(ALL_DAMAGES)), strict=True))
        healthy = await check(graph)
        assert healthy.clean, healthy.examples
        owners = {number: name for name, world in damaged.items() for number in world.numbers()}
        for name, world in damaged.items():
            await ALL_DAMAGES[name][0](world)
            owners |= dict.fromkeys(world.numbers(), name)
        before = world.content()

        assert await kinds_found(graph, owners, correct=False) == {
            name: kinds for name, (_, kinds) in ALL_DAMAGES.items()
        }
        assert world.content() == before
        corrected = await kinds_found(graph, owners, correct=True)
        assert [name for name, (_, kinds) in ALL_DAMAGES.items() if not corrected[name] & kinds] == []
        await world.drain()
        again = await check(graph)
        assert not again.found.total(), again.examples
        for world in damaged.values():
            await world.check_pages()


@pytest.mark.parametrize("seed", range(2))
async def test_a_healthy_store_has_no_difference(store_url: str, raw: Redis, seed: int) -> None:
    """The random activity includes deletions, unfollows, archived posts, hibernated viewers and all delivery modes."""
    async with opened(store_url) as graph:
        model = ExpectedWorld(10, seed)
        await model.begin(graph)
        for step in range(150):
            await model.step(graph)
            if step % 25 == 0:
                await graph.worker().drain()
                await graph.archiver.work()
                await raw.unlink(keys.home(model.random.choice(model.ids)))
        await graph.worker().drain()
        await graph.archiver.work()

        report = await check(graph)

        assert report.clean, report.examples
        assert all(report.compared.values())
        assert report.up_to == report.last
        await model.check(graph, size=5)


async def test_an_empty_store_has_no_difference(graph: Graph) -> None:
    report = await repair(graph)

    assert report.clean
    assert not report.compared.total()


@pytest.mark.timeout(300)
def test_random_damage_is_corrected(
    world_and_snapshot: tuple[RepairWorld, Snapshot], running_store: EmbeddedStore, long_profile: bool
) -> None:
    """Afterwards all reads agree with each other. Posts that were added to the archive may require a second repair."""
    url = running_store.url

    async def trial(damages: list[tuple[str, int, int]]) -> None:
        async with open_raw(url) as raw, opened(url) as graph:
            world = world_and_snapshot[0].copy(graph, raw)
            for damage in damages:
                await apply_random_damage(world, *damage)
            for _ in range(2):
                report = await repair(graph)
                await world.drain()
            assert report.clean, (report.found, report.corrected, report.examples)
            again = await check(graph)
            assert again.clean, again.examples
            await check_consistency(world)

    @settings(max_examples=2000 if long_profile else 5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(random_damages())
    @example(
        [("drop member", 0, 0), ("add member", 84, 119), ("drop row", 0, 0)]
    )  # a deleted post is listed, and its row is lost
    def run(damages: list[tuple[str, int, int]]) -> None:
        world_and_snapshot[1].restore(url)
        asyncio.run(trial(damages))

    run()


def repair_of(graph: Graph, timeout: float) -> Repair:
    """Return a repair that waits for new events for a limited time."""
    return Repair(graph.store, graph.log, graph.archive, graph.binding, graph.commit, graph.tuning, timeout=timeout)


async def test_an_event_after_the_watermark_is_no_difference(world: RepairWorld) -> None:
    """The event of the follow is only partly projected."""
    g = world.graph
    [event] = await g.log.append([Followed(world.dave, world.carol)], binding=await g.binding.token())
    await world.raw.zadd(keys.followers(world.carol), {str(world.dave): event.number})

    report = await repair_of(g, timeout=0).run(correct=True)

    assert report.clean, report.examples
    assert report.up_to < event.number == report.last


async def test_what_is_not_archived_yet_is_no_difference(world: RepairWorld) -> None:
    """Every kind of change is projected, but not archived."""
    g = world.graph
    await g.users.update_profile(world.carol, name="Caroline")
    await g.users.revoke(world.star, Permission.FIREHOSE)
    await g.users.sign_up("newcomer", "correct horse")
    await g.follows.unfollow(world.alice, [world.bob])
    await g.follows.follow(world.dave, [world.alice])
    await posts(g, world.dave, "new")
    for post in (world.posts[world.bob][2], world.posts[world.bob][-1]):
        await g.posts.delete(world.bob, post)

    report = await repair_of(g, timeout=0).run(correct=True)

    assert report.clean, report.examples
    assert report.up_to < report.last


async def test_what_a_failover_loses_is_repaired(world: RepairWorld) -> None:
    """A session is live again, a changed name is lost, and an unfollow is undone."""
    for damage in ("an_ended_session_is_live", "a_change_of_a_name_is_lost", "an_unfollow_is_lost"):
        await DAMAGES[damage][0](world)
    graph = world.graph
    assert await graph.sessions.is_live(world.carol, world.session)

    assert (await repair(graph)).clean

    assert not await graph.sessions.is_live(world.carol, world.session)
    [carol] = await graph.users.get_many([world.carol])
    assert carol is not None
    assert carol.name == "Carol"
    assert await graph.follows.followed_by(world.dave) == {}


async def test_users_with_many_events_are_compared_in_parts(
    world: RepairWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query returns at most two events, and a batch of timelines has at most two posts."""
    monkeypatch.setattr("graph.repair.scope.ROWS", 2)
    monkeypatch.setattr("graph.repair.timelines.POSTS_AT_ONCE", 2)
    assert (await check(world.graph)).clean
    for damage in ("a_change_of_a_name_is_lost", "a_follow_is_lost", "a_follower_has_no_event", "a_record_is_lost"):
        await DAMAGES[damage][0](world)

    report = await repair(world.graph)

    assert report.found == {defects.PROFILE_WRONG: 1, defects.FOLLOW_WRONG: 3, defects.RECORD_WRONG: 1}
    assert (await check(world.graph)).clean


async def test_an_archive_that_does_not_answer_ends_the_repair(world: RepairWorld, tmp_path: Any) -> None:
    """Without the archive, nothing is compared or corrected."""
    await DAMAGES["a_follower_is_lost"][0](world)
    before = world.content()
    async with opened(world.graph.store.url, Archive(f"sqlite:///{tmp_path}")) as without:
        with pytest.raises(ArchiveUnavailable):
            await repair(without)
    assert world.content() == before


async def test_a_wrong_archive_ends_the_repair(world: RepairWorld, tmp_path: Any) -> None:
    before = world.content()
    async with opened(world.graph.store.url, Archive(f"sqlite:///{tmp_path / 'another.sqlite'}")) as mistaken:
        with pytest.raises(WrongArchive):
            await repair(mistaken)
    assert world.content() == before


async def test_an_account_that_the_archive_does_not_know_is_reported(world: RepairWorld) -> None:
    """Nothing is corrected: the data does not show whether the store or the archive is right."""
    world.sql('DELETE FROM credentials WHERE "user" = ?', world.carol)
    before = world.content()

    report = await repair(world.graph)

    assert report.found == {defects.ACCOUNT_UNKNOWN: 1}
    assert not report.corrected.total()
    assert str(world.carol) in report.examples[defects.ACCOUNT_UNKNOWN][0]
    assert world.content() == before


async def test_round_trips_grow_with_chunks(graph: Graph) -> None:
    """A check does not take a round trip for each user, follow or post."""
    users = await crowd(graph, 400)
    for step in (1, 2, 3, 5, 8):
        await graph.commit([Followed(user, users[(n + step) % 400]) for n, user in enumerate(users)])
    await graph.commit([PostPublished(author, "a post") for author in users[:100] for _ in range(5)])
    await graph.worker().drain()
    await graph.archiver.work()
    await cached(graph, *users[:60])

    async with counted(graph) as cost:
        report = await check(graph)

    assert report.clean, report.examples
    assert report.compared == {
        defects.PUBLIC: 900,
        defects.ACCOUNTS: 400,
        defects.BLOCKS: 400,
        PairComparison.part: 400,
        defects.FOLLOWS: 800,
        defects.POSTS: 1300,
        defects.LIKES: 400,
        defects.NOTIFICATIONS: 400,
        defects.LISTS: 400,
        defects.HOMES: 60,
    }
    assert cost.round_trips < 100


async def test_large_sets_are_read_in_chunks(graph: Graph, raw: Redis) -> None:
    """A chunk has about 1,000 members of one owner, or 500 owners."""
    await raw.zadd(keys.followers(1), {str(n): n for n in range(2, 5002)})
    scope = Scope(graph.store, graph.archive, graph.binding, graph.commit, graph.tuning, up_to=0)

    chunks = [chunk async for chunk in scope.members(keys.followers, [1, 2])]

    assert {follower for chunk in chunks for _, follower in chunk} == {*range(2, 5002)}
    assert max(map(len, chunks)) < 1500
    await raw.mset({keys.delivery(n): "pull" for n in range(3000)})
    owners = [chunk async for chunk in scope.owners(keys.delivery, 500)]
    assert {owner for chunk in owners for owner in chunk} == {*range(3000)}
    assert max(map(len, owners)) <= 500
