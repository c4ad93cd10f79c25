"""Repairs of mutes and blocks, and of the follows that blocks end or hold."""

from collections.abc import Awaitable, Callable

import pytest

from graph import keys
from graph.log.events import Blocked, Followed
from graph.projections.mode import Mode
from graph.repair.follows import Following
from graph.repair.report import Kind
from graph.repair.scope import Scope
from tests.graph.repair.broken import RepairWorld, check, repair
from tests.support.graph_worlds import append_events, home

Damage = Callable[[RepairWorld], Awaitable[object]]
DAMAGES: dict[str, tuple[Damage, Kind]] = {
    "a block is lost": (lambda w: w.raw.zrem(keys.blocking(w.bob), w.star), Kind.BLOCK_WRONG),
    "a block is lost in the other slot": (lambda w: w.raw.zrem(keys.blockers(w.star), w.bob), Kind.BLOCK_WRONG),
    "a block has no event": (lambda w: w.raw.zadd(keys.blocking(w.carol), {str(w.star): 1}), Kind.BLOCK_WRONG),
    "a blocker has no event": (lambda w: w.raw.zadd(keys.blockers(w.carol), {str(w.star): 1}), Kind.BLOCK_WRONG),
    "a mute is lost": (lambda w: w.raw.zrem(keys.muting(w.alice), w.carol), Kind.BLOCK_WRONG),
    "a mute has no event": (lambda w: w.raw.zadd(keys.muting(w.carol), {str(w.star): 1}), Kind.BLOCK_WRONG),
    "an ended follow counts": (lambda w: w.raw.zadd(keys.following(w.bob), {str(w.star): 1}), Kind.FOLLOW_WRONG),
    "an ended follower counts": (lambda w: w.raw.zadd(keys.followers(w.star), {str(w.bob): 1}), Kind.FOLLOW_WRONG),
    "a held follow is lost": (lambda w: w.raw.delete(keys.held(keys.following(w.alice))), Kind.FOLLOW_WRONG),
    "a held follower is lost": (lambda w: w.raw.delete(keys.held(keys.followers(w.dave))), Kind.FOLLOW_WRONG),
}


@pytest.fixture
async def blocks(world: RepairWorld) -> RepairWorld:
    """Let bob block star, whom he follows, and alice mute carol. alice's follow of dave is held by dave's block."""
    graph = world.graph
    await graph.blocks.block(world.bob, world.star)
    await graph.blocks.mute(world.alice, world.carol)
    events = await append_events(graph, [Blocked(world.dave, world.alice), Followed(world.alice, world.dave)])
    await graph.projections.project(events, Mode.REQUEST)
    await world.drain()
    return world


async def test_a_world_with_blocks_is_right(blocks: RepairWorld) -> None:
    report = await check(blocks.graph)
    assert report.clean, report.examples


@pytest.mark.parametrize("damage", DAMAGES)
async def test_every_damage_is_found_and_corrected(blocks: RepairWorld, damage: str) -> None:
    apply, kind = DAMAGES[damage]
    users = (blocks.alice, blocks.bob, blocks.carol, blocks.star)
    before = [await home(blocks.graph, user) for user in users]
    await blocks.graph.timelines.wait_for_rebuilds()
    await apply(blocks)

    found = await check(blocks.graph)
    report = await repair(blocks.graph)

    assert found.found[kind]
    assert report.clean
    assert (await check(blocks.graph)).found.total() == 0
    assert [await home(blocks.graph, user) for user in users] == before


async def test_blocks_that_are_newer_than_the_comparison_are_not_undone(blocks: RepairWorld) -> None:
    """The archive that was compared shows a follow, which a later block has ended."""
    graph = blocks.graph
    upto = await graph.log.last()
    await graph.blocks.block(blocks.star, blocks.carol)
    scope = Scope(graph.store, graph.archive, graph.binding, graph.commit, graph.tuning, upto=upto)
    assert await Following(scope).compare([blocks.carol]) == []
