"""The backlog: how far projections and the archive are behind the log."""

from datetime import timedelta

from sqlalchemy import delete, update

from graph import Graph, keys
from graph.archive.tables import EVENTS, PUBLIC_POSTS, STATE
from graph.log.events import PostDeleted, PostPublished
from graph.worker.housekeeping import Housekeeping
from tests.support.graph_worlds import append_events, archive_log, archiver_of, counted


async def publish(graph: Graph, count: int) -> list[int]:
    """Append posts and project them."""
    events = await append_events(graph, [PostPublished(1, f"post {n}") for n in range(count)])
    await graph.worker().drain()
    return [event.number for event in events]


async def test_an_unused_store_has_no_backlog(graph: Graph) -> None:
    backlog = await graph.backlog()
    assert (backlog.length, backlog.unarchived, backlog.tasks, backlog.dead, backlog.batches) == (0, 0, 0, 0, 0)
    assert backlog.unprojected_seconds == backlog.unarchived_seconds == backlog.batch_seconds == 0
    assert (backlog.alarm, backlog.rebuild) == ("", "")
    assert backlog.binding == await graph.binding.token()


async def test_an_event_is_unprojected_then_unarchived_then_neither(graph: Graph) -> None:
    """The ages are those of the oldest event; the totals grow with each batch."""
    await append_events(graph, [PostPublished(1, "one"), PostPublished(1, "two")])
    appended = await graph.backlog()
    await graph.worker().drain()
    projected = await graph.backlog()
    await archive_log(graph)
    archived = await graph.backlog()

    assert appended.unprojected_seconds > 0
    assert projected.unprojected_seconds == 0
    assert projected.unarchived_seconds >= appended.unarchived_seconds > 0
    assert (appended.unarchived, projected.unarchived) == (2, 2)
    assert (archived.unarchived, archived.unarchived_seconds) == (0, 0)
    assert (archived.length, archived.archived, archived.batches) == (2, 2, 1)


async def test_each_batch_lowers_the_number_of_unarchived_events(graph: Graph) -> None:
    await publish(graph, 5)
    archiver = archiver_of(graph, 2)
    found = []
    for _ in range(3):
        await archiver.archive_batch()
        found.append((await graph.backlog()).unarchived)
    assert found == [3, 1, 0]
    assert ((await graph.backlog()).archived, (await graph.backlog()).batches) == (5, 3)


async def test_removed_entries_do_not_change_the_number_of_unarchived_events(graph: Graph) -> None:
    """Neither events that retention has removed nor posts that were deleted change the number."""
    first, *_ = await publish(graph, 3)
    await append_events(graph, [PostDeleted(1, first)])
    await graph.worker().drain()
    await archive_log(graph)
    await graph.housekeeping.tidy()
    scrubbed = await graph.backlog()
    tidy = Housekeeping(graph.store, graph.log, graph.dead_letters, timedelta(0))
    await tidy.tidy()
    await publish(graph, 2)
    backlog = await graph.backlog()

    assert (scrubbed.length, scrubbed.unarchived) == (3, 0)
    assert (backlog.length, backlog.unarchived) == (2, 2)


async def test_after_a_restore_of_the_archive_the_number_is_what_the_log_holds(graph: Graph) -> None:
    """It is an estimate, because the log also holds events that the older archive has. The last batch corrects it."""
    await publish(graph, 2)
    await archive_log(graph)
    known = (await graph.archive.state()).watermark
    await publish(graph, 3)
    archiver = archiver_of(graph, 2)
    await archiver.work()
    store_id = await graph.binding.store_id()
    await rewind(graph, known, store_id)

    restored = archiver_of(graph, 2)
    await restored.archive_batch()
    between = (await graph.backlog()).unarchived
    await restored.work()
    assert between == 3, "2 of the log's 5 events were archived again"
    assert (await graph.backlog()).unarchived == 0
    await publish(graph, 1)
    assert (await graph.backlog()).unarchived == 1


async def rewind(graph: Graph, watermark: int, store_id: str) -> None:
    """Return the archive to its state at this watermark, like a restored backup."""
    async with graph.archive.database.engine.begin() as connection:
        for table in (EVENTS, PUBLIC_POSTS):
            await connection.execute(delete(table).where(table.c.number > watermark))
        await connection.execute(update(STATE).values(watermark=watermark, store=store_id))


async def test_the_backlog_is_one_round_trip(graph: Graph) -> None:
    await publish(graph, 1)
    async with counted(graph) as cost:
        await graph.backlog()
    assert (cost.round_trips, cost.commands) == (1, 1)


async def test_the_alarm_and_an_unfinished_rebuild_are_part_of_the_backlog(graph: Graph) -> None:
    await graph.store.run("SET", keys.ALARM, "because")
    await graph.store.run("SET", keys.REBUILD, "store:archive")
    backlog = await graph.backlog()
    assert (backlog.alarm, backlog.rebuild) == ("because", "store:archive")
