"""Metrics of subscriptions: how many have started, and how long events take from commit to transport."""

import asyncio
import time
from bisect import bisect_left
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram

from graph.model import number_at, seconds_of

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Deliveries:
    """The metrics `fanline_streams_started_total` and `fanline_delivery_seconds` of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._started = Counter("fanline_streams_started", "Subscriptions that have started.", registry=registry)
        self._seconds = Histogram(
            "fanline_delivery_seconds",
            "Time from the commit of an event until it is passed to the transport of a live subscription.",
            registry=registry,
            buckets=BUCKETS,
        )
        self._counts = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0
        self._is_scheduled = False

    def start(self) -> int:
        """Count a new subscription. Return its first live event number; events with lower numbers are replayed."""
        self._started.inc()
        return number_at(datetime.now(UTC))

    def observe(self, number: int, live_from: int) -> None:
        """Record a delivered event, unless it was replayed. O(1).

        A negative time counts as 0, because the clocks of processes differ. The deliveries of one event-loop iteration
        are added to the histogram in one step, because there may be thousands.
        """
        if number < live_from:
            return
        seconds = max(time.time() - seconds_of(number), 0.0)
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self._sum += seconds
        if not self._is_scheduled:
            try:
                asyncio.get_running_loop().call_soon(self._add)
                self._is_scheduled = True
            except RuntimeError:
                self._add()  # there is no event loop

    def _add(self) -> None:
        """Add the counted deliveries to the histogram, whose `observe` takes only one value at a time."""
        for bucket, count in zip(self._seconds._buckets, self._counts, strict=True):
            if count:
                bucket.inc(count)
        self._seconds._sum.inc(self._sum)
        self._counts, self._sum, self._is_scheduled = [0] * len(self._counts), 0.0, False
