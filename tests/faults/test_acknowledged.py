"""Nothing that was acknowledged is lost when processes are killed under load, and all that is derived from it agrees.

The load comes through HTTP. One user's requests follow each other, and each is repeated until it is acknowledged.
"""

import os
import signal
from pathlib import Path

import pytest

from server.embedded import EmbeddedStore
from tests.faults.checker.load import checked
from tests.faults.checker.system import system_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

BETWEEN = 40  # operations between two kills
MANY = 100  # kills of the long profile, each of which takes two to ten seconds


async def test_a_store_that_is_killed_loses_nothing(tmp_path: Path, long_profile: bool) -> None:
    """The server restarts the embedded store, which writes every change to disk before it answers."""
    async with system_in(tmp_path) as system, checked(system) as load:
        for _ in range(MANY if long_profile else 5):
            await load.progress(BETWEEN)
            os.kill(EmbeddedStore(tmp_path / "data").pid, signal.SIGKILL)
        await load.progress(BETWEEN)


async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path, long_profile: bool) -> None:
    if not long_profile:
        pytest.skip("takes more than a minute on two busy cores: needs --long")
    async with system_in(tmp_path) as system, checked(system) as load:
        for _ in range(MANY):
            await load.progress(BETWEEN)
            await system.server.restart()
        await load.progress(BETWEEN)


async def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, long_profile: bool) -> None:
    """Other workers project what it had begun."""
    async with system_in(tmp_path) as system, checked(system) as load:
        for _ in range(MANY if long_profile else 3):
            await load.progress(BETWEEN)
            await system.worker.restart()
        await load.progress(BETWEEN)
