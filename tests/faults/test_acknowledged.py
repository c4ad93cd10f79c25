"""Processes killed under load lose no acknowledged change, and all derived data agrees.

The load comes through HTTP. Each user sends one request at a time, and repeats it until it is acknowledged.
"""

import itertools
import os
import signal
from pathlib import Path

import pytest

from server.embedded import EmbeddedStore
from tests.faults.checker.load import checked
from tests.faults.checker.system import System, system_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

BETWEEN = 40  # operations between two kills
KILLS, LONG_KILLS = 2, 300  # each takes two to ten seconds


async def kill_store(system: System) -> None:
    """The server restarts the embedded store, which writes every change to disk before it answers."""
    os.kill(EmbeddedStore(system.folder / "data").pid, signal.SIGKILL)


async def kill_worker(system: System) -> None:
    """Kill the worker. Other workers project what it had begun."""
    await system.worker.restart()


async def kill_server(system: System) -> None:
    await system.server.restart()


async def test_processes_that_are_killed_lose_nothing(tmp_path: Path, long_profile: bool) -> None:
    """Nothing is lost when the store, the worker and, in the long profile, the server are killed in turn."""
    kills = [kill_store, kill_worker, *([kill_server] if long_profile else [])]
    async with system_in(tmp_path) as system, checked(system) as load:
        for kill in itertools.islice(itertools.cycle(kills), LONG_KILLS if long_profile else KILLS):
            await load.progress(BETWEEN)
            await kill(system)
        await load.progress(BETWEEN)
