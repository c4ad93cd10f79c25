"""`kill -9` between any two store calls of a mutation leaves all of it or nothing, and a retry completes it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.small_world import CHEAP, MUTATIONS, build, perform, reading
from tests.support.graphs import empty, open_graph

ROOT = Path(__file__).parents[2]
MOST_CALLS = 40


@pytest.fixture(scope="module")
def victims(running_store: Any) -> Iterator["Victims"]:
    """Start the process that forks processes to kill."""
    command = [sys.executable, "-m", "tests.faults.victim", running_store.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield Victims(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


class Victims:
    """Performs mutations in processes that are killed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def die(self, mutation: str, calls: int) -> bool:
        """Perform a mutation and kill its process after this many calls. Return False if it finished first."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{mutation} {calls}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer in ("killed", "finished"), answer
        return answer == "killed"


async def after_restart(url: str, mutation: str | None = None) -> dict[str, Any]:
    """Return what clients read after a restart, an optional mutation, and a drain. Caches and merges must agree."""
    graph = await open_graph(url, CHEAP)
    try:
        if mutation:
            await perform(graph, mutation)
        watermark = await graph.worker(lease=CHEAP.hibernate_after * 0).drain()
        assert watermark == await graph.log.last()
        cached = await reading(graph)
        await graph.timelines.wait_for_rebuilds()
        for key in await graph.store.run("KEYS", "home:*"):
            await graph.store.run("UNLINK", key)
        assert await reading(graph) == cached
        await graph.timelines.wait_for_rebuilds()
        return cached
    finally:
        await graph.close()


async def fresh_world(url: str) -> None:
    """Create the world in an empty store."""
    empty(url)
    graph = await open_graph(url, CHEAP)
    await build(graph)
    await graph.close()


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_a_kill_between_any_two_calls_leaves_all_or_nothing(
    mutation: str, store_url: str, victims: Victims, calls: Iterator[int]
) -> None:
    """After a restart and a drain, the world is the old or the new one. After a retry, it is the new one."""
    await fresh_world(store_url)
    old = await after_restart(store_url)
    await fresh_world(store_url)
    new = await after_restart(store_url, mutation)
    assert old != new
    outcomes = []
    for call in calls:
        assert call < MOST_CALLS, "the mutation takes more calls than the test allows"
        await fresh_world(store_url)
        killed = victims.die(mutation, call)
        found = await after_restart(store_url)
        assert found in (old, new), f"after {call} calls"
        outcomes.append(found == new)
        assert await after_restart(store_url, mutation) == new, f"after {call} calls and a retry"
        if not killed:
            break
    assert outcomes == sorted(outcomes), "once committed, always committed"
    assert outcomes[-1] is True
