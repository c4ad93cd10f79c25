"""`fanline worker` in real processes."""

import asyncio
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import CHEAP
from tests.server.cli.test_commands import CLEAN, FANLINE, fanline
from tests.support.graph_worlds import reached
from tests.support.graphs import environment_of, open_graph
from tests.support.raw import open_blocking


@pytest.mark.parametrize(("by", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
async def test_a_separate_worker_projects_new_events(
    store_url: str, tmp_path: Path, by: signal.Signals, code: int
) -> None:
    """The worker waits for a store that does not answer yet, then for new events, and ends on a signal."""
    path = urlsplit(store_url).path
    environment = environment_of(store_url, tmp_path)
    environment["FANLINE_STORE_URL"] = store_url.replace(path, f"{tmp_path}/late")
    process = await asyncio.create_subprocess_exec(
        *FANLINE, "worker", env=CLEAN | environment, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    while b"store is unavailable" not in await process.stderr.readline():
        assert process.returncode is None
    (tmp_path / "late").symlink_to(path)
    graph = await open_graph(store_url, CHEAP)
    try:
        user = await graph.users.sign_up("alice", "correct horse", None)
        await reached(graph.log.watermark, user.id)
        process.send_signal(by)
        _, err = await process.communicate()
        assert process.returncode == code
        assert b"Traceback" not in err
    finally:
        await graph.close()


def test_draining_ends_at_an_event_of_a_later_version(store_url: str, tmp_path: Path) -> None:
    """The command does not wait for a worker of that version. The error names the kind and the entry."""
    with open_blocking(store_url) as raw:
        raw.xadd("{log}", {"kind": "PostPinned", "actor": "1", "body": "{}"}, id="1600000000000-1")

    done = fanline("worker", "--once", **environment_of(store_url, tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert "Entry 1600000000000-1 of the log is an event of kind 'PostPinned'" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
