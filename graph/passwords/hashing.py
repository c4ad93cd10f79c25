"""Password hashing: argon2id in two threads, with a bounded queue that is fair among networks.

A hash takes about 50 ms of CPU time and 64 MB, and every log-in requires one. So the number of running and waiting
hashes is limited, and networks take turns.
"""

import asyncio
import base64
import contextlib
import os
import secrets
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from graph.errors import Overloaded
from graph.passwords.opaque import opaque, spellings

T = TypeVar("T")
Waiter: TypeAlias = "asyncio.Future[None]"

CONCURRENT_HASHES = 2
MAX_WAITING = 20
TOO_MANY = "Too many passwords are being checked. Try again in a moment."
NICE = 10  # added to the niceness of the hashing threads
MAX_NICE = 19


class Hashing:
    """Hashes and verifies passwords in threads, `CONCURRENT_HASHES` at once.

    `hashes` is the number of hashes started. Tests use it to check that unknown logins cost as much as known ones.
    """

    def __init__(self, hasher: PasswordHasher) -> None:
        self.hashes = 0
        self._hasher = hasher
        self._decoy = decoy_of(hasher)
        self._queue: FairQueue | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def hash(self, password: str, network: str) -> str:
        """Return the hash of a new password. Raises Overloaded."""
        await self.turn(network)
        return await self._run(partial(self._hasher.hash, opaque(password)))

    async def turn(self, network: str) -> None:
        """Wait for this network's turn. The caller must call `verify` immediately afterwards. Raises Overloaded."""
        await self._queue_of_loop().wait(network)

    async def verify(self, secret: str | None, password: str) -> bool:
        """Return True if the password matches the secret. Without a secret, take the same time and return False.

        A password that can be written in several ways takes up to three times as long if it is wrong.
        """
        return await self._run(partial(self._matches, secret or self._decoy, password)) and bool(secret)

    async def matches(self, secret: str | None, password: str, network: str) -> bool:
        """Wait for a turn, and return True if the password matches the secret. Raises Overloaded."""
        await self.turn(network)
        return await self.verify(secret, password)

    def check_room(self, network: str) -> None:
        """Raise Overloaded if the queue has no room for a hash of this network."""
        self._queue_of_loop().check_room(network)

    def close(self) -> None:
        """End the threads once the running hashes are done."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def _queue_of_loop(self) -> "FairQueue":
        """Return the queue of the running event loop, which replaces the queue of an earlier loop that has ended."""
        loop = asyncio.get_running_loop()
        if self._queue is None or loop is not self._loop:
            self._queue, self._loop = FairQueue(CONCURRENT_HASHES, MAX_WAITING), loop
        return self._queue

    async def _run(self, work: Callable[[], T]) -> T:
        queue = self._queue_of_loop()
        self.hashes += 1
        if self._threads is None:
            self._threads = ThreadPoolExecutor(CONCURRENT_HASHES, "hashing", _lower_priority)
        job = self._threads.submit(work)
        # A thread cannot be cancelled, so the turn ends with the hash, even if the caller was cancelled before.
        job.add_done_callback(partial(_end_turn, asyncio.get_running_loop(), queue))
        return await asyncio.wrap_future(job)

    def _matches(self, secret: str, password: str) -> bool:
        for spelling in spellings(password):
            with contextlib.suppress(VerificationError, InvalidHashError):
                return self._hasher.verify(secret, spelling)
        return False


def _lower_priority() -> None:
    """Give the event loop's thread precedence over this thread, on systems with thread priorities."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(MAX_NICE, os.getpriority(os.PRIO_PROCESS, thread) + NICE))


class FairQueue:
    """A queue of one event loop: at most `most_running` jobs run and `most_waiting` wait.

    Networks take turns, however many jobs each has. When the queue is full, a new job replaces the newest job of the
    network with the most waiting jobs, if that network has at least two more of them than the new job's own network.
    """

    def __init__(self, most_running: int, most_waiting: int) -> None:
        self._most_running = most_running
        self._most_waiting = most_waiting
        self._running = 0
        self._waiting: OrderedDict[str, deque[Waiter]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return sum(map(len, self._waiting.values()))

    def check_room(self, network: str) -> None:
        """Raise Overloaded if a job of this network could neither run nor wait."""
        if self._running >= self._most_running and self.waiting >= self._most_waiting:
            longest = max(self._waiting.values(), key=len)
            if len(longest) <= len(self._waiting.get(network, ())) + 1:
                raise Overloaded(TOO_MANY)

    async def wait(self, network: str) -> None:
        """Wait until a job of this network may run. The caller must call `done` after the job. Raises Overloaded."""
        self.check_room(network)
        if self._running < self._most_running:
            self._running += 1
            return
        if self.waiting >= self._most_waiting:
            self._drop_newest()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._remove(network, waiter)
            elif waiter.exception() is None:
                self.done()  # the turn had come before the cancellation
            raise

    def done(self) -> None:
        """End a job, and start the oldest job of the next network."""
        self._running -= 1
        while self._waiting:
            network, waiters = next(iter(self._waiting.items()))
            waiter = waiters[0]
            self._remove(network, waiter)
            if waiter.cancelled():
                continue
            if network in self._waiting:
                self._waiting.move_to_end(network)
            self._running += 1
            waiter.set_result(None)
            return

    def _drop_newest(self) -> None:
        """Refuse the newest job of the network with the most waiting jobs."""
        network = max(self._waiting, key=lambda name: len(self._waiting[name]))
        waiter = self._waiting[network][-1]
        self._remove(network, waiter)
        if not waiter.cancelled():
            waiter.set_exception(Overloaded(TOO_MANY))
            waiter.exception()  # mark the exception as retrieved: the caller may have been cancelled

    def _remove(self, network: str, waiter: Waiter) -> None:
        waiters = self._waiting.get(network)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiting[network]


def _end_turn(loop: asyncio.AbstractEventLoop, queue: FairQueue, _: "Future[T]") -> None:
    with contextlib.suppress(RuntimeError):  # the event loop has ended, and the queue with it
        loop.call_soon_threadsafe(queue.done)


def decoy_of(hasher: PasswordHasher) -> str:
    """Return a secret that matches no password and takes as long to verify as the secrets of this hasher."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"
