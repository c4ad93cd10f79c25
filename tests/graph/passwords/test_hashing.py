"""Password hashing: two hashes at a time, twenty waiting, networks in turn, and cancellation of callers."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from argon2 import PasswordHasher
from argon2.exceptions import VerificationError, VerifyMismatchError

from graph.errors import Overloaded
from graph.passwords.hashing import CONCURRENT_HASHES, MAX_WAITING, FairQueue, Hashing, decoy_of
from tests.support.graph_worlds import PATIENCE


class HeldHasher(PasswordHasher):
    """A hasher whose hashes wait until the test releases them."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.running = 0
        self.most_running = 0
        self._lock = threading.Lock()
        self._allowed = threading.Semaphore(0)

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        with self._lock:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        assert self._allowed.acquire(timeout=PATIENCE)
        try:
            return super().hash(password, salt=salt)
        finally:
            with self._lock:
                self.running -= 1

    def release(self, hashes: int = 1000) -> None:
        """Release this many hashes."""
        self._allowed.release(hashes)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - threads send no notification
            await asyncio.sleep(0.001)


@pytest.fixture
def hasher() -> HeldHasher:
    return HeldHasher()


@pytest.fixture
async def hashing(hasher: HeldHasher) -> AsyncIterator[Hashing]:
    hashing = Hashing(hasher)
    yield hashing
    hasher.release()
    hashing.close()


def begin(hashing: Hashing, network: str, count: int = 1) -> "list[asyncio.Task[str]]":
    return [asyncio.create_task(hashing.hash("correct horse", network)) for _ in range(count)]


async def test_two_run_twenty_wait_and_the_next_is_refused(hashing: Hashing, hasher: HeldHasher) -> None:
    """The refusal is immediate, and the waiting hashes are computed later."""
    tasks = begin(hashing, "a", CONCURRENT_HASHES + MAX_WAITING)
    await until(lambda: hasher.running == CONCURRENT_HASHES)

    with pytest.raises(Overloaded, match="Too many passwords are being checked"):
        await hashing.hash("correct horse", "a")
    hasher.release()
    hashes = await asyncio.gather(*tasks)

    assert len(set(hashes)) == CONCURRENT_HASHES + MAX_WAITING
    assert hasher.most_running == CONCURRENT_HASHES
    assert await hashing.hash("correct horse", "a")


async def test_a_hash_keeps_its_slot_when_its_caller_is_cancelled(hashing: Hashing, hasher: HeldHasher) -> None:
    """A thread cannot be stopped."""
    leaving = begin(hashing, "a", 2)
    await until(lambda: hasher.running == 2)
    for task in leaving:
        task.cancel()
    waiting = begin(hashing, "b")
    await asyncio.wait(leaving)
    await asyncio.sleep(0.01)

    assert hashing.hashes == 2
    hasher.release()
    await asyncio.gather(*waiting)
    assert hasher.most_running == 2


async def test_a_waiting_hash_is_removed_when_its_caller_is_cancelled(hashing: Hashing, hasher: HeldHasher) -> None:
    running = begin(hashing, "a", 2)
    await until(lambda: hasher.running == 2)
    leaving = begin(hashing, "a", MAX_WAITING)
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    await asyncio.wait(leaving)
    staying = begin(hashing, "a", MAX_WAITING)
    hasher.release()
    await asyncio.gather(*running, *staying)

    assert hashing.hashes == 2 + MAX_WAITING


async def test_networks_take_turns() -> None:
    """A single log-in comes second, however many from another network are waiting."""
    turns, order = FairQueue(1, 20), list[str]()

    async def work(network: str) -> None:
        await turns.wait(network)
        order.append(network)
        turns.done()

    await turns.wait("running")
    flood = [asyncio.create_task(work("flood")) for _ in range(10)]
    honest = [asyncio.create_task(work(name)) for name in ("alice", "bob", "alice")]
    await asyncio.sleep(0)
    turns.done()
    await asyncio.gather(*flood, *honest)

    assert order[:6] == ["flood", "alice", "bob", "flood", "alice", "flood"]


async def test_a_full_queue_has_room_for_other_networks() -> None:
    """A new job replaces the newest job of the network that has the most."""
    turns = FairQueue(1, 4)
    await turns.wait("running")
    flood = [asyncio.create_task(turns.wait("flood")) for _ in range(4)]
    await asyncio.sleep(0)
    alice = asyncio.create_task(turns.wait("alice"))
    await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)

    assert [task.done() for task in flood] == [False, False, False, True]
    with pytest.raises(Overloaded):
        await flood[-1]
    with pytest.raises(Overloaded):
        await turns.wait("flood")
    bob = asyncio.create_task(turns.wait("bob"))
    with pytest.raises(Overloaded):
        await flood[-2]
    with pytest.raises(Overloaded):
        await turns.wait("alice")  # the flood has two waiting, like alice would
    for _ in range(4):
        turns.done()
    await asyncio.gather(alice, bob, *flood[:2])
    assert turns.waiting == 0


async def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next() -> None:
    """No slot is lost in either order."""
    for cancelled_first in (True, False):
        turns = FairQueue(1, 4)
        await turns.wait("a")
        leaving, staying = (asyncio.create_task(turns.wait(name)) for name in "bc")
        await asyncio.sleep(0)
        if cancelled_first:
            leaving.cancel()
            turns.done()
        else:
            turns.done()
            leaving.cancel()
        async with asyncio.timeout(PATIENCE):
            await staying
        assert leaving.cancelled()
        assert turns.waiting == 0


async def test_hashing_uses_its_own_threads(hashing: Hashing, hasher: HeldHasher) -> None:
    tasks = begin(hashing, "a", CONCURRENT_HASHES + MAX_WAITING)
    await until(lambda: hasher.running == 2)

    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*(asyncio.to_thread(pow, 2, n) for n in range(50)))
    assert not any(task.done() for task in tasks)
    hasher.release()
    await asyncio.gather(*tasks)


def test_the_decoy_costs_as_much_as_a_real_secret_and_matches_nothing() -> None:
    hasher = PasswordHasher(time_cost=2, memory_cost=64, parallelism=3)
    decoy = decoy_of(hasher)

    assert not hasher.check_needs_rehash(decoy)
    assert len(decoy) == len(hasher.hash("correct horse"))
    with pytest.raises(VerifyMismatchError):
        hasher.verify(decoy, "correct horse")
    assert decoy_of(hasher) != decoy


async def test_without_a_secret_a_whole_hash_is_computed() -> None:
    """An unknown login therefore takes as long as a wrong password."""
    outcomes = list[object]()

    class Noting(PasswordHasher):
        def verify(self, *words: str | bytes) -> bool:  # type: ignore[override] # it only passes them on
            try:
                return super().verify(*words)
            except VerificationError as error:
                outcomes.append(type(error))
                raise

    hashing = Hashing(Noting(1, 8, 1))
    secret = await hashing.hash("correct horse", "a")
    assert not await hashing.matches(secret, "wrong horse", "a")
    assert not await hashing.matches(None, "wrong horse", "a")
    hashing.close()

    assert outcomes == [VerifyMismatchError, VerifyMismatchError]


async def test_a_process_can_use_another_event_loop_later(hasher: HeldHasher) -> None:
    hasher.release()
    hashing = Hashing(hasher)

    first = await asyncio.to_thread(lambda: asyncio.run(hashing.hash("correct horse", "a")))

    assert await hashing.matches(first, "correct horse", "a")
    assert not await hashing.matches(first, "wrong horse", "a")
    assert not await hashing.matches(None, "correct horse", "a")
    hashing.close()


async def test_a_full_queue_says_so_before_a_hash_is_requested(hashing: Hashing, hasher: HeldHasher) -> None:
    hashing.check_room("a")
    tasks = begin(hashing, "a", CONCURRENT_HASHES + MAX_WAITING)
    await until(lambda: hasher.running == CONCURRENT_HASHES)

    with pytest.raises(Overloaded, match="Too many passwords are being checked"):
        hashing.check_room("a")

    hasher.release()
    await asyncio.gather(*tasks)
