"""Pacing: background fan-out slows down while the store answers slowly, so that requests take precedence."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress

from graph import keys
from graph.errors import StoreUnavailable
from graph.store.store import Store

SLOWDOWN = 3.0
"""The store is busy if a read takes more than this many times as long as the fastest one."""
NOISE_SECONDS = 0.002
"""The store is not busy if a read takes at most this much longer than the fastest one."""
STEP_SECONDS = 0.001
LONGEST_PAUSE = 0.006
"""The longest pause, about four times as long as a chunk takes."""
PROBE_SECONDS = 0.25
TURN_SECONDS = 0.1
"""How long a chunk waits for the previous chunk, which may be waiting for a shard that does not answer."""
FOLLOWERS_PER_CHUNK = 1000
SMALL_CHUNK = 10
"""Chunks with fewer followers are not paced: the read that measures the store would cost as much as such a chunk."""
PACED_CHUNK = 100
"""The number of followers in a chunk of background fan-out. A request waits less than a millisecond for a chunk."""
WINDOW_SECONDS = 30.0


class Pace:
    """The pace of a fan-out, by default without pauses. Fan-out calls `before` and `after` around every chunk.

    `chunk` is the number of followers in a chunk. `meets_outage` is True while some shard does not answer.
    """

    chunk = FOLLOWERS_PER_CHUNK
    meets_outage = False

    async def before(self, viewers: Sequence[int]) -> None:
        """Wait until the next chunk may be sent to these viewers."""

    def after(self, viewers: Sequence[int]) -> None:
        """Record that a chunk was delivered to these viewers."""


UNPACED = Pace()


class Pacer:
    """Makes the chunks of all fan-outs of a worker wait for one another, with pauses in between.

    Before each chunk it times a cheap read from the shard of one of the viewers. If the read takes `SLOWDOWN` times as
    long as the fastest one in the last minute, the pause grows by a millisecond; otherwise it is halved. `pause` is the
    current pause in seconds for a chunk of `PACED_CHUNK` followers, at most `LONGEST_PAUSE`, so that fan-out never
    stops. Smaller chunks pause for less, and very small ones do not wait at all.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._best = self._best_before = float("inf")
        self._window_ends = 0.0
        self._gate = asyncio.Lock()
        self._current = asyncio.Event()
        self._current.set()
        self.pause = 0.0

    async def wait(self, viewers: Sequence[int]) -> None:
        """Wait for the previous chunk, then for as long as the load of the store requires.

        One round trip, of at most a quarter of a second; none for a very small chunk.
        """
        if len(viewers) < SMALL_CHUNK:
            return
        async with self._gate:
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_SECONDS):
                    await self._current.wait()
            if self.pause:
                await asyncio.sleep(self.pause * min(1, len(viewers) / PACED_CHUNK))
            started = time.perf_counter()
            with suppress(StoreUnavailable, TimeoutError):  # if a shard is down, the chunk itself will fail
                async with asyncio.timeout(PROBE_SECONDS):
                    await self._store.read([("EXISTS", keys.home(random.choice(viewers)))])  # noqa: S311 - a sample
                self.note(time.perf_counter() - started)
            self._current.clear()

    def done(self, viewers: Sequence[int]) -> None:
        """Record that a chunk was delivered to these viewers."""
        if len(viewers) >= SMALL_CHUNK:
            self._current.set()

    def note(self, seconds: float) -> None:
        """Adapt the pause to the duration of a read."""
        now = time.monotonic()
        if now >= self._window_ends:
            self._best_before, self._best = self._best, seconds
            self._window_ends = now + WINDOW_SECONDS
        self._best = min(self._best, seconds)
        best = min(self._best, self._best_before)
        if seconds > max(SLOWDOWN * best, best + NOISE_SECONDS):
            self.pause = min(LONGEST_PAUSE, self.pause + STEP_SECONDS)
        else:
            self.pause = self.pause / 2 if self.pause > STEP_SECONDS / 2 else 0.0
