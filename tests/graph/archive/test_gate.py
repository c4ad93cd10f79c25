"""The gate in front of the archive's connections: fair shares, reserved connections, and cancelled callers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive.archive import Archive
from graph.archive.gate import Gate, Used
from graph.archive.usage import Usage, used_by
from graph.errors import ArchiveUnavailable
from tests.support.graph_worlds import PATIENCE

Leave = Callable[[], None]
SYSTEM = None


def user(name: str) -> Usage:
    return Usage(name, anonymous=False)


def network(name: str) -> Usage:
    return Usage(name, anonymous=True)


async def enter(gate: Gate, usage: Usage | None, seconds: float = PATIENCE) -> Leave:
    with used_by(usage):
        return await gate.enter(seconds)


async def settle() -> None:
    """Let all runnable tasks run."""
    for _ in range(5):
        await asyncio.sleep(0)


def start(gate: Gate, usage: Usage | None) -> "asyncio.Task[Leave]":
    return asyncio.create_task(enter(gate, usage))


async def admitted(gate: Gate, *usages: Usage | None) -> list["asyncio.Task[Leave]"]:
    """Request a connection for each of these callers, in order. Return the callers that get one at once."""
    tasks = [start(gate, usage) for usage in usages]
    await settle()
    return [task for task in tasks if task.done()]


async def test_a_caller_gets_two_connections_at_once() -> None:
    """The remaining connections are for other callers."""
    gate = Gate(8)
    assert len(await admitted(gate, *[user("alice")] * 5)) == 2
    assert len(await admitted(gate, user("bob"))) == 1
    assert gate.waiting == 3


async def test_all_anonymous_callers_together_get_half_of_the_connections() -> None:
    gate = Gate(8)
    assert len(await admitted(gate, *[network(f"192.0.2.{at}") for at in range(9)])) == 4
    assert len(await admitted(gate, user("alice"), user("bob"))) == 2


async def test_two_connections_are_reserved_for_the_system() -> None:
    """The system gets a connection at once, however many callers wait. It may use all free connections."""
    gate = Gate(8)
    assert len(await admitted(gate, *[user(f"user {at}") for at in range(20)])) == 6
    assert len(await admitted(gate, SYSTEM, SYSTEM, SYSTEM)) == 2
    assert len(await admitted(Gate(8), *[SYSTEM] * 9)) == 8


async def test_the_system_comes_first_when_a_connection_is_free_again() -> None:
    gate = Gate(1, reserved=0)
    [first] = await admitted(gate, user("alice"))
    waiting, system = start(gate, user("bob")), start(gate, SYSTEM)
    await settle()
    first.result()()
    await settle()
    assert (system.done(), waiting.done()) == (True, False)


async def test_who_has_used_the_connections_least_comes_first() -> None:
    """Order of arrival does not count: a caller that constantly searches waits for callers that read one page."""
    gate = Gate(1, reserved=0)
    leave = await enter(gate, user("searching"))
    gate._used["searching"] = Used(5.0, monotonic())
    busy, reader = start(gate, user("searching")), start(gate, user("reading"))
    await settle()
    leave()
    await settle()
    assert (reader.done(), busy.done()) == (True, False)
    reader.result()()
    await settle()
    assert busy.done()


async def test_of_equal_callers_each_gets_its_turn() -> None:
    """A caller with many waiting transactions does not block a caller with a single one."""
    gate = Gate(1, reserved=0)
    leave = await enter(gate, user("many"))
    many = [start(gate, user("many")) for _ in range(10)]
    await settle()
    one = start(gate, user("one"))
    await settle()
    leave()
    await settle()
    assert one.done()
    assert not any(task.done() for task in many)


async def test_a_caller_that_gives_up_leaves_the_queue() -> None:
    gate = Gate(1, reserved=0)
    [first] = await admitted(gate, user("alice"))
    gone, next_ = start(gate, user("bob")), start(gate, user("carol"))
    await settle()
    gone.cancel()
    await settle()
    assert gate.waiting == 1
    first.result()()
    await settle()
    assert next_.done()


async def test_a_turn_that_comes_with_the_cancellation_is_passed_on() -> None:
    """A turn that is given in the same event-loop iteration as the cancellation goes to the next caller."""
    gate = Gate(1, reserved=0)
    [first] = await admitted(gate, user("alice"))
    gone, next_ = start(gate, user("bob")), start(gate, user("carol"))
    await settle()
    first.result()()
    gone.cancel()
    await settle()
    assert gone.cancelled()
    assert next_.done()


async def test_who_waits_too_long_is_told_so() -> None:
    gate = Gate(1, reserved=0)
    await enter(gate, user("alice"))
    with pytest.raises(ArchiveUnavailable) as caught:
        await enter(gate, user("bob"), 0.01)
    assert caught.value.reason == "all connections were in use for 0.01 seconds"
    assert gate.waiting == 0


async def test_a_cancelled_caller_holds_its_connection_until_the_transaction_ends(tmp_path: Path) -> None:
    """Otherwise a caller that is cancelled again and again could use all connections."""
    archive = Archive(f"sqlite:///{tmp_path}/archive.sqlite")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(_: AsyncConnection) -> None:
        begun.set()
        await go_on.wait()

    try:
        await archive.state()
        with used_by(user("alice")):
            task = asyncio.create_task(archive._transaction(work))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert archive.database.gate._held["alice"] == 1
        go_on.set()
        await asyncio.wait(archive.database._running)
        await settle()
        assert archive.database.gate._held["alice"] == 0
    finally:
        await archive.close()
