"""Tests of a second failover, while the archiver recovers from the first one."""

import pytest

from tests.graph.archiver.failovers import Failover
from tests.graph.archiver.world import ArchiveWorld
from tests.support.graph_worlds import background
from tests.support.stores import Crashed, Fault, Stop, runs


async def test_a_second_failover_to_the_same_state_is_recovered(world: ArchiveWorld) -> None:
    """The same process recovers again. The log has forgotten which numbers are missing."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive()
    lost = world.posts[world.bob][-1]
    graph = await failover.happen()
    await graph.archiver.archive_batch()

    await failover.happen()
    await graph.archiver.archive_batch()

    assert await graph.log.trimmed() == await graph.log.last() == lost


async def test_events_lost_just_after_a_recovery_are_recovered(world: ArchiveWorld) -> None:
    """An archiver died before raising the watermark. The next one found all events in the log, which then lost one."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1, drain=True)
    lost = world.posts[world.bob][-1]
    dying = world.process()
    Fault(dying.store, runs("set_archived"), Crashed())
    with pytest.raises(Crashed):
        await dying.archiver.archive_batch()

    graph = world.process()
    advance = Stop(graph.store, runs("set_archived"))
    async with background(graph.archiver.archive_batch()) as batch:
        await advance.reached.wait()
        await failover.happen()
        advance.resume()
        assert await batch
    await graph.archiver.archive_batch()

    assert await graph.log.trimmed() == await graph.log.last() == lost


async def test_a_failover_after_a_recovery_leaves_the_watermark(world: ArchiveWorld) -> None:
    """The failover undoes the note of the gap, but not an event that was appended after the first failover."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive()
    lost = world.posts[world.bob][-1]
    world.graph = graph = await failover.happen()
    await world.publish(world.bob, 1, drain=True)
    again = await Failover(world).begin()

    advance = Stop(graph.store, runs("set_archived"))
    async with background(graph.archiver.archive_batch()) as batch:
        await advance.reached.wait()
        await again.happen()
        advance.resume()
        assert await batch
    await world.archive()

    assert await graph.log.trimmed() == lost
    await world.check()


async def test_a_failover_during_a_recovery_is_recovered(world: ArchiveWorld) -> None:
    """The failover undoes the projection of the lost events."""
    await world.archive()
    failover = await Failover(world, "").begin()
    await world.publish(world.bob, 1)
    await world.archive()
    world.graph = graph = await failover.happen()

    note = Stop(graph.store, runs("lose_events"))
    async with background(graph.archiver.archive_batch()) as batch:
        await note.reached.wait()
        await failover.happen()
        note.resume()
        await batch

    await world.check()
