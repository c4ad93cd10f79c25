"""With `strict`, no acknowledged change of any kind is lost or applied twice as primaries fail and slots move.

Users publish, reply, quote, like, repost, bookmark, follow, mute, block, change lists and read notifications. Several
clients of a user send the same request with the same idempotency key at the same time.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from graph import keys
from tests.faults.checker.disasters import FAULTS, Disasters, killed
from tests.faults.checker.load import Load, checked
from tests.faults.checker.system import system_in
from tests.support.partitions import PartitionableCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2700)]

PIECES = 3
SECONDS = 1200.0  # of each piece
SETTLE_SECONDS = 600.0  # workers project the last five minutes again after each failover
BETWEEN = 20  # operations during a fault


@asynccontextmanager
async def loaded(folder: Path, first: int = 0, *, gaps: bool = False) -> AsyncIterator[tuple[Load, Disasters]]:
    """Run load on a cluster with two replicas of each primary, and check it afterwards."""
    with PartitionableCluster(folder / "cluster", replicas=2) as cluster:
        async with (
            system_in(folder, cluster.url, FANLINE_DURABILITY="strict") as system,
            checked(system, gaps=gaps, failovers=True, seconds=SETTLE_SECONDS) as load,
        ):
            yield load, Disasters(cluster, FAULTS, first, partial(load.progress, BETWEEN))
            await load.progress(BETWEEN)


async def test_strict_loses_nothing_when_a_primary_is_killed(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (load, disasters):
        await load.progress(BETWEEN)
        await disasters.fail(killed, disasters.owner(keys.LOG))


@pytest.mark.parametrize("piece", range(PIECES))
async def test_strict_loses_no_acknowledged_change(piece: int, tmp_path: Path, long_profile: bool) -> None:
    """Before a primary that is separated from its replicas reports changes as not durable, clients may read them.

    Streams then announce a `Gap` and resume before it.
    """
    if not long_profile:
        pytest.skip("takes 20 minutes: needs --long")
    async with loaded(tmp_path, piece, gaps=True) as (load, disasters):
        deadline = time.monotonic() + SECONDS
        failing = asyncio.create_task(disasters.run())
        try:
            while time.monotonic() < deadline and not failing.done():
                await load.progress(BETWEEN)
        finally:
            disasters.stopped = True
            await failing
        print(f"{len(disasters.happened)} faults: {disasters.happened}")
        assert len(disasters.happened) > len(FAULTS)
