"""Tests of failovers: the archive restores events that the log has lost, and an old archive gets them from the log."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from graph import keys
from graph.archive.rows import ConflictingEvent
from graph.errors import ArchiverStopped, ArchiveUnavailable, Rejected
from graph.feed.updates import Gap
from graph.log.events import ProfileChanged
from graph.model import Permission
from graph.visibility.views import SYSTEM
from tests.graph.archiver.failovers import Failover
from tests.graph.archiver.world import FULL, ArchiveWorld
from tests.graph.feed.watching import feed_of, watching
from tests.support.graph_worlds import PASSWORD, dead_letters, people, posts
from tests.support.stores import Crashed, Death, Fault, sends


async def test_lost_events_are_projected_again(world: ArchiveWorld) -> None:
    """All shards have lost the events. Pages, profiles, follows and permissions are as before."""
    graph, (dave, erin) = world.graph, await people(world.graph, "dave", "erin")
    await world.archive()
    failover = await Failover(world, "").begin()
    await world.publish(world.bob, 2)
    await world.delete(world.bob, 0, 3, -1)
    await graph.follows.follow(dave, [world.bob, erin])
    await graph.follows.unfollow(dave, [erin])
    await graph.users.update_profile(dave, name="Dave the Second")
    await graph.users.grant(erin, Permission.FIREHOSE)
    await world.archive()
    rows = await world.rows()

    world.graph = graph = await failover.happen()
    await world.check()

    assert await world.rows() == rows
    assert list(await graph.follows.followed_by(dave)) == [world.bob]
    assert [user and user.name for user in await graph.users.get_many([dave])] == ["Dave the Second"]
    assert await graph.users.permissions(erin) == {Permission.FIREHOSE}


async def test_notifications_stay_where_they_were(world: ArchiveWorld) -> None:
    """All shards have lost likes and reposts, some of which were undone later. What is unread stays unread."""
    graph, bob = world.graph, world.bob
    fans = await people(graph, "dave", "erin", "frank")
    post, other, third = await posts(graph, bob, "one", "two", "three")
    for fan in fans[:2]:
        await graph.likes.like(fan, post)
        await graph.reposts.repost(SYSTEM, fan, other)
    await graph.notifications.mark_read(bob, await graph.log.last())
    await world.archive()
    failover = await Failover(world, "").begin()
    await graph.likes.like(fans[2], post)
    await graph.likes.unlike(fans[2], post)
    await graph.reposts.repost(SYSTEM, fans[2], other)
    await graph.reposts.unrepost(SYSTEM, fans[2], other)
    await graph.likes.like(fans[1], third)
    await world.archive()
    listed = await world.raw.zrange(keys.notifications(bob), 0, -1, withscores=True)

    world.graph = graph = await failover.happen()
    await world.archive()

    assert await world.raw.zrange(keys.notifications(bob), 0, -1, withscores=True) == listed
    assert not (await replace(graph.repair(), timeout=0).run(correct=False)).found


async def test_an_account_whose_login_was_lost_is_restored(world: ArchiveWorld) -> None:
    """All shards have lost the sign-up. The archive holds its password hash."""
    await world.archive()
    failover = await Failover(world, "").begin()
    [dave] = await people(world.graph, "dave")
    await world.archive()

    world.graph = await failover.happen()
    await world.archive()

    assert (await world.graph.users.check_password("dave", PASSWORD)).id == dave


@pytest.mark.parametrize("shards", [[""], ["{log}"], ["{log}", "login:"]])
async def test_a_lost_change_of_a_password_is_restored(world: ArchiveWorld, shards: list[str]) -> None:
    """The change is restored whichever shards have lost it. The archive holds the new hash."""
    await world.archive()
    failover = await Failover(world, *shards).begin()
    await world.graph.passwords.change(world.alice, PASSWORD, "a new password")
    await world.archive()

    world.graph = graph = await failover.happen()
    await world.archive()

    user, version = await graph.users.log_in("alice", "a new password")
    assert await graph.sessions.start(user.id, None, version)
    with pytest.raises(Rejected):
        await graph.users.check_password("alice", PASSWORD)
    assert not (await replace(graph.repair(), timeout=0).run(correct=False)).found


async def test_an_archived_account_keeps_its_login(world: ArchiveWorld) -> None:
    """After the failover, another user signed up with the login. That sign-up is void, in the archive too."""
    await world.archive()
    failover = await Failover(world, "").begin()
    [dave] = await people(world.graph, "dave")
    await world.archive()

    world.graph = graph = await failover.happen()
    [usurper] = await people(graph, "dave")
    await world.archive()

    assert (await graph.users.check_password("dave", PASSWORD)).id == dave
    assert list(await graph.archive.credentials([dave, usurper])) == [dave]
    assert [row.number for row in await world.rows() if row.body is None] == []
    assert await dead_letters(graph) == []


async def test_new_events_get_numbers_above_the_lost_ones(world: ArchiveWorld) -> None:
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive()
    [lost] = world.posts[world.bob][-1:]

    world.graph = await failover.happen()
    await world.graph.archiver.work()
    assert await world.graph.log.last() == lost

    await world.publish(world.bob, 1)
    await world.check()


async def test_recovery_needs_no_log(world: ArchiveWorld) -> None:
    """Recovery works when the log is empty, and even when the stream does not exist."""
    failover = await Failover(world).begin()
    await world.archive()
    last = await world.graph.log.last()

    world.graph = await failover.happen()
    await world.raw.delete(keys.LOG)
    await world.graph.archiver.work()

    assert await world.graph.log.last() == last
    await world.publish(world.bob, 1)
    assert world.posts[world.bob][-1] > last
    await world.check()


async def test_streams_report_lost_events(world: ArchiveWorld) -> None:
    """A stream that resumes from before the lost events gets a gap."""
    await world.archive()
    before = await world.graph.log.last()
    failover = await Failover(world).begin()
    [lost] = await posts(world.graph, world.bob, "lost")
    world.posts[world.bob].append(lost)
    await world.archive()

    world.graph = await failover.happen()
    await world.archive()
    await world.publish(world.bob, 1)
    await world.archive()

    assert await world.graph.log.trimmed() == lost
    async with feed_of(world.graph) as feed, watching(feed, world.alice, before) as watcher:
        [update] = await watcher.take(1)
        assert isinstance(update, Gap)


async def test_the_mark_of_lost_events_is_never_lowered(world: ArchiveWorld) -> None:
    """Housekeeping removes older events from the log afterwards."""
    await world.graph.archiver.work()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive()
    lost = world.posts[world.bob][-1]

    world.graph = await failover.happen()
    await world.archive()
    await world.graph.housekeeping.tidy()

    assert await world.graph.log.trimmed() == lost
    await world.check()


async def test_an_archiver_that_did_not_recover_lost_events_works_on(world: ArchiveWorld) -> None:
    """The archiver has not read the archive since another process recovered the events."""
    idle = world.process()
    await world.archive(idle)
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive(world.process())
    await failover.happen()
    await world.archive(world.process())

    await world.raw.delete(keys.ARCHIVER)
    await idle.archiver.work()

    await world.publish(world.bob, 1)
    await world.archive(idle)
    await world.check()


async def test_a_worker_is_up_to_date_after_a_recovery(world: ArchiveWorld) -> None:
    """The log assigned numbers that it no longer holds."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 1)
    await world.archive()

    world.graph = await failover.happen()
    await world.graph.archiver.work()

    assert (await world.graph.backlog()).unprojected_seconds == 0
    assert await world.graph.worker().drain() == await world.graph.log.last()


async def test_a_log_that_lost_only_the_mark_changes_nothing(world: ArchiveWorld) -> None:
    """The archiver crashed before it raised the watermark, or a failover lost only the watermark."""
    await world.archive()
    await world.raw.set(keys.ARCHIVED, world.posts[world.carol][1])
    rows, process = await world.rows(), world.process()

    await world.archive(process)

    assert await world.rows() == rows
    assert await process.log.trimmed() == 0
    await world.check()


async def test_a_failover_during_a_batch_leaves_the_watermark(world: ArchiveWorld) -> None:
    """The log loses the end of a batch between the commit and the update of the watermark."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.publish(world.bob, 2, drain=True)
    archiver = world.process()

    async def lose(commands: Sequence[Any]) -> None:
        if commands[0] == ("ARCHIVE", "append"):
            archiver.store.after.remove(lose)  # type: ignore[attr-defined]
            await failover.happen()

    archiver.store.after.append(lose)  # type: ignore[attr-defined]
    await world.raw.delete(keys.ARCHIVER)
    await archiver.archiver.work()

    await world.check()
    assert await world.graph.log.trimmed() >= world.posts[world.bob][-1]


async def test_a_changed_entry_leaves_the_watermark(world: ArchiveWorld) -> None:
    """After a failover with a clock set back, another event has the number of the last event of the batch."""
    await world.archive()
    [event] = await posts(world.graph, world.carol, "one")
    world.posts[world.carol].append(event)
    await world.graph.worker().drain()
    before, archiver = await world.raw.get(keys.ARCHIVED), world.process()
    entry = (await world.graph.store.run("XREVRANGE", keys.LOG, "+", "-", "COUNT", 1))[0]

    async def change(commands: Sequence[Any]) -> None:
        if commands[0] == ("ARCHIVE", "append"):
            archiver.store.after.remove(change)  # type: ignore[attr-defined]
            await world.raw.delete(keys.LOG)
            await world.raw.xadd(
                keys.LOG,
                {**dict(zip(entry[1][::2], entry[1][1::2], strict=True)), "body": '{"text":"two"}'},
                id=entry[0],
            )

    archiver.store.after.append(change)  # type: ignore[attr-defined]
    with pytest.raises(ConflictingEvent):
        await archiver.archiver.work()

    assert await world.raw.get(keys.ARCHIVED) == before


async def test_an_archive_restored_from_a_backup_is_filled_from_the_log(world: ArchiveWorld) -> None:
    await world.publish(world.bob, 1)
    await world.archive()
    await world.backup()
    await world.delete(world.bob, 0, -1)
    await world.publish(world.bob, FULL)
    await world.archive()
    rows = await world.rows()

    await world.restore_backup()
    assert await world.rows() != rows
    down = world.process()
    Fault(down.store, sends("ARCHIVE", "append"), ArchiveUnavailable("injected fault"))
    with pytest.raises(ArchiveUnavailable):
        await down.archiver.work()
    await world.graph.housekeeping.tidy()  # keeps the events that the archive now lacks
    await world.archive()

    assert await world.rows() == rows
    await world.check()


async def test_an_archive_older_than_the_log_stops_the_archiver(world: ArchiveWorld) -> None:
    """Nothing is changed until an operator restores a newer backup."""
    await world.archive()
    await world.backup()
    await world.publish(world.bob, 1)
    await world.archive()
    await world.graph.housekeeping.tidy()
    await world.restore_backup()
    watermarks, rows = await world.watermarks(), await world.rows()

    for process in (world.graph, world.process()):
        with pytest.raises(ArchiverStopped, match="Restore a newer backup"):
            await process.archiver.work()

    assert (await world.watermarks(), await world.rows()) == (watermarks, rows)


async def lose_everything(world: ArchiveWorld) -> Failover:
    return await Failover(world, "").begin()


async def lose_the_log(world: ArchiveWorld) -> Failover:
    return await Failover(world).begin()


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("lost", [lose_everything, lose_the_log])
async def test_a_recovery_that_is_killed_is_repeated(
    world: ArchiveWorld, calls: Iterator[int], lost: Callable[[ArchiveWorld], Awaitable[Failover]], late: bool
) -> None:
    """Events after the failover are still archived."""
    await world.archive()
    failover = await lost(world)
    await world.publish(world.bob, 2)
    await world.delete(world.bob, 0, -1)
    await world.archive()
    await failover.happen()
    await world.save()
    for call in calls:
        process = await world.restore()
        death = Death(process.store, call, after=late)
        with suppress(Crashed):
            await process.archiver.work()
        await world.publish(world.carol, 1)
        await world.check()
        if not death.happened:
            break
    assert call > 4


async def test_profiles_are_not_set_back_by_lost_events(world: ArchiveWorld) -> None:
    """A user changed the profile after the failover and before the recovery."""
    await world.archive()
    failover = await Failover(world).begin()
    await world.graph.commit([ProfileChanged(world.bob, "lost")])
    await world.archive()

    world.graph = await failover.happen()
    await world.graph.commit([ProfileChanged(world.bob, "newer")])
    await world.check()

    assert [user and user.name for user in await world.graph.users.get_many([world.bob])] == ["newer"]
