"""The order of the tests, and which process runs them: long tests first, and all tests of a file in one process."""

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/attacks/",)
"""Folders whose files share servers that take long to start: one process runs them all."""

LONG = (
    "tests/graph/archive/",
    "tests/graph/rebuild/",
    "tests/graph/repair/",
    "tests/server/cli/",
    "tests/server/process/",
    "tests/server/seeding/",
)
"""Folders whose files take long, though each test is fast: they start commands or databases, or have many tests."""

WITH_NODE = (
    "tests/clients/",
    "tests/docs/",
    "tests/packaging/",
    "tests/server/playground/",
    "tests/test_peers.py",
    "tests/web/",
)
"""Folders whose tests need Node packages, or copy the folders that contain them."""

READY = "NODE_PACKAGES_READY"
READY_SECONDS = 900.0

Rank: TypeAlias = int


class Schedule(LoadFileScheduling):
    """Gives each process that is almost done the next file, or the next folder of `TOGETHER`.

    In the long profile, property tests take hours, so their parts go to several processes.
    """

    def _split_scope(self, nodeid: str) -> str:
        is_part = self.config.getoption("--long") and nodeid.startswith("tests/properties/")
        return nodeid if is_part else unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the file of a test, or the folder whose files stay together."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def sort_by_length(items: list[pytest.Item]) -> None:
    """Move long tests to the front, so that at the end no process is busy while others have nothing to do.

    Otherwise the order stays as it is.
    """
    ranks: defaultdict[str, Rank] = defaultdict(lambda: 3)
    for item in items:
        unit = unit_of(item.nodeid)
        ranks[unit] = min(ranks[unit], rank(item))
    items.sort(key=lambda item: ranks[unit_of(item.nodeid)])


def rank(item: pytest.Item) -> Rank:
    """Return the rank of a test; tests with a low rank run first.

    0 is a long test, with a time limit of its own, 1 a test of another long file, and 3 any other. 2 is a test that
    needs Node packages: they are probably installed when it starts.
    """
    if item.nodeid.startswith(WITH_NODE):
        return 2
    if item.get_closest_marker("timeout"):
        return 0
    return 1 if item.get_closest_marker("slow") or item.nodeid.startswith(LONG) else 3


def wait_for_packages(item: pytest.Item) -> None:
    """Wait until the Node packages are installed, if the test needs them: `.ci/run` installs them meanwhile."""
    ready = os.environ.get(READY)
    deadline = time.monotonic() + READY_SECONDS
    while ready and item.nodeid.startswith(WITH_NODE) and not Path(ready).exists():
        assert time.monotonic() < deadline, f"{ready} does not exist: the packages of Node are not installed"
        time.sleep(0.2)
