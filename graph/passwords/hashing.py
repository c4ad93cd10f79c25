"""Password hashing: argon2id in two threads of its own, with a bounded queue that is fair among networks.

A hash takes some 50 ms of processor time and 64 MB, and anybody can ask for one by logging in. So few run at once, few
wait, and the ones that wait take turns by the network that they came from.
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

T = TypeVar("T")
Waiter: TypeAlias = "asyncio.Future[None]"

CONCURRENT_HASHES = 2
MOST_WAITING = 20
NICE = 10  # added to the niceness of the threads that hash
LOWEST = 19


class Hashing:
    """Hashes and verifies passwords off the event loop, `CONCURRENT_HASHES` at once.

    `hashes` counts the hashes that were started: unknown logins must cost as many as known ones.
    """

    def __init__(self, hasher: PasswordHasher) -> None:
        self.hashes = 0
        self._hasher = hasher
        self._decoy = decoy_of(hasher)
        self._queue: Turns | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def hash(self, password: str, network: str) -> str:
        """Hash a new password. Raises Overloaded."""
        await self.turn(network)
        return await self._run(partial(self._hasher.hash, password))

    async def turn(self, network: str) -> None:
        """Wait until it is this network's turn to verify a password, which must be done at once. Raises Overloaded."""
        await self._turns().wait(network)

    async def verify(self, secret: str | None, password: str) -> bool:
        """Return True if this is the password of the secret; without a secret, hash just as much. Takes a turn."""
        return await self._run(partial(self._matches, secret or self._decoy, password)) and bool(secret)

    async def matches(self, secret: str | None, password: str, network: str) -> bool:
        """Wait for a turn and verify a password. Raises Overloaded."""
        await self.turn(network)
        return await self.verify(secret, password)

    def check_room(self, network: str) -> None:
        """Raise Overloaded if no further hash of this network can wait now."""
        self._turns().check_room(network)

    def close(self) -> None:
        """End the threads once the hashes under way are done."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def _turns(self) -> "Turns":
        """Return the queue of the running event loop. The queue of a loop that has ended is dropped."""
        loop = asyncio.get_running_loop()
        if self._queue is None or loop is not self._loop:
            self._queue, self._loop = Turns(CONCURRENT_HASHES, MOST_WAITING), loop
        return self._queue

    async def _run(self, work: Callable[[], T]) -> T:
        turns = self._turns()
        self.hashes += 1
        if self._threads is None:
            self._threads = ThreadPoolExecutor(CONCURRENT_HASHES, "hashing", _yield_to_requests)
        job = self._threads.submit(work)
        # A thread cannot be cancelled: its turn ends with the hash, even if the caller has left before.
        job.add_done_callback(partial(_end_turn, asyncio.get_running_loop(), turns))
        return await asyncio.wrap_future(job)

    def _matches(self, secret: str, password: str) -> bool:
        try:
            return self._hasher.verify(secret, password)
        except (VerificationError, InvalidHashError):
            return False


def _yield_to_requests() -> None:
    """Let the event loop come first where both want the processor, if the system lets threads have priorities."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(LOWEST, os.getpriority(os.PRIO_PROCESS, thread) + NICE))


class Turns:
    """Lets `most_running` jobs run at once, and `most_waiting` wait, for one event loop.

    Networks take turns, whatever the number of jobs that each has waiting. When no more can wait, a job of a network
    with fewer waiting takes the place of the newest job of the network with the most.
    """

    def __init__(self, most_running: int, most_waiting: int) -> None:
        self._most_running = most_running
        self._most_waiting = most_waiting
        self._running = 0
        self._waiting: OrderedDict[str, deque[Waiter]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of jobs that wait."""
        return sum(map(len, self._waiting.values()))

    def check_room(self, network: str) -> None:
        """Raise Overloaded if a job of this network could neither run nor wait now."""
        if self._running >= self._most_running and self.waiting >= self._most_waiting:
            longest = max(self._waiting.values(), key=len)
            if len(longest) <= len(self._waiting.get(network, ())) + 1:
                raise Overloaded

    async def wait(self, network: str) -> None:
        """Wait until a job of this network may run; call `done` after it. Raises Overloaded."""
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
                self.done()  # its turn had come in the moment of the cancellation
            raise

    def done(self) -> None:
        """End a job, and start the oldest one of the network whose turn it is."""
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
        """Refuse the newest job of the network with the most jobs waiting."""
        network = max(self._waiting, key=lambda name: len(self._waiting[name]))
        waiter = self._waiting[network][-1]
        self._remove(network, waiter)
        if not waiter.cancelled():
            waiter.set_exception(Overloaded())
            waiter.exception()  # marked as retrieved: the caller may be cancelled now

    def _remove(self, network: str, waiter: Waiter) -> None:
        waiters = self._waiting.get(network)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiting[network]


def _end_turn(loop: asyncio.AbstractEventLoop, turns: Turns, _: "Future[T]") -> None:
    with contextlib.suppress(RuntimeError):  # the event loop has ended, and the queue with it
        loop.call_soon_threadsafe(turns.done)


def decoy_of(hasher: PasswordHasher) -> str:
    """Build a secret that no password matches, and that costs as much to verify as one of this hasher."""
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"
