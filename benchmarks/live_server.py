"""The measured server: the application of `fanline serve`, in a separate process that reports its resources.

`python -m benchmarks.live_server STORE_URL FOLDER` writes its port, then answers every input line with its resources.
The line `collect` runs the garbage collector first. The process exits at the end of its standard input.
"""

import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from socket import socket

import uvicorn
from starlette.applications import Starlette

from benchmarks.stores import archive_url
from server.app import create_app
from server.process.garbage import SERVER, freeze
from server.process.logs import LOGGING
from server.serving import bind, configure
from server.settings import Settings

KEY = "a key for benchmarks that is long enough"
POLL_SECONDS = 0.01
TIMEOUT_SECONDS = 30.0
QUIET = {**LOGGING, "root": {**LOGGING["root"], "level": "WARNING"}}
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of the server's process: memory in bytes, CPU time in seconds, and counts."""

    tasks: int
    fds: int
    streams: int
    objects: int
    cut_off: int
    rss: int
    cpu: float


def read_resources(app: Starlette) -> Resources:
    """Return the resources of this process."""
    feed = app.state.graph.feed
    return Resources(
        tasks=len(asyncio.all_tasks()),
        fds=len(os.listdir("/proc/self/fd")),
        streams=len(feed),
        objects=len(gc.get_objects()),
        cut_off=feed.cut_off,
        rss=int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE,
        cpu=time.process_time(),
    )


@dataclass(frozen=True, slots=True)
class Server:
    """The server's process, as the benchmark sees it."""

    process: Process
    port: int

    async def resources(self, *, collect: bool = False) -> Resources:
        """Return the server's resources, optionally after a garbage collection."""
        assert self.process.stdin, "the server's input is a pipe"
        self.process.stdin.write(b"collect\n" if collect else b"look\n")
        return Resources(**json.loads(await _line(self.process)))


@asynccontextmanager
async def served(url: str, folder: Path) -> AsyncIterator[Server]:
    """Serve the store at this URL, in a process that is stopped at the end of the block."""
    command = (sys.executable, "-m", "benchmarks.live_server", url, str(folder))
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield Server(process, int(await _line(process)))
    finally:
        await _end(process)


async def _line(process: Process) -> bytes:
    assert process.stdout, "the server's output is a pipe"
    async with asyncio.timeout(TIMEOUT_SECONDS):
        line = await process.stdout.readline()
    if not line:
        raise RuntimeError("The server has ended.")
    return line


async def _end(process: Process) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(kind)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await process.wait()
                return


def allow_many_files() -> int:
    """Raise the limit of open files to the maximum, and return the limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def main(url: str, folder: str) -> None:
    """Serve until the input ends."""
    allow_many_files()
    settings = Settings(
        store_url=url, archive_url=archive_url(url), data_dir=Path(folder), secret=(KEY,), load_shedding=False
    )
    app = create_app(settings)
    config = configure(app, log_config=QUIET, timeout_graceful_shutdown=1)
    freeze(SERVER)
    with bind("127.0.0.1", 0) as listening, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(uvicorn.Server(config), app, listening))


async def _serve(server: uvicorn.Server, app: Starlette, listening: socket) -> None:
    answering = asyncio.create_task(_answer(server, app))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn sends no notification
        await asyncio.sleep(POLL_SECONDS)
    print(listening.getsockname()[1], flush=True)
    await serving
    answering.cancel()


async def _answer(server: uvicorn.Server, app: Starlette) -> None:
    questions = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(questions)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while question := await questions.readline():
        if question == b"collect\n":
            gc.collect()
        print(json.dumps(asdict(read_resources(app))), flush=True)
    server.should_exit = True


if __name__ == "__main__":
    main(*sys.argv[1:])
