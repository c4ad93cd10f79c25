"""Tests of the scan: tombstones, leaked records and counts of archived posts, with concurrent changes and crashes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest

from graph import Graph, keys
from graph.archive.rows import REDACTED
from graph.archiver.scan import LISTS, PATTERN
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.projections.mode import Mode
from tests.graph.archiver.world import FULL, HOT, ArchiveWorld, Meanwhile, Outage
from tests.support.stores import Crashed, Death, Fault, Stop, runs

Act = Callable[[ArchiveWorld], Awaitable[Any]]


async def tombstones(world: ArchiveWorld) -> list[int]:
    """Return the deleted posts that have tombstones."""
    return [post for post in sorted(world.deleted) if await world.raw.hexists(keys.post(post), "deleted")]


def test_all_kinds_of_lists_are_scanned() -> None:
    for name in ("post", *LISTS, "likes", "liked"):
        assert fnmatchcase(f"{name}:{{5}}", PATTERN), name


async def test_tombstones_of_redacted_posts_are_dropped(world: ArchiveWorld) -> None:
    """Pages do not show the posts afterwards, and home caches lose their ids."""
    await world.archive()
    await world.delete(world.bob, 0, -1)
    [cut, hot] = sorted(world.deleted)
    await world.archive()
    assert await tombstones(world) == [cut, hot]
    members = set(await world.raw.zrange(keys.home(world.alice), 0, -1))
    assert str(hot) in members

    await world.graph.scan.run_pass()

    assert await tombstones(world) == []
    await world.check_pages()
    members = set(await world.raw.zrange(keys.home(world.alice), 0, -1))
    assert str(hot) not in members
    await world.check()


async def test_tombstones_of_posts_without_rows_are_dropped(world: ArchiveWorld) -> None:
    """No page can show the posts again."""
    await world.archive()
    await world.delete(world.bob, 0)
    await world.archive()
    await world.sql("DELETE FROM events WHERE kind = :kind", kind=REDACTED)

    await world.graph.scan.run_pass()

    assert await tombstones(world) == []


async def test_young_tombstones_stay(world: ArchiveWorld) -> None:
    await world.archive()
    await world.delete(world.bob, 0)
    await world.archive()

    await world.process(tombstones_live=timedelta(hours=1)).scan.run_pass()

    assert await tombstones(world) == sorted(world.deleted)


async def test_tombstones_of_deletions_that_are_not_archived_stay(world: ArchiveWorld) -> None:
    """The deletion is not archived and, for one post, neither is the publication. No post is deleted again."""
    await world.archive()
    await world.publish(world.bob, 1)
    await world.delete(world.bob, 0, -1)
    last = await world.graph.log.last()
    await world.graph.scan.run_pass()
    assert await tombstones(world) == sorted(world.deleted)

    await world.graph.worker().drain()
    await world.graph.scan.run_pass()

    assert await tombstones(world) == sorted(world.deleted)
    assert await world.graph.log.last() == last
    await world.check()


async def test_a_post_that_the_archive_shows_is_deleted_again(world: ArchiveWorld) -> None:
    """A backup of the archive was restored, and the log no longer holds the deletion."""
    await world.archive()
    await world.backup()
    await world.delete(world.bob, 0)
    await world.archive()
    await world.restore_backup()
    await world.raw.delete(keys.LOG)
    last = world.posts[world.bob][-1]
    await world.raw.mset({keys.ARCHIVED: last, keys.WATERMARK: last, keys.TRIMMED: last})
    for post in world.deleted:
        await world.raw.hset(keys.post(post), "deleted", str(last))

    for _ in range(2):
        await world.graph.scan.run_pass()
    assert await tombstones(world) == sorted(world.deleted)

    await world.archive()
    assert [row.number for row in await world.rows() if row.kind == REDACTED] == sorted(world.deleted)
    deletions = [row for row in await world.rows() if row.kind == "PostDeleted"]
    assert len(deletions) == 1
    await world.raw.hset(keys.post(next(iter(world.deleted))), "deleted", str(last))
    await world.graph.scan.run_pass()
    assert await tombstones(world) == []
    await world.check_pages()


async def test_a_tombstone_of_a_later_deletion_stays(world: ArchiveWorld) -> None:
    """The scan drops only the tombstone that it has compared with the archive."""
    await world.archive()
    await world.delete(world.bob, 0)
    await world.archive()
    [post] = world.deleted
    scanning = world.process()
    stop = Stop(scanning.store, runs("drop_tombstones"))
    task = asyncio.create_task(scanning.scan.run_pass())
    await stop.reached.wait()
    await world.raw.hset(keys.post(post), "deleted", str(await world.graph.log.last() + 1))

    stop.resume()
    await task

    assert await tombstones(world) == [post]


async def test_records_that_a_dead_archiver_left_are_freed(world: ArchiveWorld) -> None:
    dying = world.process()
    seen = 0

    async def die_at_the_second(commands: Any) -> None:
        nonlocal seen
        seen += any(map(runs("free_post"), commands))
        if seen == 2:
            raise Crashed

    dying.store.before.append(die_at_the_second)  # type: ignore[attr-defined]
    stop = Stop(dying.store, runs("cut_posts"))
    task = asyncio.create_task(dying.archiver.work())
    await stop.reached.wait()
    await world.project_again()
    stop.resume()
    with pytest.raises(Crashed):
        await task
    leaked = world.posts[world.bob][:-HOT]
    assert all([await world.raw.exists(keys.post(post)) for post in leaked])

    await world.graph.scan.run_pass()

    assert not any([await world.raw.exists(keys.post(post)) for post in leaked])
    await world.check()


async def test_a_record_that_a_late_projection_left_is_freed(world: ArchiveWorld) -> None:
    """The post was deleted and its tombstone dropped. A process that projects the post again dies halfway."""
    post = world.posts[world.bob][-1]
    published = await world.graph.log.get(post)
    assert published is not None
    await world.delete(world.bob, -1)
    await world.archive()
    await world.graph.scan.run_pass()
    dying = world.process()
    Fault(dying.store, runs("list_post"), Crashed())
    with pytest.raises(Crashed):
        await dying.projections.project([published], Mode.REQUEST)
    assert await world.raw.exists(keys.post(post))

    await world.graph.scan.run_pass()

    assert not await world.raw.exists(keys.post(post))
    await world.check()


async def test_nothing_is_cut_above_the_end_of_a_restored_archive(world: ArchiveWorld) -> None:
    """The store's watermark is higher until an archiver notices. The archiver, not the cut, inserts these posts."""
    await world.archive()
    await world.backup()
    await world.publish(world.bob, 3)
    await world.archive()
    await world.restore_backup()
    rows = await world.rows()

    await world.process(hot_age=timedelta(seconds=-1), hot_newest=1).scan.run_pass()

    assert await world.rows() == rows
    await world.check()


async def test_a_leaked_record_without_a_row_stays(world: ArchiveWorld) -> None:
    """It may be the last copy of the post."""
    await world.archive()
    post, kept = world.posts[world.bob][:2]
    await world.sql("DELETE FROM events WHERE number = :post", post=post)
    await world.project_again()
    dying = world.process()
    Fault(dying.store, runs("free_post"), Crashed())
    for number in (post, kept):
        event = await world.graph.log.get(number)
        assert event is not None
        with suppress(Crashed):
            await dying.projections.project([event], Mode.WORKER)
    await world.raw.hset(keys.post(post), mapping={"author": str(world.bob), "text": "last copy"})

    await world.graph.scan.run_pass()

    assert await world.raw.exists(keys.post(post))
    assert not await world.raw.exists(keys.post(kept))


@pytest.mark.parametrize("wrong", [None, 0, 99, -1])
async def test_wrong_counts_of_archived_posts_are_corrected(world: ArchiveWorld, wrong: int | None) -> None:
    await world.archive()
    if wrong is None:
        await world.raw.delete(keys.cold(world.bob))
    else:
        await world.raw.set(keys.cold(world.bob), wrong)

    await world.graph.scan.run_pass()

    assert await world.raw.get(keys.cold(world.bob)) == str(FULL + 1 - HOT)


async def test_counts_are_not_corrected_before_deletions_are_archived(world: ArchiveWorld) -> None:
    """The deletion has lowered the count, but the archive still shows the post."""
    await world.archive()
    await world.delete(world.bob, 0)
    right = await world.raw.get(keys.cold(world.bob))

    await world.graph.scan.run_pass()
    assert await world.raw.get(keys.cold(world.bob)) == right

    await world.graph.worker().drain()
    await world.graph.scan.run_pass()
    assert await world.raw.get(keys.cold(world.bob)) == right


async def delete_an_archived_post(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0)


async def cut_as_many_posts_as_are_deleted(world: ArchiveWorld) -> None:
    await world.publish(world.bob, FULL)
    await world.archive()
    await world.raw.set(keys.cold(world.bob), 77)


@pytest.mark.parametrize("action", [delete_an_archived_post, cut_as_many_posts_as_are_deleted])
async def test_a_count_that_changes_meanwhile_is_not_corrected(world: ArchiveWorld, action: Act) -> None:
    """The archive's count is from another moment. The next scan corrects the difference."""
    await world.archive()
    await world.raw.set(keys.cold(world.bob), 77)
    scanning = world.process()
    stop = Stop(scanning.store, runs("set_cold"))
    task = asyncio.create_task(scanning.scan.run_pass())
    await stop.reached.wait()
    await action(world)
    before = await world.raw.get(keys.cold(world.bob))

    stop.resume()
    await task

    assert await world.raw.get(keys.cold(world.bob)) == before
    await world.archive()
    await world.graph.scan.run_pass()
    await world.check()


async def test_many_authors_and_posts_are_scanned_in_parts(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.archiver.scan.KEYS_AT_ONCE", 2)
    await world.archive()
    await world.delete(world.bob, 0, 1, -1)
    await world.delete(world.carol, 0, 1)
    await world.raw.set(keys.cold(world.bob), 77)
    await world.archive()

    await world.graph.scan.run_pass()

    assert await tombstones(world) == []
    assert await world.raw.get(keys.cold(world.bob)) == str(FULL + 1 - HOT - 2)
    await world.check()


async def prepare(world: ArchiveWorld) -> None:
    """Create one case of each thing that a scan corrects, and save the world."""
    await world.archive()
    await world.delete(world.bob, 0, -1)
    await world.delete(world.carol, 0)
    await world.archive()
    await world.project_again()
    await world.save()


def scanner(world: ArchiveWorld) -> Graph:
    """Return a process that treats all posts except the newest of each author as old."""
    return world.process(hot_age=timedelta(0), hot_newest=1)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stop", [Death, Outage])
async def test_a_scan_that_stops_at_any_call_is_repeated(
    world: ArchiveWorld, calls: Iterator[int], stop: type[Death] | type[Outage], late: bool
) -> None:
    """The scan was killed, or the store or the archive did not answer."""
    await prepare(world)
    for call in calls:
        await world.restore()
        await world.raw.set(keys.cold(world.bob), 77)
        process = scanner(world)
        event = stop(process.store, call, after=late)
        with suppress(Crashed, StoreUnavailable, ArchiveUnavailable):
            await process.scan.run_pass()
        await scanner(world).scan.run_pass()
        await world.check()
        for author in (world.bob, world.carol):
            assert await world.hot_of(author) == world.posts[author][-1:]
        if not event.happened:
            break
    assert call > 12


async def delete_and_publish(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0, -1)
    await world.publish(world.bob, 3)


async def delete_and_archive(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0, -1)
    await world.publish(world.bob, FULL)
    await world.archive()


async def project_again(world: ArchiveWorld) -> None:
    await world.delete(world.bob, 0)
    await world.project_again()


async def scan_and_trim(world: ArchiveWorld) -> None:
    await world.graph.scan.run_pass()
    await world.delete(world.bob, 0)
    await world.archive()
    await world.graph.housekeeping.tidy()


async def read_pages(world: ArchiveWorld) -> None:
    await world.check_pages()
    await world.raw.delete(keys.home(world.alice))
    await world.check_pages()
    await world.graph.timelines.wait_for_rebuilds()


@pytest.mark.slow
@pytest.mark.parametrize("action", [delete_and_publish, delete_and_archive, project_again, scan_and_trim, read_pages])
async def test_an_action_between_any_two_calls_of_a_scan_is_applied(
    world: ArchiveWorld, calls: Iterator[int], action: Act
) -> None:
    """Actions are posts, deletions, repeated events, reads, housekeeping and scans. Right counts never become wrong."""
    await prepare(world)
    for call in calls:
        await world.restore()
        process = scanner(world)
        meanwhile = Meanwhile(process, call, lambda: action(world))

        await process.scan.run_pass()

        await world.check_pages()
        await world.check()
        if not meanwhile.happened:
            break
    assert call > 12
