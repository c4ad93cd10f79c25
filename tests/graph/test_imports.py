"""Imports: a past with numbers of its own, brought into a new store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import OutOfStep
from graph.log.events import Event, Fact, Followed, PostDeleted, PostPublished, UserCreated
from graph.model import number_at
from tests.support.graph_worlds import cached, home, newest, people, posts

START = datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=UTC)


def past(events: Sequence[Event], start: datetime = START) -> list[Fact]:
    """Number events a minute apart."""
    return [Fact(number_at(start + timedelta(minutes=n)), event) for n, event in enumerate(events)]


async def a_small_past(graph: Graph) -> list[Fact]:
    """Two people, a follow and two posts, of which one was deleted."""
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
    """People, follows and posts come with the times they had, and are all there at once."""
    wei, bob, follow, kept, *_ = facts = await a_small_past(graph)

    await graph.imports.bring(facts)

    [user] = await graph.users.get_many([wei.number])
    [page] = await graph.timelines.user([bob.number], newest(5))
    assert user is not None
    assert (user.name, user.joined_at) == ("伟", START)
    assert [(post.text, post.created_at) for post in page.items] == [("kept", kept.at)]
    assert await graph.follows.followed_by(wei.number) == {bob.number: follow.number}
    assert await home(graph, wei.number) == [kept.number]


async def test_imported_facts_count_as_drained(graph: Graph) -> None:
    """The worker goes on behind them, whether it began before or after."""
    facts = await a_small_past(graph)
    await graph.imports.bring(facts[:3])
    assert await graph.log.drained() == facts[2].number
    await graph.worker().drain()

    await graph.imports.bring(facts[3:])

    assert await graph.log.drained() == facts[-1].number == await graph.worker().drain()
    bob = facts[1].number
    [later] = await posts(graph, bob, "later")
    assert await graph.worker().drain() == later


async def test_what_the_log_would_forget_at_once_is_only_counted(graph: Graph, raw: Redis) -> None:
    """Facts older than the retention leave the log's last number, its marks and its count, but no entries."""
    facts = await a_small_past(graph)

    await graph.imports.bring(facts[:4])
    await graph.imports.bring(facts[4:])

    about = await raw.xinfo_stream("{log}")
    assert (about["length"], about["entries-added"]) == (0, len(facts))
    assert await graph.log.last() == await graph.log.drained() == await graph.log.trimmed() == facts[-1].number


async def test_recent_facts_are_in_the_log(graph: Graph) -> None:
    """Live streams can replay them; retention removes them when their time has come."""
    facts = past([PostPublished(1, "a"), PostPublished(1, "b")], datetime.now(UTC) - timedelta(hours=2))

    await graph.imports.bring(facts)

    assert [fact async for fact in graph.log.replay(0, facts[-1].number)] == facts
    assert (await graph.log.trimmed(), await graph.log.drained()) == (0, facts[-1].number)


async def test_home_caches_are_forgotten_at_the_end(graph: Graph) -> None:
    """A post comes into no cache while the import runs; when it is complete, every home timeline has it."""
    wei, bob, *_ = facts = await a_small_past(graph)
    await graph.imports.bring(facts[:3])
    await cached(graph, wei.number, bob.number)

    await graph.imports.bring(facts[3:])
    assert await home(graph, wei.number) == []
    await graph.imports.end("done")

    assert await home(graph, wei.number) == await home(graph, bob.number) == [facts[3].number]


async def test_a_worker_that_starts_in_the_middle_has_nothing_to_wait_for(graph: Graph) -> None:
    """What is in the log is drained, whether a batch broke off or not, and the import goes on."""
    facts = await a_small_past(graph)
    await graph.projections.project(facts[:4], whole=True, fan_out=False)  # and then the process dies

    assert await graph.worker().drain() == 0
    await graph.imports.bring(facts[:4])
    assert await graph.worker().drain() == facts[3].number
    await graph.imports.bring(facts[4:])
    assert await graph.worker().drain() == facts[-1].number


async def test_repeating_the_newest_batch_mends_a_crash(graph: Graph) -> None:
    """What was appended but not projected is projected, and nothing is there twice."""
    wei, _, _, kept, *_ = facts = await a_small_past(graph)
    await graph.log.append([fact.event for fact in facts], times=[fact.at for fact in facts])

    for _ in range(2):
        await graph.imports.bring(facts)

    assert await graph.log.last() == facts[-1].number
    assert await home(graph, wei.number) == [kept.number]


async def test_an_import_that_comes_too_late_changes_nothing(graph: Graph) -> None:
    """A log that others have written to refuses a past, and is as it was."""
    [alice] = await people(graph, "alice")
    last = await graph.log.last()

    with pytest.raises(OutOfStep):
        await graph.imports.bring(past([PostPublished(alice, "too late")]))
    await graph.worker().drain()

    assert await graph.log.last() == last
    assert await home(graph, alice) == []


async def test_the_first_note_of_an_import_stands(graph: Graph) -> None:
    """So that one that broke off is told from another; at its end it is replaced."""
    assert await graph.imports.note() is None

    assert await graph.imports.begin("first") == "first"
    assert await graph.imports.begin("second") == "first"
    await graph.imports.end("done")

    assert await graph.imports.note() == "done"
