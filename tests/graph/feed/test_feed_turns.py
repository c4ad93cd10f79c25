"""Replays take turns: few work at a time, those of one holder even fewer, and nobody waits for a client that stalls."""

import asyncio
from contextlib import aclosing

import pytest

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.turns import AT_ONCE, AT_ONCE_PER_HOLDER, Turn, Turns
from graph.feed.updates import PostPublished
from tests.graph.feed.test_feed_events import following
from tests.graph.feed.watching import numbers
from tests.support.graph_worlds import PATIENCE, many_posts, people, posts


async def queued(turns: Turns, *holders: str) -> tuple[list[Turn], list["asyncio.Task[None]"]]:
    """Let replays of these holders ask for a turn, one after the other."""
    asking = [Turn(turns, holder) for holder in holders]
    steps = []
    for turn in asking:
        turn.queue()
        steps.append(asyncio.create_task(turn.step()))
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    return asking, steps


def admitted(steps: list["asyncio.Task[None]"]) -> list[int]:
    """Name those who have their turn."""
    return [n for n, step in enumerate(steps) if step.done()]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no turn back."""
    monkeypatch.setattr("graph.feed.turns.IDLE_SECONDS", 60.0)
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 60.0)


@pytest.mark.usefixtures("patient")
async def test_few_replays_work_at_once_and_the_others_wait_in_order() -> None:
    """A turn that ends is given to the one who has waited longest."""
    turns = Turns()
    asking, steps = await queued(turns, *map(str, range(AT_ONCE + 3)))
    assert admitted(steps) == [*range(AT_ONCE)]
    for turn in asking[:2]:
        turn.end()
    await asyncio.sleep(0.02)
    assert admitted(steps) == [*range(AT_ONCE + 2)]
    for turn in asking:
        turn.end()
    await asyncio.gather(*steps)
    for turn in asking:
        turn.end()
    assert len(turns) == 0
    assert not turns._of_holder


@pytest.mark.usefixtures("patient")
async def test_one_holder_leaves_room_for_others() -> None:
    """However many replays they have waiting."""
    turns = Turns()
    asking, steps = await queued(turns, *["mallory"] * 20, "alice")
    assert admitted(steps) == [*range(AT_ONCE_PER_HOLDER), 20]
    steps[5].cancel()
    asking[0].end()
    await asyncio.sleep(0.02)
    assert admitted(steps) == [0, 1, 2, 5, 20]
    for step in steps:
        step.cancel()
    await asyncio.wait(steps)
    for turn in asking:
        turn.end()
    assert len(turns) == 0
    assert not turns._waiting


async def test_a_turn_is_lost_by_who_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that take nothing hold nobody up; they queue again when they come back."""
    monkeypatch.setattr("graph.feed.turns.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 60.0)
    turns = Turns()
    asking, steps = await queued(turns, *map(str, range(AT_ONCE + 1)))
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*steps)
        await asking[0].step()
    for turn in asking:
        turn.end()
    assert len(turns) == 0


async def test_a_long_turn_makes_way_for_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is used all the time."""
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 0.03)
    turns = Turns()
    busy, steps = await queued(turns, *map(str, range(AT_ONCE)))
    await asyncio.gather(*steps)
    newcomer = Turn(turns, "newcomer")
    newcomer.queue()
    waiting = asyncio.create_task(newcomer.step())
    async with asyncio.timeout(PATIENCE):
        while not waiting.done():
            for turn in busy:
                await asyncio.wait([asyncio.ensure_future(turn.step())], timeout=0.001)
    newcomer.end()
    for turn in busy:
        turn.end()


async def test_everything_else_has_its_turn_between_the_events_of_a_replay(graph: Graph, feed: Feed) -> None:
    """A client that takes as fast as it can does not keep the process busy; and still gets everything."""
    [alice] = await people(graph, "alice")
    start = await graph.log.last()
    written = await many_posts(graph, alice, 1000)
    turns_of_others = 0

    async def others() -> None:
        nonlocal turns_of_others
        while True:
            turns_of_others += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    told = []
    async with aclosing(feed.events(EventFilter.of(users=[alice]), start)) as stream, asyncio.timeout(PATIENCE):
        async for update in stream:
            told += [update.number] if isinstance(update, PostPublished) else []
            if len(told) == len(written):
                break
    beside.cancel()
    assert told == written
    assert turns_of_others >= len(told)
    assert len(feed._turns) == 0


async def test_replays_that_wait_keep_nobody_from_living(graph: Graph, feed: Feed) -> None:
    """Twenty long replays whose clients have stalled, and a newcomer who is live at once; then they go on."""
    [alice] = await people(graph, "alice")
    start = await graph.log.last()
    written = await many_posts(graph, alice, 400)
    chosen = EventFilter.of(users=[alice])
    stalled = [feed.events(chosen, start, holder=f"{n % 3}") for n in range(20)]
    for stream in stalled:
        for _ in range(150):
            await asyncio.wait_for(anext(stream), PATIENCE)
    async with following(feed, chosen) as newcomer, following(feed, chosen, written[250], holder="late") as late:
        live = await posts(graph, alice, "live")
        assert numbers(await newcomer.take(1)) == live
        assert numbers(await late.take(150)) == [*written[251:], *live]
    for stream in stalled[:3]:
        taken = [(await asyncio.wait_for(anext(stream), PATIENCE)).number for _ in range(252)]
        assert taken == [*written[149:], *live]
    for stream in stalled:
        await stream.aclose()
    assert len(feed._turns) == 0
