"""Tests of the archiver: after any crash, outage or concurrent operation, the archive holds the whole log."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from graph import keys
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.events import PostDeleted, PostPublished
from graph.projections.mode import Mode
from tests.graph.archiver.world import FULL, HOT, ArchiveWorld, Meanwhile, Outage
from tests.support.graph_worlds import append_events
from tests.support.stores import Crashed, Death, Stop, runs

Act = Callable[[ArchiveWorld], Awaitable[Any]]


async def test_every_projected_event_is_archived(world: ArchiveWorld) -> None:
    """The oldest posts of a full timeline leave the store; pages, look-ups and counts do not change."""
    await world.check()

    assert len(await world.hot_of(world.bob)) == HOT
    assert len(await world.hot_of(world.carol)) == 3
    await world.publish(world.bob, FULL - HOT - 1)
    await world.check()
    assert len(await world.hot_of(world.bob)) == FULL - 1


async def test_a_slow_archiver_does_not_lower_the_watermark(world: ArchiveWorld) -> None:
    """Another archiver has archived more in the meantime."""
    slow = world.process()
    stop = Stop(slow.store, runs("set_archived"))
    archiving = asyncio.create_task(slow.archiver.work())
    await stop.reached.wait()
    await world.publish(world.bob, 1)
    await world.archive(world.process())
    mark = await world.raw.get(keys.ARCHIVED)
    await world.raw.set(keys.ARCHIVER, "another", px=60_000)

    stop.resume()
    await archiving

    assert await world.raw.get(keys.ARCHIVED) == mark
    await world.check()


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "later"])
async def test_an_archiver_killed_at_any_call_is_replaced(
    world: ArchiveWorld, calls: Iterator[int], again: bool, late: bool
) -> None:
    """Pages are correct after the crash, and another process finishes the work."""
    if again:
        await world.archive()
        await world.delete(world.bob, 0, -1)
        await world.publish(world.bob, FULL)
        await world.graph.worker().drain()
        await world.project_again()
        await world.save()
    for call in calls:
        process = await world.restore()
        death = Death(process.store, call, after=late)
        try:
            await process.archiver.work()
        except Crashed:
            await world.check_pages()
        await world.check()
        if not death.happened:
            break
    assert call > 12


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_an_archiver_continues_after_any_failed_call(
    world: ArchiveWorld, calls: Iterator[int], late: bool
) -> None:
    """The same process continues; the failed call may have been applied."""
    for call in calls:
        process = await world.restore()
        fault = Outage(process.store, call, after=late)
        with suppress(StoreUnavailable, ArchiveUnavailable):
            await process.archiver.work()
        fault.end()
        await process.archiver.work()
        await world.check_pages()
        await world.check()
        if not fault.happened:
            break
    assert call > 12


async def archive_in_another_process(world: ArchiveWorld) -> None:
    await world.archive(world.process())


async def publish_and_delete(world: ArchiveWorld) -> None:
    await world.publish(world.bob, 3)
    await world.delete(world.bob, 0, -1, drain=True)


async def delete_several(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 2, 0, -1)


async def project_a_deletion_before_its_post(world: ArchiveWorld) -> None:
    [published] = await append_events(world.graph, [PostPublished(world.bob, "hi")])
    [deleted] = await append_events(world.graph, [PostDeleted(world.bob, published.number)])
    world.deleted.add(published.number)
    for event in (deleted, published):
        await world.graph.projections.project([event], Mode.WORKER)


async def follow_and_unfollow(world: ArchiveWorld) -> None:
    await world.graph.follows.unfollow(world.alice, [world.carol])
    await world.graph.follows.follow(world.alice, [world.carol])


async def deliver_everything_again(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0)
    await world.project_again()


async def trim_the_log(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 1, drain=True)
    await world.graph.housekeeping.tidy()


async def archive_and_trim_the_log(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 1)
    await world.archive(world.process())
    await world.graph.housekeeping.tidy()


async def archive_twice_and_scan(world: ArchiveWorld) -> None:
    await world.archive(world.process())
    await world.delete(world.bob, 0, 2)
    await world.publish(world.bob, FULL)
    await world.archive(world.process())
    await world.graph.scan.run_pass()


async def read_pages(world: ArchiveWorld) -> None:
    await world.check_pages()
    await world.raw.delete(keys.home(world.alice))
    await world.check_pages()
    await world.graph.timelines.wait_for_rebuilds()


@pytest.mark.slow
@pytest.mark.parametrize(
    "action",
    [
        archive_in_another_process,
        publish_and_delete,
        delete_several,
        project_a_deletion_before_its_post,
        follow_and_unfollow,
        deliver_everything_again,
        trim_the_log,
        archive_and_trim_the_log,
        archive_twice_and_scan,
        read_pages,
    ],
)
async def test_an_action_between_any_two_calls_of_the_archiver_is_applied(
    world: ArchiveWorld, calls: Iterator[int], action: Act
) -> None:
    """Actions are posts, deletions, follows, repeated events, reads, housekeeping, scans and other archivers."""
    for call in calls:
        process = await world.restore()
        meanwhile = Meanwhile(process, call, lambda: action(world))

        await process.archiver.work()

        assert process.archiver.failures == 0
        await world.check_pages()
        await world.check()
        if not meanwhile.happened:
            break
    assert call > 12
