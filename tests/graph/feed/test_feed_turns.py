"""Tests of the fair scheduling of replays."""

import asyncio
from contextlib import aclosing

import pytest

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.filters import EventFilter
from graph.feed.turns import MAX_RUNNING, MAX_RUNNING_PER_HOLDER, ReplayTurns, Turn
from graph.feed.updates import PostAdded
from tests.graph.feed.watching import following, numbers
from tests.support.graph_worlds import PATIENCE, many_posts, people, posts


async def queued(turns: ReplayTurns, *holders: str) -> tuple[list[Turn], list["asyncio.Task[None]"]]:
    """Let replays of these holders queue for a turn, in this order."""
    turns_of_replays = [Turn(turns, holder) for holder in holders]
    steps = []
    for turn in turns_of_replays:
        turn.queue()
        steps.append(asyncio.create_task(turn.step()))
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    return turns_of_replays, steps


def started(steps: list["asyncio.Task[None]"]) -> list[int]:
    """Return the positions of the replays that have their turn."""
    return [n for n, step in enumerate(steps) if step.done()]


@pytest.fixture
def endless_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.feed.turns.IDLE_SECONDS", 60.0)
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 60.0)


@pytest.mark.usefixtures("endless_turns")
async def test_a_few_replays_run_and_the_others_wait_in_order() -> None:
    turns = ReplayTurns()
    turns_of_replays, steps = await queued(turns, *map(str, range(MAX_RUNNING + 3)))
    assert started(steps) == [*range(MAX_RUNNING)]
    for turn in turns_of_replays[:2]:
        turn.end()
    await asyncio.sleep(0.02)
    assert started(steps) == [*range(MAX_RUNNING + 2)]
    for turn in turns_of_replays:
        turn.end()
    await asyncio.gather(*steps)
    for turn in turns_of_replays:
        turn.end()
    assert len(turns) == 0
    assert not turns._running_of


@pytest.mark.usefixtures("endless_turns")
async def test_the_replays_of_one_holder_do_not_take_all_turns() -> None:
    turns = ReplayTurns()
    turns_of_replays, steps = await queued(turns, *["mallory"] * 20, "alice")
    assert started(steps) == [*range(MAX_RUNNING_PER_HOLDER), 20]
    steps[5].cancel()
    turns_of_replays[0].end()
    await asyncio.sleep(0.02)
    assert started(steps) == [0, 1, 2, 5, 20]
    for step in steps:
        step.cancel()
    await asyncio.wait(steps)
    for turn in turns_of_replays:
        turn.end()
    assert len(turns) == 0
    assert not turns._waiting


async def test_a_replay_that_makes_no_step_loses_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay queues again at its next step."""
    monkeypatch.setattr("graph.feed.turns.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 60.0)
    turns = ReplayTurns()
    turns_of_replays, steps = await queued(turns, *map(str, range(MAX_RUNNING + 1)))
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*steps)
        await turns_of_replays[0].step()
    for turn in turns_of_replays:
        turn.end()
    assert len(turns) == 0


async def test_a_long_turn_ends_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.feed.turns.TURN_SECONDS", 0.03)
    turns = ReplayTurns()
    busy, steps = await queued(turns, *map(str, range(MAX_RUNNING)))
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


async def test_other_tasks_run_between_the_updates_of_a_replay(graph: Graph, feed: Feed) -> None:
    """Other tasks run even if the client takes updates as fast as it can."""
    [alice] = await people(graph, "alice")
    start = await graph.log.last()
    written = await many_posts(graph, alice, 1000)
    iterations = 0

    async def others() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    streamed = []
    async with aclosing(feed.events(None, EventFilter.of(users=[alice]), start)) as stream, asyncio.timeout(PATIENCE):
        async for update in stream:
            streamed += [update.number] if isinstance(update, PostAdded) else []
            if len(streamed) == len(written):
                break
    beside.cancel()
    assert streamed == written
    assert iterations >= len(streamed)
    assert len(feed._turns) == 0


async def test_stalled_replays_do_not_delay_others(graph: Graph, feed: Feed) -> None:
    """Twenty clients stall in long replays. A new subscription is live at once, and another replay completes."""
    [alice] = await people(graph, "alice")
    start = await graph.log.last()
    written = await many_posts(graph, alice, 400)
    chosen = EventFilter.of(users=[alice])
    stalled = [feed.events(None, chosen, start, holder=f"{n % 3}") for n in range(20)]
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
