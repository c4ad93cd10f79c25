"""A demoted primary still numbers events for clients that do not know of the failover.

One process uses the old primary and one the new primary, both with the same archive.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graph import Graph, keys
from graph.archive.rows import ConflictingEvent, EventRow
from graph.model import number_at
from tests.faults.archive_world import agree, archive_all, opened, rows_of, settle, watermarks, working
from tests.support.graph_worlds import posts, reached
from tests.support.pair import Pair, pair_in


@dataclass
class Split:
    """The processes `old` and `new`, and the data they share."""

    old: Graph
    new: Graph
    bob: int
    rows: list[EventRow] = field(default_factory=list)

    def use_same_numbers(self) -> None:
        """Let both logs assign the same next number, as can happen if their clocks differ."""
        number = number_at(datetime.now(UTC) + timedelta(seconds=1))
        self.old.log.seen = self.new.log.seen = number


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run a primary and its replica."""
    with pair_in(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
async def split(tmp_path: Path, pair: Pair) -> AsyncIterator[Split]:
    """Promote the replica without demoting the old primary, after everything is archived."""
    pair.renew()
    archive_url = f"sqlite:///{tmp_path}/archive.sqlite"
    async with opened(pair.primary.url, archive_url) as old, opened(pair.replica.url, archive_url) as new:
        await settle(old)
        [bob] = await old.users.ids_of_logins(["bob"])
        await asyncio.to_thread(pair.separate)
        yield Split(old, new, bob or 0, await rows_of(old))


def first(split: Split) -> tuple[Graph, Graph]:
    return split.old, split.new


def last(split: Split) -> tuple[Graph, Graph]:
    return split.new, split.old


Order = Callable[[Split], tuple[Graph, Graph]]


@pytest.mark.parametrize("order", [first, last], ids=["old first", "new first"])
async def test_the_same_number_for_another_event_stops_the_archiver(split: Split, order: Order) -> None:
    """The event that is archived first stays. No other event is archived, and none is lost in the other log."""
    split.use_same_numbers()
    winner, loser = order(split)
    [kept] = await posts(winner, split.bob, "first")
    [refused] = await posts(loser, split.bob, "second")
    [later] = await posts(loser, split.bob, "later")
    assert kept == refused
    await archive_all(winner)
    rows = await rows_of(winner)
    before = await watermarks(loser)

    for _ in range(2):
        with pytest.raises(ConflictingEvent, match=str(kept)):
            await archive_all(loser)

    assert await rows_of(winner) == rows
    assert [row.body for row in rows if row.number == kept] == ['{"text":"first"}']
    assert (await watermarks(loser))[0] == before[0], "the log could be discarded"
    await loser.housekeeping.tidy()
    assert (await loser.log.get(later)) is not None


@pytest.mark.usefixtures("prompt_archiver")
async def test_the_alarm_stays_while_the_archiver_is_stopped(split: Split) -> None:
    """The alarm names the event and is only in the store of the stopped archiver. The other process continues."""
    split.use_same_numbers()
    [conflict] = await posts(split.old, split.bob, "old")
    await posts(split.new, split.bob, "new")
    await archive_all(split.old)

    async with working(split.new):
        await attempts(split.new, 1)
        alarm = await split.new.store.run("GET", keys.ALARM)
        assert f"Event {conflict} of the log differs" in alarm
        [post] = await posts(split.new, split.bob, "still accepted")
        await attempts(split.new, 3)
        assert await split.new.store.run("GET", keys.ALARM) == alarm

    assert await split.old.store.run("GET", keys.ALARM) is None
    assert conflict in {row.number for row in await rows_of(split.old)}
    assert post not in {row.number for row in await rows_of(split.old)}


async def attempts(graph: Graph, count: int) -> None:
    """Wait until the archiver has failed this many more times and has started another attempt."""
    await reached(lambda: asyncio.sleep(0, graph.archiver.failures), graph.archiver.failures + count + 1)


@pytest.mark.parametrize("order", [first, last], ids=["old first", "new first"])
async def test_other_numbers_are_all_kept(split: Split, order: Order) -> None:
    """Events of the demoted primary are archived by a process that still reads it, and projected in the new primary."""
    before = split.rows[-1].number
    one, two = order(split)
    written = []
    for n in range(3):
        written += await posts(one, split.bob, f"one {n}")
        await asyncio.sleep(0.005)  # in one millisecond, both would assign the same number
        written += await posts(two, split.bob, f"two {n}")
        await asyncio.sleep(0.005)
        await archive_all(one)
        await archive_all(two)
    assert sorted(set(written)) == sorted(written)

    written += await posts(split.new, split.bob, "last")
    await archive_all(split.new)

    assert [row.number for row in await rows_of(split.new) if row.number > before] == sorted(written)
    await agree(split.new)


async def test_a_deletion_on_one_side_deletes_the_post_of_the_other(split: Split) -> None:
    """The post is deleted on the new primary, although it was published and archived on the old one."""
    [post] = await posts(split.old, split.bob, "old")
    await archive_all(split.old)
    await archive_all(split.new)

    await split.new.posts.delete(split.bob, post)
    await archive_all(split.new)

    await agree(split.new)
    assert [row.kind for row in await rows_of(split.new) if row.number == post] == ["Redacted"]
