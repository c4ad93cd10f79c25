"""Several processes archive the same log at once under load, and die at any moment."""

import asyncio
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random

import pytest

from graph import Graph
from graph.model import MAX_NUMBER
from tests.faults.archive_load import PAUSE, Load
from tests.faults.archive_world import agree, archive_all, opened, rows_of, watermarks, working
from tests.support.graph_worlds import PATIENCE, background, people

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CHANGES = 100  # while two archivers work
KILLS, LONG_KILLS = 4, 40
USERS = ("alice", "bob", "carol", "dave", "erin")


@pytest.fixture
async def graph(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph with each kind of archive."""
    async with opened(store_url, archive_url) as graph:
        await graph.store.run("FLUSHALL")
        yield graph


def command(graph: Graph) -> list[str]:
    """Return the command that archives a graph."""
    archive_url = graph.archive.database.url.render_as_string(hide_password=False)
    return [sys.executable, "-m", "tests.faults.archiving", graph.store.url, archive_url]


@contextmanager
def archiver(graph: Graph, output: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that archives without a pause."""
    with output.open("ab") as log:
        process = subprocess.Popen(command(graph), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def working_without_archiver(graph: Graph) -> AsyncIterator[None]:
    """Project events for the duration of the block."""
    worker = graph.worker()

    async def drain() -> None:
        while True:
            await worker.drain()
            await asyncio.sleep(PAUSE)

    async with background(drain()):
        yield


async def archived_once(graph: Graph) -> None:
    """Assert that the archive holds each event of the log once, and nothing else."""
    await archive_all(graph)
    log = [event.number async for event in graph.log.replay(0, MAX_NUMBER)]
    rows = await rows_of(graph)
    redacted = {row.number for row in rows if row.kind == "Redacted"}
    assert [row.number for row in rows if row.number not in redacted] == [n for n in log if n not in redacted]
    assert len(set(await watermarks(graph))) == 1
    await agree(graph)


async def test_two_archivers_at_once_leave_no_gap_and_no_duplicate(graph: Graph, tmp_path: Path) -> None:
    """Two archivers that run at once both archive events, without a gap or a duplicate."""
    load = Load(graph, await people(graph, *USERS))
    outputs = [tmp_path / "one", tmp_path / "two"]
    with archiver(graph, outputs[0]) as one, archiver(graph, outputs[1]) as two:
        async with working(graph), background(load.run()):
            async with asyncio.timeout(PATIENCE):
                while load.written < CHANGES or not all(map(worked, outputs)):  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.1)
        assert (one.poll(), two.poll()) == (None, None), [output.read_text() for output in outputs]
    assert load.refused == 0
    await archived_once(graph)


def worked(output: Path) -> int:
    """Return the number of events that a process reports as archived. It must have printed no error."""
    lines = output.read_text().split("\n")[:-1]
    assert all(line.isdecimal() for line in lines), lines[-20:]
    return int(lines[-1]) if lines else 0


async def test_an_archiver_that_is_killed_all_the_time_archives_everything_once(
    graph: Graph, long_profile: bool
) -> None:
    kills = LONG_KILLS if long_profile else KILLS
    load = Load(graph, await people(graph, *USERS))
    moments, longest, progress = Random(7), 0.15, list[int]()  # noqa: S311
    process = await asyncio.create_subprocess_exec(*command(graph), cwd=ROOT, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    async with working_without_archiver(graph), background(load.run()):
        while len(progress) < kills or len(set(progress)) <= kills / 4:
            process.stdin.write(f"{moments.uniform(0, longest)}\n".encode())
            assert await process.stdout.readline() == b"killed\n"
            progress.append((await graph.archive.state()).watermark)
            if progress[-1:] == progress[-2:-1]:
                longest *= 1.5  # a busy machine archived nothing in that time
    process.stdin.close()
    assert await process.wait() == 0
    assert load.refused == 0
    await archived_once(graph)
