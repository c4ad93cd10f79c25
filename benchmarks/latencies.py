"""Latencies: the durations of one kind of request, with their percentiles."""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Latencies:
    """Durations of one kind of request in seconds, and the CPU time that this process spent on the requests."""

    durations: list[float] = field(default_factory=list)
    cpu: float = 0.0

    async def time(self, work: Callable[[], Awaitable[object]]) -> None:
        """Await some work and record its duration."""
        cpu, start = time.process_time(), time.perf_counter()
        await work()
        self.durations.append(time.perf_counter() - start)
        self.cpu += time.process_time() - cpu

    @property
    def count(self) -> int:
        """The number of durations."""
        return len(self.durations)

    def percentile(self, share: float) -> float:
        """Return the percentile for a share of the requests, in ms (nearest rank)."""
        ordered = sorted(self.durations)
        return 1000 * ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    @property
    def p50(self) -> float:
        """The median in ms."""
        return self.percentile(0.5)

    @property
    def p99(self) -> float:
        """The 99th percentile in ms."""
        return self.percentile(0.99)

    @property
    def worst(self) -> float:
        """The longest duration in ms."""
        return self.percentile(1)

    @property
    def cpu_ms(self) -> float:
        """CPU time of this process per request, in ms."""
        return 1000 * self.cpu / len(self.durations)
