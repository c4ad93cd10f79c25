"""A failover in which the log loses events: a worker corrects the data that other shards derived from them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from graph import Graph, keys
from graph.archiver.lease import Lease
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log.events import Followed, Liked, Reposted
from graph.log.losses import MAX_RECEIVED, Losses
from graph.log.moderation_events import StoreRepaired
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER
from graph.repair import defects
from graph.repair.report import RepairReport
from graph.worker.healing import Healing
from graph.worker.repeated_repair import MAX_PAUSE_SECONDS, MAX_RUNS
from tests.graph.repair.broken import RepairWorld
from tests.graph.worker.unprojected import append
from tests.properties.snapshots import Snapshots
from tests.support.graph_worlds import PATIENCE, background, befriend, counts_of, people, posts, reached


async def lose(graph: Graph, *numbers: int) -> None:
    """Remove events from the log, as a failover does."""
    await graph.store.send([("XDEL", keys.LOG, *map(entry_id, numbers))])


@pytest.mark.single_server("takes snapshots of one server")
async def test_what_was_derived_from_lost_events_is_corrected(world: RepairWorld, store_url: str) -> None:
    """Once the archive has passed the lost events, a worker corrects the data, drops the note and notifies streams."""
    graph = world.graph
    snapshots = Snapshots(store_url)
    log = snapshots.take("{log}*")
    await befriend(graph, world.dave, world.bob)
    [post] = await posts(graph, world.dave, "lost")
    await graph.worker().drain()
    assert snapshots.roll_back(log)
    snapshots.close()
    await graph.losses.note(post)
    assert not await graph.healing.check()
    world.posts[world.star] += await posts(graph, world.star, "later")
    await world.drain()
    assert not (await graph.repair().run(correct=False)).clean

    async with background(graph.worker().run()), asyncio.timeout(PATIENCE):
        while await graph.losses.highest():  # noqa: ASYNC110 - the store sends no notification
            await asyncio.sleep(0.02)

    assert (await graph.repair().run(correct=False)).clean
    [last] = await graph.log.newest(MAX_NUMBER, 1)
    assert last.body == StoreRepaired()


async def test_nothing_is_repaired_without_a_loss(world: RepairWorld) -> None:
    world.posts[world.star] += await posts(world.graph, world.star, "later")
    await world.drain()
    assert not await world.graph.healing.check()


class Repairs:
    """A repair that counts its runs. Each run fails with an outage, reports one difference, or reports nothing."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)
        self.announced: list[bool] = []
        self.now = 1000.0

    @property
    def runs(self) -> int:
        return len(self.announced)

    async def run(self, *, announces: bool) -> RepairReport:
        self.announced.append(announces)
        outcome = self.outcomes.pop(0) if self.outcomes else ""
        if isinstance(outcome, Exception):
            raise outcome
        report = RepairReport(0, 0, corrects=True)
        if outcome:
            setattr(report, outcome, Counter({defects.LIKE_LEFT: 1}) if outcome == "corrected" else 1)
        return report

    def in_place(self, graph: Graph, lease: Lease | None = None) -> Healing:
        """Return a `Healing` that uses this repair and, unless a lease is given, the time `now`."""
        if lease is not None:
            return Healing(graph.log, graph.losses, lease, self.run)
        return Healing(graph.log, graph.losses, Lease(graph.store), self.run, lambda: self.now)


async def test_a_repair_is_left_to_the_holder_of_the_lease(world: RepairWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.worker.healing.CHECK_SECONDS", 0.01)
    repairs, lease = Repairs(), Lease(world.graph.store)
    await world.graph.losses.note(1)
    async with background(repairs.in_place(world.graph, lease).run()):
        await asyncio.sleep(0.1)
        assert not repairs.runs
        lease.is_held = True
        await reached(runs_of(repairs), 1)


OUTAGES = ArchiveUnavailable("test"), StoreUnavailable("test"), WrongArchive("test"), RuntimeError("unexpected")


@pytest.mark.parametrize("outage", OUTAGES)
async def test_a_repair_is_repeated_after_an_outage(
    world: RepairWorld, outage: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.worker.healing.CHECK_SECONDS", 0.01)
    repairs, lease = Repairs(outage), Lease(world.graph.store)
    lease.is_held = True
    await world.graph.losses.note(1)
    async with background(repairs.in_place(world.graph, lease).run()):
        await reached(runs_of(repairs), 2)
        async with asyncio.timeout(PATIENCE):
            while await world.graph.losses.highest():  # noqa: ASYNC110 - the store sends no notification
                await asyncio.sleep(0.01)
    assert repairs.runs == 2


@pytest.mark.parametrize("reason", ["left_out", "changed", "corrected"])
async def test_a_repair_is_repeated_until_it_has_nothing_to_correct(world: RepairWorld, reason: str) -> None:
    """The pauses grow. Streams are notified of each repair that corrects something, and always of the first one."""
    repairs = Repairs(reason, reason)
    healing = repairs.in_place(world.graph)
    await world.graph.losses.note(1)
    for runs, pause in ((1, 1.0), (2, 2.0)):
        assert not await healing.check()
        repairs.now += pause - 0.1
        assert not await healing.check()
        assert repairs.runs == runs
        assert await world.graph.losses.highest()
        repairs.now += 0.1
    assert await healing.check()
    assert repairs.announced == [True, False, False]
    assert not await world.graph.losses.highest()


async def test_repairs_end_although_differences_are_left(world: RepairWorld) -> None:
    """Each repair reads the whole archive, so their number is limited. Failed repairs do not count."""
    repairs = Repairs(StoreUnavailable("test"), *["left_out"] * MAX_RUNS)
    healing = repairs.in_place(world.graph)
    await world.graph.losses.note(1)
    with pytest.raises(StoreUnavailable):
        await healing.check()
    repairs.now += MAX_PAUSE_SECONDS
    while not await healing.check():
        repairs.now += MAX_PAUSE_SECONDS
    assert repairs.runs == 1 + MAX_RUNS
    assert not await world.graph.losses.highest()


async def test_a_repair_after_one_that_failed_is_announced(world: RepairWorld) -> None:
    """The failed repair may have corrected something. A pause follows it, too."""
    repairs = Repairs("corrected", StoreUnavailable("test"))
    healing = repairs.in_place(world.graph)
    await world.graph.losses.note(1)
    assert not await healing.check()
    repairs.now += 1.0
    with pytest.raises(StoreUnavailable):
        await healing.check()
    assert not await healing.check()
    repairs.now += 2.0
    assert await healing.check()
    assert repairs.announced == [True, False, True]


async def test_a_later_loss_is_repaired_at_once(world: RepairWorld) -> None:
    """The repair starts even during the pause after the repair of an earlier loss."""
    repairs = Repairs("left_out")
    healing = repairs.in_place(world.graph)
    await world.graph.losses.note(1)
    assert not await healing.check()
    await world.graph.losses.note(2)
    assert await healing.check()
    assert repairs.announced == [True, True]


def runs_of(repairs: Repairs) -> Callable[[], Awaitable[int]]:
    """Return a function that reads the number of runs of a repair."""

    async def runs() -> int:
        return repairs.runs

    return runs


async def test_a_loss_during_the_repair_is_repaired_too(world: RepairWorld) -> None:
    """Neither noting nor forgetting the first loss hides the second."""
    losses = world.graph.losses
    await losses.note(5)
    await losses.note(7)
    await losses.note(6)
    await losses.forget(5)
    assert await losses.highest() == 7
    await losses.forget(7)
    assert await losses.highest() == 0


async def test_a_worker_misses_events_that_it_has_received(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    [number] = await append(graph, Followed(alice, bob))
    await graph.worker().drain()
    assert await graph.losses.find() == 0
    await lose(graph, number)
    assert await graph.losses.find() == number


async def test_the_highest_of_several_lost_events_is_noted(graph: Graph) -> None:
    """The number is noted once."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    numbers = await append(graph, Followed(alice, bob), Followed(alice, carol), Followed(bob, alice))
    losses = Losses(graph.store, graph.log)
    for number in numbers:
        losses.receive(number)
    assert await losses.find() == 0

    await lose(graph, *numbers[:2])

    assert await losses.find() == numbers[1]
    assert await losses.highest() == numbers[1]
    assert await losses.find() == 0


async def test_only_the_last_thousand_events_are_remembered(graph: Graph) -> None:
    """A worker's memory must not grow without limit."""
    alice, bob = await people(graph, "alice", "bob")
    first, last = await append(graph, Followed(alice, bob), Followed(bob, alice))
    losses = Losses(graph.store, graph.log)
    losses.receive(first)
    for _ in range(MAX_RECEIVED):
        losses.receive(last)
    await lose(graph, first)
    assert await losses.find() == 0


async def test_events_are_received_while_lost_ones_are_searched(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost event that was received twice, and is meanwhile displaced by a thousand others, is noted once."""
    alice, bob = await people(graph, "alice", "bob")
    first, last = await append(graph, Followed(alice, bob), Followed(bob, alice))
    losses = Losses(graph.store, graph.log)
    losses.receive(first)
    losses.receive(first)
    await lose(graph, first)
    note = losses.note

    async def receive_more(number: int) -> None:
        for _ in range(MAX_RECEIVED - 1):
            losses.receive(last)
        await note(number)

    monkeypatch.setattr(losses, "note", receive_more)
    assert await losses.find() == first
    assert await losses.find() == 0


@pytest.mark.parametrize("how", ["deleted", "trimmed"])
async def test_events_that_were_removed_on_purpose_are_not_lost(graph: Graph, how: str) -> None:
    """A deletion removes the publication from the log, and retention removes the oldest events."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, "hello")
    losses = Losses(graph.store, graph.log)
    losses.receive(post)
    if how == "deleted":
        await graph.posts.delete(alice, post)
    else:
        await graph.store.send([("SET", keys.TRIMMED, post)])
    await lose(graph, post)

    assert await losses.find() == 0


async def test_a_repost_of_a_lost_post_is_taken_back(world: RepairWorld) -> None:
    """Otherwise the repost would count as a post of its user, but no page could show it."""
    graph, lost = world.graph, world.dave + 999
    before = await counts_of(graph, [world.bob])
    await append(graph, Reposted(world.bob, lost, world.dave))
    await world.drain()
    assert (await graph.repair().run(correct=True)).found == {defects.REPOST_LEFT: 1}
    await world.drain()
    assert (await graph.repair().run(correct=False)).clean
    assert await counts_of(graph, [world.bob]) == before


async def test_likes_of_a_lost_post_are_removed_and_not_counted_as_unread(world: RepairWorld) -> None:
    """A page of notifications could not show them."""
    graph, lost = world.graph, world.dave + 999
    view = graph.visibility.of(world.dave)
    before = await graph.notifications.unread_count(view)
    await append(graph, Liked(world.bob, lost, world.dave))
    await world.drain()
    assert await graph.notifications.unread_count(view) == before + 1
    assert (await graph.repair().run(correct=True)).found == {defects.LIKE_LEFT: 1}
    assert (await graph.repair().run(correct=False)).clean
    assert await graph.notifications.unread_count(graph.visibility.of(world.dave)) == before


async def test_a_repost_that_only_the_store_has_is_also_what_its_user_reposted(
    world: RepairWorld, store_url: str
) -> None:
    """One repair adds the lost event to the archive and marks the post as reposted by the user."""
    graph = world.graph
    [post] = await posts(graph, world.dave, "reposted")
    await world.drain()
    snapshots = Snapshots(store_url)
    log = snapshots.take("{log}*")
    await graph.reposts.repost(graph.visibility.of(world.bob), world.bob, post)
    assert snapshots.roll_back(log)
    snapshots.close()
    await graph.store.send([("DEL", keys.reposted(world.bob))])
    world.posts[world.star] += await posts(graph, world.star, "later")
    await world.drain()
    await graph.repair().run(correct=True)
    assert (await graph.repair().run(correct=False)).clean
    assert await graph.reposts.reposted_among(world.bob, [post]) == [True]
