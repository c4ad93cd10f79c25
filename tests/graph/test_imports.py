"""Imports: events of the past with predetermined numbers."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import OutOfStep
from graph.log.events import Event, EventBody, Followed, PostDeleted, PostPublished, UserCreated
from graph.model import number_at, time_of
from graph.projections.mode import Mode
from tests.support.graph_worlds import cached, home, newest, people, posts

START = datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=UTC)


def past(bodies: Sequence[EventBody], start: datetime = START) -> list[Event]:
    """Return events with numbers one minute apart."""
    return [Event(number_at(start + timedelta(minutes=n)), body) for n, body in enumerate(bodies)]


async def small_past(graph: Graph) -> list[Event]:
    """Return two sign-ups, a follow, and two posts of which one is deleted."""
    wei, bob = (number_at(START + timedelta(minutes=n)) for n in range(2))
    regretted = number_at(START + timedelta(minutes=4))
    await graph.users.claim_many([("wei", "w", None), ("bob", "b", None)])
    return past(
        [
            UserCreated("wei", "伟", "w"),
            UserCreated("bob", "Bob", "b"),
            Followed(wei, bob),
            PostPublished(bob, "kept"),
            PostPublished(bob, "regretted"),
            PostDeleted(bob, regretted),
        ]
    )


async def test_an_import_keeps_numbers_and_times(graph: Graph) -> None:
    wei, bob, follow, kept, *_ = events = await small_past(graph)

    await graph.imports.add(events)

    [user] = await graph.users.get_many([wei.number])
    [page] = await graph.timelines.user([bob.number], newest(5))
    assert user is not None
    assert (user.name, time_of(user.id)) == ("伟", START)
    assert [(post.text, time_of(post.id)) for post in page.items] == [("kept", kept.at)]
    assert await graph.follows.followed_by(wei.number) == {bob.number: follow.number}
    assert await home(graph, wei.number) == [kept.number]


async def test_imported_events_count_as_projected(graph: Graph) -> None:
    """The worker continues after them, whether it started before or after the import."""
    events = await small_past(graph)
    await graph.imports.add(events[:3])
    assert await graph.log.watermark() == events[2].number
    await graph.worker().drain()

    await graph.imports.add(events[3:])

    assert await graph.log.watermark() == events[-1].number == await graph.worker().drain()
    bob = events[1].number
    [later] = await posts(graph, bob, "later")
    assert await graph.worker().drain() == later


async def test_events_older_than_the_retention_are_only_counted(graph: Graph, raw: Redis) -> None:
    """They change the log's last number, its watermark, its trimmed number and its count, but add no entries."""
    events = await small_past(graph)

    await graph.imports.add(events[:4])
    await graph.imports.add(events[4:])

    about = await raw.xinfo_stream("{log}")
    assert (about["length"], about["entries-added"]) == (0, len(events))
    assert await graph.log.last() == await graph.log.watermark() == await graph.log.trimmed() == events[-1].number


async def test_recent_events_are_in_the_log(graph: Graph) -> None:
    """Live streams can replay them until retention removes them."""
    events = past([PostPublished(1, "a"), PostPublished(1, "b")], datetime.now(UTC) - timedelta(hours=2))

    await graph.imports.add(events)

    assert [event async for event in graph.log.replay(0, events[-1].number)] == events
    assert (await graph.log.trimmed(), await graph.log.watermark()) == (0, events[-1].number)


async def test_home_caches_are_deleted_at_the_end(graph: Graph) -> None:
    """Posts enter no cache during the import; afterwards every home timeline shows them."""
    wei, bob, *_ = events = await small_past(graph)
    await graph.imports.add(events[:3])
    await cached(graph, wei.number, bob.number)

    await graph.imports.add(events[3:])
    assert await home(graph, wei.number) == []
    await graph.imports.end("done")

    assert await home(graph, wei.number) == await home(graph, bob.number) == [events[3].number]


async def test_a_worker_may_start_during_an_import(graph: Graph) -> None:
    """It does not wait for a batch that was interrupted, and the import continues."""
    events = await small_past(graph)
    await graph.projections.project(events[:4], Mode.IMPORT)  # and then the process dies

    assert await graph.worker().drain() == 0
    await graph.imports.add(events[:4])
    assert await graph.worker().drain() == events[3].number
    await graph.imports.add(events[4:])
    assert await graph.worker().drain() == events[-1].number


async def test_repeating_the_newest_batch_completes_it_after_a_crash(graph: Graph) -> None:
    """Events that were appended but not projected are projected, and none is appended twice."""
    wei, _, _, kept, *_ = events = await small_past(graph)
    await graph.log.append([event.body for event in events], times=[event.at for event in events])

    for _ in range(2):
        await graph.imports.add(events)

    assert await graph.log.last() == events[-1].number
    assert await home(graph, wei.number) == [kept.number]


async def test_an_import_into_a_newer_log_is_rejected(graph: Graph) -> None:
    """Nothing changes."""
    [alice] = await people(graph, "alice")
    last = await graph.log.last()

    with pytest.raises(OutOfStep):
        await graph.imports.add(past([PostPublished(alice, "too late")]))
    await graph.worker().drain()

    assert await graph.log.last() == last
    assert await home(graph, alice) == []


async def test_the_note_of_an_import_is_not_replaced_before_its_end(graph: Graph) -> None:
    assert await graph.imports.note() is None

    assert await graph.imports.begin("first") == "first"
    assert await graph.imports.begin("second") == "first"
    await graph.imports.end("done")

    assert await graph.imports.note() == "done"
