"""The eraser in the background: it works while its process holds the lease, and continues after failures."""

import asyncio
import logging

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.rows import ArchiveChanged
from graph.binding import archive_of, binding_of
from graph.erasure import eraser as module
from graph.errors import ArchiveUnavailable, Overloaded, StoreReplaced, StoreUnavailable, WrongArchive
from graph.store.commands import Command
from tests.graph.erasure.erasing import delete, populate, settle
from tests.support.graph_worlds import PATIENCE, Open, background
from tests.support.stores import Fault

OUTAGE = "was interrupted: "
REPLACED = "the store or the archive was replaced"
FAILURE = "failed and will be retried"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait hardly at all between steps and after failures."""
    for name in ("PAUSE_SECONDS", "POLL_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(module, name, 0.001)


def reads_deletions(command: Command) -> bool:
    """Return True for the command that reads which users are to be erased."""
    return keys.ERASING in command


async def erased(graph: Graph, raw: Redis) -> None:
    """Wait until all deleted users have been erased."""
    async with asyncio.timeout(PATIENCE):
        while await raw.exists(keys.ERASING):
            await settle(graph)


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (StoreUnavailable("no answer"), OUTAGE),
        (ArchiveUnavailable("no answer"), OUTAGE),
        (Overloaded("full"), OUTAGE),
        (ArchiveChanged(), REPLACED),
        (StoreReplaced(), REPLACED),
        (WrongArchive("another"), REPLACED),
        (ZeroDivisionError(), FAILURE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_a_user_is_erased_despite_a_failure(
    another: Open, raw: Redis, caplog: pytest.LogCaptureFixture, failure: Exception, message: str
) -> None:
    """The failure is logged. The eraser starts over, with the store and the archive that are then in use."""
    graph = await another()
    world = await populate(graph)
    await delete(graph, world.gone)
    await settle(graph)
    assert await graph.lease.take()
    fault = Fault(graph.store, reads_deletions, failure, times=2)

    async with background(graph.eraser.run()):
        await erased(graph, raw)

    assert fault.done.is_set()
    assert [message in record.message for record in caplog.records if record.levelno >= logging.WARNING] == [True] * 2
    assert graph.eraser.erased == 1
    assert await raw.hkeys(keys.user(world.gone)) == ["deleted"]


async def test_nothing_is_erased_without_the_lease(graph: Graph, raw: Redis) -> None:
    """The eraser does not even read which users have been deleted."""
    world = await populate(graph)
    await delete(graph, world.gone)
    await settle(graph)
    before = graph.store.round_trips

    async with background(graph.eraser.run()):
        await asyncio.sleep(0.05)

    assert graph.store.round_trips == before
    assert await raw.exists(keys.ERASING)


async def test_a_process_with_the_binding_of_a_former_store_reads_the_new_one(
    graph: Graph, another: Open, raw: Redis
) -> None:
    """The log refuses its events until then."""
    world = await populate(graph)
    await delete(graph, world.gone)
    await settle(graph)
    binding = str(await raw.get(keys.BINDING))
    await raw.set(keys.BINDING, binding_of("former", archive_of(binding)))
    late = await another()
    assert await late.binding.token() != binding
    await raw.set(keys.BINDING, binding)
    assert await late.lease.take()

    async with background(late.eraser.run()):
        await erased(graph, raw)

    assert late.eraser.erased == 1
    assert await late.binding.token() == binding
