"""Repairs of mutes and blocks, and of the follows that blocks end or hold."""

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from graph import keys
from graph.log.events import Blocked, Followed
from graph.projections.mode import Mode
from graph.relations.pair_sets import PairSet, stored_member
from graph.relations.register import PAIRS
from graph.repair import defects
from graph.repair.defects import Defect
from graph.repair.follows import FollowingComparison
from graph.repair.pairs import defect_of
from graph.repair.scope import Scope
from tests.graph.repair.broken import RepairWorld, check, kinds_found, opened, worlds
from tests.support.graph_worlds import append_events, home

Damage = Callable[[RepairWorld], Awaitable[object]]


def of_pairs(pair_set: PairSet) -> dict[str, tuple[Damage, Defect]]:
    """Return the ways to damage a set of pairs."""
    defect = defect_of(pair_set)
    return {
        f"a {pair_set.noun} is lost": (lambda w: w.raw.zrem(pair_set.key(w.alice), stored(pair_set, w.carol)), defect),
        f"a {pair_set.noun} has no event": (
            lambda w: w.raw.zadd(pair_set.key(w.carol), {stored(pair_set, w.star): 1}),
            defect,
        ),
    }


def stored(pair_set: PairSet, number: int) -> str:
    """Return a member of a set of pairs as the store holds it: the number, or the number as text."""
    return stored_member(number if pair_set.begun.SUBJECT else str(number))


DAMAGES: dict[str, tuple[Damage, Defect]] = {
    "a block is lost": (lambda w: w.raw.zrem(keys.blocking(w.bob), w.star), defects.BLOCK_WRONG),
    "a block is lost in the other slot": (lambda w: w.raw.zrem(keys.blockers(w.star), w.bob), defects.BLOCK_WRONG),
    "a block has no event": (lambda w: w.raw.zadd(keys.blocking(w.carol), {str(w.star): 1}), defects.BLOCK_WRONG),
    "a blocker has no event": (lambda w: w.raw.zadd(keys.blockers(w.carol), {str(w.star): 1}), defects.BLOCK_WRONG),
    **{name: damage for each in PAIRS.pair_sets for name, damage in of_pairs(each).items()},
    "an ended follow counts": (lambda w: w.raw.zadd(keys.following(w.bob), {str(w.star): 1}), defects.FOLLOW_WRONG),
    "an ended follower counts": (lambda w: w.raw.zadd(keys.followers(w.star), {str(w.bob): 1}), defects.FOLLOW_WRONG),
    "a held follow is lost": (lambda w: w.raw.delete(keys.held(keys.following(w.alice))), defects.FOLLOW_WRONG),
    "a held follower is lost": (lambda w: w.raw.delete(keys.held(keys.followers(w.dave))), defects.FOLLOW_WRONG),
}


async def block(world: RepairWorld) -> None:
    """Make bob block star, and give alice each kind of relation with carol. A block holds alice's follow of dave."""
    graph = world.graph
    await graph.blocks.block(world.bob, world.star)
    pairs = [each.body_of(world.alice, stored(each, world.carol), begins=True) for each in PAIRS.pair_sets]
    await graph.commit(pairs)
    events = await append_events(graph, [Blocked(world.dave, world.alice), Followed(world.alice, world.dave)])
    await graph.projections.project(events, Mode.REQUEST)


@pytest.fixture
async def blocks(world: RepairWorld) -> RepairWorld:
    """Add blocks to the small world."""
    await block(world)
    await world.drain()
    return world


async def test_a_world_with_blocks_is_right(blocks: RepairWorld) -> None:
    report = await check(blocks.graph)
    assert report.clean, report.examples


async def test_every_damage_is_found_and_corrected(store_url: str, raw: Redis) -> None:
    """Each kind of damage is done to a separate world."""
    async with opened(store_url) as graph:
        damaged = dict(zip(DAMAGES, await worlds(graph, raw, len(DAMAGES)), strict=True))
        for world in damaged.values():
            await block(world)
        await world.drain()
        owners = {number: damage for damage, each in damaged.items() for number in each.numbers()}
        before = [await home(graph, user) for each in damaged.values() for user in each.ids.values()]
        await graph.timelines.wait_for_rebuilds()
        for damage, each in damaged.items():
            await DAMAGES[damage][0](each)

        found = await kinds_found(graph, owners, correct=False)
        assert [damage for damage, (_, kind) in DAMAGES.items() if kind not in found[damage]] == []
        await kinds_found(graph, owners, correct=True)
        assert (await check(graph)).found.total() == 0
        assert [await home(graph, user) for each in damaged.values() for user in each.ids.values()] == before


async def test_blocks_that_are_newer_than_the_comparison_are_not_undone(blocks: RepairWorld) -> None:
    """The compared archive still shows a follow that a later block has ended."""
    graph = blocks.graph
    up_to = await graph.log.last()
    await graph.blocks.block(blocks.star, blocks.carol)
    scope = Scope(graph.store, graph.archive, graph.binding, graph.commit, graph.tuning, up_to=up_to)
    assert await FollowingComparison(scope).compare([blocks.carol]) == []
