"""The order of the tests, and which process runs them: long tests first, and all tests of a file in one process.

One process starts the server of a kind of database, and runs all tests that are repeated for it.
"""

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/attacks/", "tests/web/")
"""Folders whose files share servers or a browser that take long to start: one process runs them all."""

LONG = (
    "tests/graph/archive/",
    "tests/graph/rebuild/",
    "tests/graph/repair/",
    "tests/server/cli/",
    "tests/server/process/",
    "tests/server/seeding/",
)
"""Folders whose files take long, though each test is fast: they start commands or databases, or have many tests."""

WITH_PACKAGES = (
    "tests/clients/",
    "tests/deployment/",
    "tests/docs/",
    "tests/faults/test_scripts_while_slots_move.py",
    "tests/graph/store/test_read_pipeline.py",
    "tests/packaging/",
    "tests/server/playground/",
    "tests/web/",
)
"""Folders and files whose tests need packages of Debian or Node, or copy the folders that contain them."""

READY = "PACKAGES_READY"
READY_SECONDS = 900.0

DATABASE_SERVERS = ("postgresql", "mariadb")
"""The kinds of database that need a server, as they are named in the ids of tests."""

Rank: TypeAlias = int


class Schedule(LoadFileScheduling):
    """Gives each process that is almost done the next file, or the next folder of `TOGETHER`.

    In the long profile, property tests take hours, so their parts go to several processes.
    """

    def _split_scope(self, nodeid: str) -> str:
        is_part = self.config.getoption("--long") and nodeid.startswith("tests/properties/")
        return nodeid if is_part else unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return what one process runs: the file of a test, the folder whose files stay together, or its database."""
    file, _, test = nodeid.partition("::")
    parameters = test.partition("[")[2].rstrip("]").split("-")
    if server := next((kind for kind in DATABASE_SERVERS if kind in parameters), None):
        return server
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def sort_by_length(items: list[pytest.Item]) -> None:
    """Move long tests to the front, so that at the end no process is busy while others have nothing to do.

    Otherwise the order stays as it is. What needs packages waits for them, so it does not come first.
    """
    ranks: defaultdict[str, Rank] = defaultdict(lambda: 4)
    waiting = {unit_of(item.nodeid) for item in items if needs_packages(item)}
    for item in items:
        unit = unit_of(item.nodeid)
        later = 2 if unit in (*TOGETHER, *DATABASE_SERVERS) else 3
        ranks[unit] = later if unit in waiting else min(ranks[unit], rank(item))
    items.sort(key=lambda item: ranks[unit_of(item.nodeid)])


def rank(item: pytest.Item) -> Rank:
    """Return the rank of a test; tests with a low rank run first.

    0 is a long test, with its own time limit, 1 a test of another long file, and 4 any other. 2 and 3 are for tests
    that need packages, which are probably installed when they start.
    """
    if item.get_closest_marker("timeout"):
        return 0
    return 1 if item.get_closest_marker("slow") or item.nodeid.startswith(LONG) else 4


def needs_packages(item: pytest.Item) -> bool:
    """Return whether a test needs packages of Debian or Node."""
    return item.nodeid.startswith(WITH_PACKAGES) or item.get_closest_marker("external") is not None


def wait_for_packages(item: pytest.Item) -> None:
    """Wait until the packages that a test needs are installed: `.ci/run` installs them meanwhile."""
    ready = os.environ.get(READY)
    deadline = time.monotonic() + READY_SECONDS
    while ready and needs_packages(item) and not Path(ready).exists():
        assert time.monotonic() < deadline, f"{ready} does not exist: packages of Debian or Node are not installed"
        time.sleep(0.2)
