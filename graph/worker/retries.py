"""Retries of entries after an outage, with exponential backoff, while the worker continues with other entries."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from graph.errors import StoreUnavailable
from graph.home.pacing import PACED_CHUNK, Pace, Pacer
from graph.tasks import end
from graph.worker.consumer import Consumer, EntryLease

V = TypeVar("V")
Run: TypeAlias = Callable[[Pace], Awaitable[None]]
Acknowledge: TypeAlias = Callable[[Sequence[str]], Awaitable[object]]

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 10.0
READ_AGAIN_SECONDS = 1.0
GROUPS = 8
"""The maximum number of groups of entries that are retried concurrently."""

logger = logging.getLogger("fanline.worker")


@dataclass(frozen=True, slots=True)
class Work:
    """The work for one entry. `run` may be called again after an outage."""

    entry: str
    run: Run


class Backoff:
    """Delays before retries: doubled from 0.1 seconds up to `longest`, each randomly shortened by up to half."""

    def __init__(self, longest: float = LONGEST_SECONDS) -> None:
        self._longest = longest
        self._next = FIRST_SECONDS

    def next(self) -> float:
        """Return the next delay in seconds."""
        delay = self._next * random.uniform(0.5, 1)  # noqa: S311 - jitter
        self._next = min(self._longest, 2 * self._next)
        return delay

    async def sleep(self) -> None:
        """Wait for the next delay."""
        await asyncio.sleep(self.next())


class LeasePace(Pace):
    """The pace of fan-outs under a lease: every delivered chunk is progress."""

    chunk = PACED_CHUNK

    def __init__(self, pacer: Pacer, lease: EntryLease, *, meets_outage: bool = False) -> None:
        self._pacer = pacer
        self._lease = lease
        self.meets_outage = meets_outage

    async def before(self, viewers: Sequence[int]) -> None:
        """Wait until the load of the store permits the next chunk."""
        await self._pacer.wait(viewers)

    def after(self, viewers: Sequence[int]) -> None:
        """Record the progress."""
        self._pacer.done(viewers)
        self._lease.progress()


class LimitedPace(Pace):
    """A pace for one fan-out, whose waits do not count against a time limit."""

    def __init__(self, pace: Pace, limit: asyncio.Timeout) -> None:
        self._pace = pace
        self._limit = limit
        self.chunk = pace.chunk
        self.meets_outage = pace.meets_outage

    async def before(self, viewers: Sequence[int]) -> None:
        """Wait until the next chunk may be sent to these viewers."""
        ends = self._limit.when()
        if ends is None or self._limit.expired():
            await self._pace.before(viewers)
            return
        loop = asyncio.get_running_loop()
        left = ends - loop.time()
        self._limit.reschedule(None)
        await self._pace.before(viewers)
        self._limit.reschedule(loop.time() + left)

    def after(self, viewers: Sequence[int]) -> None:
        """Record the progress."""
        self._pace.after(viewers)


@dataclass(eq=False, slots=True)
class RetryGroup:
    """Entries that are retried together. `waiting` holds the work items that the current attempt does not include."""

    waiting: list[Work]
    lease: EntryLease | None = None
    is_open: bool = True

    def __len__(self) -> int:
        return len(self.lease.entries if self.lease else self.waiting)

    def join(self, works: Sequence[Work]) -> None:
        """Add work items to the group, from its next attempt on."""
        self.waiting += works
        if self.lease:
            self.lease.entries += [work.entry for work in works]


class Retries:
    """The entries of one consumer that failed because of an outage.

    Entries that fail together are retried together, in the background. If there are `GROUPS` groups, entries join the
    newest one, so that no entry waits for its turn. If no entry of a group succeeds for three lease durations, the
    group is given up: another worker may reach a shard that this one cannot. The consumer takes no other entries while
    `limit` entries are being retried.
    """

    def __init__(self, consumer: Consumer, pacer: Pacer, acknowledge: Acknowledge, limit: int) -> None:
        self._consumer = consumer
        self._pacer = pacer
        self._acknowledge = acknowledge
        self._limit = limit
        self._groups: dict[asyncio.Task[None], RetryGroup] = {}

    def __len__(self) -> int:
        return sum(len(group) for group in self._groups.values())

    async def room(self) -> None:
        """Wait until the consumer may take further entries."""
        while self.is_full:  # noqa: ASYNC110 - seldom
            await asyncio.sleep(FIRST_SECONDS)

    @property
    def is_full(self) -> bool:
        """True if the consumer must not take further entries."""
        return len(self) >= self._limit

    async def add(self, works: Sequence[Work]) -> None:
        """Retry these entries in the background, and do not count their delivery. Two round trips if there are any."""
        if not works:
            return
        held = await retry_outages(partial(self._consumer.uncount, [work.entry for work in works]))
        works = [work for work in works if work.entry in held]
        open_groups = [group for group in self._groups.values() if group.is_open]
        if len(open_groups) >= GROUPS:
            open_groups[-1].join(works)
        elif works:
            group = RetryGroup(list(works))
            task = asyncio.create_task(self._retry(group))
            self._groups[task] = group
            task.add_done_callback(self._finish)

    def _finish(self, task: "asyncio.Task[None]") -> None:
        del self._groups[task]
        if not task.cancelled() and (error := task.exception()):
            logger.error("Entries could not be retried; their leases will expire", exc_info=error)

    async def _retry(self, group: RetryGroup) -> None:
        backoff = Backoff()
        async with self._consumer.lease([work.entry for work in group.waiting], is_counted=False) as lease:
            group.lease, pace = lease, LeasePace(self._pacer, lease, meets_outage=True)
            while group.waiting:
                await backoff.sleep()
                tried, group.waiting = group.waiting, []
                done, again = await run_each(tried, pace)
                group.waiting = again + group.waiting
                lease.entries = [work.entry for work in group.waiting]
                if done:
                    lease.progress()
                    await self._acknowledge(done)
                if lease.is_stale:
                    break
            group.is_open = False
            if group.waiting:
                logger.warning(
                    "%d entries have been left to other workers: the store does not answer", len(group.waiting)
                )
                await retry_outages(partial(self._consumer.give_up, lease.entries))

    async def close(self) -> None:
        """Stop retrying, and release the entries."""
        await end(list(self._groups))


async def run_each(works: Sequence[Work], pace: Pace, seconds: float | None = None) -> tuple[list[str], list[Work]]:
    """Run work items concurrently. Return the entries that are done, and the items that an outage interrupted.

    An item that takes longer than `seconds` is cancelled, which counts as an outage. Other failures are logged; their
    entries are neither done nor retried, and the failed delivery counts.
    """
    outcomes = await asyncio.gather(*(run_one(work, pace, seconds) for work in works), return_exceptions=True)
    done, interrupted = [], []
    for work, outcome in zip(works, outcomes, strict=True):
        if outcome is None:
            done.append(work.entry)
        elif isinstance(outcome, StoreUnavailable | TimeoutError):
            interrupted.append(work)
        elif isinstance(outcome, Exception):
            logger.error("Entry %s failed", work.entry, exc_info=outcome)
        else:
            raise outcome
    return done, interrupted


async def run_one(work: Work, pace: Pace, seconds: float | None) -> None:
    """Run a work item within a time limit, which excludes waits for the pace. Raises TimeoutError."""
    async with asyncio.timeout(seconds) as limit:
        await work.run(LimitedPace(pace, limit))


async def retry_outages(work: Callable[[], Awaitable[V]]) -> V:
    """Return the result of `work`, retrying it while the store is unavailable."""
    backoff = Backoff(READ_AGAIN_SECONDS)
    while True:
        try:
            return await work()
        except StoreUnavailable as outage:
            logger.warning("The store is unavailable; the worker will retry: %s", outage.reason)
            await backoff.sleep()
