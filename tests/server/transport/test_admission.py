"""The limit on running operations, with a clock and probes under the control of the test."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import pytest

from server.transport import admission
from server.transport.admission import (
    ACCEPTED,
    BUCKET_SECONDS,
    BUCKETS,
    BURST,
    BURST_SECONDS,
    CALM_SECONDS,
    CEILING,
    COLD_OPERATIONS,
    COLD_SECONDS,
    FLOOR,
    INITIAL,
    PERMIT,
    PROBE_SECONDS,
    START_PROBES,
    TARGET_DELAY,
    WINDOW_SECONDS,
    Admission,
    Answered,
    Permit,
)

BASE = 0.001  # seconds that a probe takes without a queue
QUEUED = BASE + 3 * TARGET_DELAY


class Asked:
    """A request."""

    def __init__(self, path: str = "", method: str = "POST") -> None:
        self.scope: dict[str, Any] = {"path": path, "method": method, "state": {}}
        self.disconnected = False


@dataclass
class World:
    """An admission control whose probes take a given time; None is a store that does not answer.

    The probes of `others`, which are further primaries, take their own times.
    """

    enabled: bool = True
    time: float = 100.0
    probe_seconds: float | None = BASE
    others: tuple[float | None, ...] = ()
    permits: list[Permit] = field(default_factory=list)
    probes: int = 0

    def __post_init__(self) -> None:
        """Create the admission control, whose clock is `time`."""
        self.admission = Admission(enabled=self.enabled, clock=lambda: self.time)

    async def start(self) -> Self:
        """Measure the store, and serve some operations: a process tolerates more when it is new."""
        await self.admission.start(self.probe)
        self.time += 1
        for _ in range(COLD_OPERATIONS):
            self.enter()
            self.leave()
        return self

    def probe(self, answered: Answered) -> None:
        """Answer a probe as if it had taken its time."""
        self.probes += 1
        primary = self.probes % (1 + len(self.others))
        seconds = (self.probe_seconds, *self.others)[primary]
        if seconds is not None:
            before, self.time = self.time, self.time + seconds
            answered(str(primary))
            self.time = before

    def enter(self) -> bool:
        """Let an operation arrive. Return True if it is admitted."""
        permit = self.admission.enter()
        if permit is not None:
            self.permits.append(permit)
        return permit is not None

    def leave(self) -> None:
        """End an operation."""
        self.permits.pop().release()

    def run(self, count: int) -> int:
        """Let operations arrive at once. Return how many are admitted."""
        return sum(self.enter() for _ in range(count))

    def saturate(self, seconds: float) -> None:
        """Keep as many operations running as are admitted: each that ends is replaced by two that arrive."""
        end = self.time + seconds
        while self.time < end:
            self.time += PROBE_SECONDS / 4
            self.leave()
            self.run(2)

    def relax(self) -> None:
        """Let one operation at a time arrive, in addition to those that run, until the limit has adapted."""
        for _ in range(100):
            self.time += WINDOW_SECONDS
            assert self.enter()
            self.leave()

    def drain(self) -> None:
        """End all operations."""
        while self.permits:
            self.leave()


@pytest.fixture
async def world() -> World:
    """Return an idle process."""
    return await World().start()


def test_operations_below_the_limit_are_admitted(world: World) -> None:
    assert world.run(INITIAL) == INITIAL
    assert world.admission.refused == 0


def test_a_short_burst_may_exceed_the_limit(world: World) -> None:
    assert world.run(BURST * INITIAL - 1) == BURST * INITIAL - 1
    world.time += 0.9 * BURST_SECONDS
    assert world.enter()
    world.time += 0.2 * BURST_SECONDS
    assert not world.enter()


def test_a_burst_is_at_most_twice_the_limit(world: World) -> None:
    """Those that are admitted must be answered in time."""
    assert world.run(5 * INITIAL) == BURST * INITIAL
    assert world.admission.refused == 3 * INITIAL


def test_operations_are_refused_while_the_limit_stays_exceeded(world: World) -> None:
    """They are refused until there is room again. Another burst needs a while without refusals."""
    world.probe_seconds = QUEUED
    world.run(2 * INITIAL - 1)
    world.time += 1.1 * BURST_SECONDS
    assert not world.enter()
    world.drain()
    room = int(world.admission.limit)
    assert room <= world.run(2 * INITIAL) <= room + 1
    world.drain()
    world.time += 1.1 * CALM_SECONDS
    assert world.run(2 * INITIAL) > room + 1


async def test_a_new_process_tolerates_a_longer_burst() -> None:
    """Its first operations fill caches and open connections."""
    world = World()
    await world.admission.start(world.probe)
    world.time += 1
    world.probe_seconds = QUEUED
    world.run(INITIAL + 1)
    world.time += 0.9 * COLD_SECONDS
    assert world.enter()
    world.time += 0.2 * COLD_SECONDS
    assert not world.enter()


def test_the_limit_shrinks_while_there_is_a_standing_queue(world: World) -> None:
    """It shrinks down to the floor, which keeps the processor busy."""
    world.probe_seconds = QUEUED
    world.run(INITIAL)
    world.saturate(20 * WINDOW_SECONDS)
    assert world.admission.limit == FLOOR
    assert world.admission.running == ACCEPTED
    assert world.admission.refused > 0


def test_few_clients_are_never_refused(world: World) -> None:
    """The length of the queue does not matter: a client that always has a request is not an overload."""
    world.probe_seconds = QUEUED
    world.run(ACCEPTED)
    for _ in range(1000):
        world.time += PROBE_SECONDS
        world.leave()
        assert world.enter()
    assert world.admission.limit == FLOOR


def test_requests_beyond_the_limit_start_in_order(world: World) -> None:
    """They start as others end, unless their clients are gone. Other paths and methods are not limited."""
    world.admission.limit = 2.0
    started: list[str] = []
    requests = {name: Asked() for name in "abcde"}
    for name, request in requests.items():
        assert world.admission.admits(request, partial(started.append, name))
    assert world.admission.admits(Asked(path="/health/live"), partial(started.append, "health"))
    assert world.admission.admits(Asked(method="OPTIONS"), partial(started.append, "options"))
    assert started == ["a", "b", "health", "options"]
    requests["c"].disconnected = True
    requests["a"].scope["state"][PERMIT].release()
    assert started[4:] == ["d"]
    assert (world.admission.running, world.admission.accepted) == (2, 3)


def test_a_waiting_request_starts_in_its_own_context(world: World) -> None:
    """It does not use the context of the request that made room."""
    world.admission.limit = 1.0
    current = ContextVar("current", default="")
    started: list[str] = []
    requests = {name: Asked() for name in "ab"}
    for name, request in requests.items():
        current.set(name)
        world.admission.admits(request, lambda: started.append(current.get()))
    current.set("other")
    requests["a"].scope["state"][PERMIT].release()
    assert started == ["a", "b"]


def test_waiting_requests_start_when_the_limit_grows(world: World) -> None:
    world.admission.limit = 1.0
    started: list[int] = []
    for nth in range(3):
        world.admission.admits(Asked(), partial(started.append, nth))
    world.admission.limit = 10.0
    world.admission.admits(Asked(), partial(started.append, 3))
    assert started == [0, 1, 2, 3]


def test_a_single_slow_probe_changes_nothing(world: World) -> None:
    """A pause of the process causes one, for example: the queue is gone within the window."""
    world.run(INITIAL - 1)
    world.probe_seconds = 100 * BASE
    world.time += PROBE_SECONDS
    world.enter()
    world.probe_seconds = BASE
    world.time += PROBE_SECONDS
    world.enter()
    world.time += WINDOW_SECONDS
    world.enter()
    assert world.admission.limit >= INITIAL


async def test_the_limit_grows_when_operations_wait_for_something_else() -> None:
    """They may wait for the archive, a password hash or a silent shard, as long as the process keeps up."""
    world = await World(others=(None,)).start()
    world.run(INITIAL)
    while world.admission.running < CEILING:
        world.time += 0.5 * WINDOW_SECONDS
        assert world.run(8) == 8
    assert world.admission.refused == 0


def test_the_limit_does_not_grow_while_no_probe_is_answered(world: World) -> None:
    """Operations then wait for the store, and more of them would wait longer."""
    world.probe_seconds = None
    world.run(INITIAL)
    world.saturate(20 * WINDOW_SECONDS)
    assert world.admission.limit == INITIAL
    assert world.admission.refused > 0


async def test_a_single_slow_probe_of_many_primaries_changes_nothing() -> None:
    """A window is long enough for several probes of each."""
    world = await World(others=(BASE,) * 19).start()
    world.run(INITIAL - 1)
    for nth in range(200):
        world.time += PROBE_SECONDS
        world.probe_seconds = 100 * BASE if nth in range(100, 120) else BASE
        world.enter()
        world.leave()
        assert world.admission.limit >= INITIAL


def test_the_limit_shrinks_to_what_runs(world: World) -> None:
    """It shrinks at once: it grew while operations waited for something else, and that may be over."""
    world.admission.limit = float(CEILING)
    world.probe_seconds = QUEUED
    world.run(INITIAL)
    world.time += WINDOW_SECONDS
    world.enter()
    world.leave()
    world.time += WINDOW_SECONDS
    world.enter()
    assert world.admission.limit <= INITIAL + 1


def test_the_limit_has_a_ceiling(world: World) -> None:
    world.run(INITIAL)
    world.saturate(100 * WINDOW_SECONDS)
    assert world.admission.limit == CEILING


def test_operations_that_arrive_together_share_a_probe(world: World) -> None:
    probes = world.probes
    world.run(INITIAL)
    assert world.probes == probes + 1


async def test_a_queue_at_one_primary_is_a_queue() -> None:
    """The distance of the primaries from this process does not matter."""
    world = await World(others=(20 * TARGET_DELAY,)).start()
    world.run(INITIAL)
    world.saturate(20 * WINDOW_SECONDS)
    assert world.admission.limit > INITIAL
    world.probe_seconds = QUEUED
    world.saturate(40 * WINDOW_SECONDS)
    assert world.admission.limit == FLOOR


async def test_a_store_that_moved_away_is_no_queue_for_long(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten minutes, the limit knows the new distance. Probes continue while the process is idle."""
    world.probe_seconds = QUEUED
    await idle(world, monkeypatch)
    world.run(INITIAL)
    world.saturate(10 * WINDOW_SECONDS)
    assert world.admission.limit > INITIAL


async def test_an_idle_process_knows_the_distance_of_the_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue at the end of a long idle time is a queue."""
    await idle(world, monkeypatch)
    world.probe_seconds = QUEUED
    world.run(INITIAL)
    world.saturate(20 * WINDOW_SECONDS)
    assert world.admission.limit == FLOOR


async def idle(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait eleven minutes."""
    monkeypatch.setattr(admission, "IDLE_SECONDS", 0.0)
    async with world.admission.measuring(world.probe):
        for _ in range(BUCKETS + 1):
            world.time += BUCKET_SECONDS
            for _ in range(3):
                await asyncio.sleep(0)


async def test_the_queue_is_what_a_probe_takes_longer_than_the_shortest() -> None:
    """A distant store is not an overloaded one."""
    world = await World(probe_seconds=20 * TARGET_DELAY).start()
    world.run(INITIAL)
    world.saturate(10 * WINDOW_SECONDS)
    assert world.admission.limit > INITIAL


def test_few_operations_are_neither_limited_nor_measured(world: World) -> None:
    """This holds whatever the store does, and the store is not read."""
    world.admission.limit = 0.0
    assert world.run(FLOOR) == FLOOR
    assert world.probes == START_PROBES


def test_the_limit_recovers_when_it_is_not_reached(world: World) -> None:
    world.admission.limit = float(FLOOR + 10)
    world.run(FLOOR)
    world.relax()
    assert round(world.admission.limit) == INITIAL


def test_a_limit_that_is_not_reached_any_more_returns(world: World) -> None:
    """The flood for which it grew does not count later."""
    world.run(INITIAL)
    world.saturate(10 * WINDOW_SECONDS)
    assert world.admission.limit > 2 * INITIAL
    world.drain()
    world.run(FLOOR)
    world.relax()
    assert round(world.admission.limit) == INITIAL


def test_a_permit_is_given_back_once(world: World) -> None:
    permit = world.admission.enter()
    assert permit is not None
    permit.release()
    permit.release()
    assert world.admission.running == 0
    assert permit.resume()
    assert world.admission.running == 1


async def test_a_process_starts_without_the_store() -> None:
    """It measures the store later."""
    world = await World(probe_seconds=None).start()
    world.probe_seconds = BASE
    assert world.run(INITIAL) == INITIAL


async def test_a_disabled_limit_refuses_nothing() -> None:
    """The results of probes do not matter."""
    world = await World(enabled=False).start()
    world.probe_seconds = QUEUED
    assert world.run(3 * CEILING) == 3 * CEILING
    world.saturate(10 * WINDOW_SECONDS)
    assert world.admission.refused == 0
    assert not world.admission.is_full()
