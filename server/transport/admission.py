"""Admission control: an overloaded process refuses some operations immediately, so that it answers the others in time.

Under overload, operations wait in the event loop of the process and in the store. Probes measure both waits together:
each probe reads from one of the store's primaries, which take turns, and passes through the same queues as the reads of
operations. The queueing delay of a probe is its duration minus the duration of the shortest probe to the same primary
in the last ten minutes. If, for any primary, the smallest delay in a window exceeds TARGET_DELAY, there is a standing
queue, and the limit on concurrent operations shrinks. The limit grows while operations reach it without a standing
queue, because then they wait for something else, such as the archive or a password hash. The limit does not change
while no probe is answered.
"""

import asyncio
import contextlib
import math
import random
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, TypeAlias

from graph.tasks import end

PERMIT_OF_TASK: ContextVar["Permit | None"] = ContextVar("permit", default=None)
"""The permit of the operation that the current task executes. The permit is released while the operation waits for its
turn among the operations of its user or network."""

ADMISSION = "admission"  # the key in the lifespan state, which every connection receives
PERMIT = "permit"  # the key in the state of an admitted request
COMPLETE = "complete"  # the key in the state of a request whose body has arrived
METHODS = frozenset({"GET", "POST"})  # other methods cost little, and a response to HEAD has no body

FLOOR = 12
"""The minimum limit: enough to keep a core busy while some operations wait for the store.

While fewer operations are accepted, none is refused."""
ACCEPTED = 32
"""The number of operations that are accepted even if the limit is lower. Operations above the limit wait in order."""
INITIAL = 64
CEILING = 1_000
TARGET_DELAY = 0.0015
PROBE_SECONDS = 0.01
IDLE_SECONDS = 1.0
"""Time between the probes of an idle process, which keep the shortest known duration up to date."""
PROBES_PER_WINDOW = 3
"""The minimum number of probes to each primary in a window, so that one slow probe does not count as a queue."""
BUCKET_SECONDS = 60.0
BUCKETS = 10
START_PROBES = 3
START_SECONDS = 0.5
WINDOW_SECONDS = 0.1
BURST = 2
"""The factor by which the number of accepted operations may rise during a burst."""
BURST_SECONDS = 0.1
"""The maximum length of a burst. Another burst is possible once no operation has been refused for CALM_SECONDS."""
COLD_SECONDS = 1.0
"""The maximum length of a burst until COLD_OPERATIONS have finished: caches are still empty, and connections new."""
COLD_OPERATIONS = 1_000
CALM_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""The longest time that an operation on an open WebSocket waits for a permit. Later messages of its client wait too."""
RECHECK_SECONDS = 0.1
RETRY_SECONDS = 3
"""The maximum of `Retry-After`. Refused clients get 1 to 3 seconds in turn, so that not all retry at the same time."""

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
Answered: TypeAlias = Callable[[str], None]
Start: TypeAlias = Callable[[], object]
Probe: TypeAlias = Callable[[Answered], None]
"""Starts a read from a primary. Calls the given function with the primary's name when the reply arrives, if it does."""


class Request(Protocol):
    """The parts of uvicorn's request that admission control uses."""

    scope: Any
    disconnected: bool


def no_headers(_origin: bytes | None) -> Headers:
    """Return no headers."""
    return ()


class Permit:
    """Permission to run one operation, held from its start until its result (for a subscription, its first result)."""

    __slots__ = ("_admission", "_held")

    def __init__(self, admission: "Admission") -> None:
        self._admission = admission
        self._held = True

    def resume(self) -> bool:
        """Acquire the permit again after `release`. Return False if the operation must be refused."""
        self._held = self._admission.enter() is not None
        return self._held

    def release(self) -> None:
        """Give the permit back. Later calls have no effect."""
        if self._held:
            self._held = False
            self._admission.leave()


class Baseline:
    """The duration of the shortest probe to one primary in the last ten minutes, in seconds.

    Older probes are dropped, because the latency may have changed, as after a failover.
    """

    def __init__(self) -> None:
        self._minima: deque[tuple[int, float]] = deque()
        self.seconds = math.inf

    def add(self, now: float, seconds: float) -> None:
        """Record the duration of a probe. O(1)."""
        bucket, minima = int(now // BUCKET_SECONDS), self._minima
        while minima and minima[0][0] <= bucket - BUCKETS:
            minima.popleft()
        if minima and minima[-1][0] == bucket:
            seconds = min(seconds, minima.pop()[1])
        minima.append((bucket, seconds))
        self.seconds = min(least for _, least in minima)


class Admission:
    """Limits the number of concurrent operations in one process.

    `running` is the number of running operations, `limit` the current limit, and `refused` counts refusals. Accepted
    requests above the limit wait, and start in order. `path` is the path of the endpoint; requests for other paths are
    not limited. `headers` returns the CORS headers of a refusal, given the request's `Origin` header.
    """

    _probe: Probe | None = None

    def __init__(
        self,
        path: str = "",
        headers: Callable[[bytes | None], Headers] = no_headers,
        *,
        enabled: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.headers = headers
        self.limit = float(INITIAL if enabled else math.inf)
        self.running = 0
        self._waiting: deque[tuple[Request, Start, Context]] = deque()
        self.refused = 0
        self._floor = FLOOR if enabled else math.inf
        self._clock = clock
        self._full_at: float | None = None
        self._refused_at = -math.inf
        self._finished = self._peak = 0
        self._next_probe = self._window_end = -math.inf
        self._baselines: defaultdict[str, Baseline] = defaultdict(Baseline)
        self._shortest: dict[str, float] = {}

    @staticmethod
    def of(state: dict[str, Any]) -> "Admission":
        """Return the admission control in an application's state, or a new one without a limit if there is none."""
        found = state.get(ADMISSION)
        return found if isinstance(found, Admission) else Admission(enabled=False)

    async def start(self, probe: Probe) -> None:
        """Set the probe, and measure the store's latency before operations can queue.

        Takes three round trips, or half a second if the store does not answer.
        """
        self._probe = probe
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                for _ in range(START_PROBES):  # the first one opens the connection
                    answered = asyncio.Event()
                    self._send_probe(self._clock(), answered.set)
                    await answered.wait()

    @contextlib.asynccontextmanager
    async def measuring(self, probe: Probe) -> AsyncIterator[None]:
        """Call `start`, then send a probe every second during the `async with` block.

        Thus even an idle process knows the store's latency.
        """
        await self.start(probe)
        sending = asyncio.get_running_loop().create_task(self._send_probes())
        try:
            yield
        finally:
            await end([sending])

    async def _send_probes(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self._send_probe(self._clock())

    @property
    def retry_after(self) -> int:
        """The number of seconds after which the client of the last refused request should try again."""
        return 1 + self.refused % RETRY_SECONDS

    def admits(self, request: Request, start: Start) -> bool:
        """Start a request now, or later when there is room. Return False if it must be refused.

        When an operation starts, its permit is stored in the state of its request. A request whose client disconnects
        while the request waits is not started.
        """
        if request.scope["path"] != self.path or request.scope["method"] not in METHODS:
            start()
            return True
        if self.is_full():
            return False
        if self._waiting or self.running >= self.limit or request.disconnected:
            self._waiting.append((request, start, copy_context()))
            self._start_waiting()
        else:
            self.running += 1
            request.scope["state"][PERMIT] = Permit(self)
            start()
        return True

    def _start_waiting(self) -> None:
        while self._waiting and self.running < self.limit:
            request, start, context = self._waiting.popleft()
            if not request.disconnected:
                self.running += 1
                request.scope["state"][PERMIT] = Permit(self)
                context.run(start)  # in its own context, not in that of the request that made room

    def enter(self) -> Permit | None:
        """Return a permit for an operation that cannot wait, even above the limit; None if it must be refused. O(1)."""
        if self.is_full():
            return None
        self.running += 1
        return Permit(self)

    async def wait(self) -> Permit | None:
        """Return a permit for an operation that may wait up to PATIENCE_SECONDS, or None if it must be refused."""
        end = self._clock() + PATIENCE_SECONDS
        while self.accepted >= self._room and self._clock() < end:  # noqa: ASYNC110 - seldom
            await asyncio.sleep(random.uniform(0.5, 1.5) * RECHECK_SECONDS)  # noqa: S311 - not a secret
        return self.enter()

    def leave(self) -> None:
        """Record that an operation has ended or released its permit, and start waiting requests."""
        self.running -= 1
        self._finished += 1
        self._start_waiting()

    @property
    def accepted(self) -> int:
        """The number of operations that run or wait."""
        return self.running + len(self._waiting)

    @property
    def _room(self) -> float:
        return max(ACCEPTED, self.limit)

    def is_full(self) -> bool:
        """Return True, and count a refusal, if an operation that arrives now must be refused."""
        accepted = self.accepted
        if accepted < self._floor:
            return False
        now = self._clock()
        self._measure(now)
        if accepted > self._peak:
            self._peak = accepted
        if accepted < self._room:
            self._full_at = None
            return False
        if self._tolerates(now):
            return False
        self._refused_at = now
        self.refused += 1
        return True

    def _tolerates(self, now: float) -> bool:
        """Return True if another operation may be accepted, as part of a short burst."""
        if self._full_at is None:
            self._full_at = now
        patience = BURST_SECONDS if self._finished >= COLD_OPERATIONS else COLD_SECONDS
        is_calm = now - self._refused_at > CALM_SECONDS
        return is_calm and now - self._full_at < patience and self.accepted < BURST * self._room

    def _measure(self, now: float) -> None:
        """Start the next probe, and adapt the limit at the end of a window."""
        if now >= self._window_end:
            self._adapt()
            self._window_end = now + max(WINDOW_SECONDS, PROBES_PER_WINDOW * PROBE_SECONDS * len(self._shortest))
            self._shortest = {}
            self._peak = 0
        if now >= self._next_probe:
            self._send_probe(now)

    def _send_probe(self, now: float, answered: Callable[[], object] = lambda: None) -> None:
        def record(primary: str) -> None:
            seconds = self._clock() - now
            self._baselines[primary].add(now, seconds)
            self._shortest[primary] = min(self._shortest.get(primary, math.inf), seconds)
            answered()

        self._next_probe = now + PROBE_SECONDS
        if self._probe is not None:
            self._probe(record)

    def _adapt(self) -> None:
        """Adapt the limit to the probes that were answered in the window, if any.

        A limit that was not reached moves towards INITIAL.
        """
        if not self._shortest:
            return
        delay = max(seconds - self._baselines[primary].seconds for primary, seconds in self._shortest.items())
        if delay > TARGET_DELAY:
            self.limit = max(FLOOR, min(self.limit, self._peak) * (1 + max(TARGET_DELAY / delay, 0.5)) / 2)
        elif self._peak >= self.limit:
            self.limit = min(CEILING, self.limit * (1.25 - 0.25 * delay / TARGET_DELAY))
        else:
            self.limit += (INITIAL - self.limit) / 10
