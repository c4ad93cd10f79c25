"""`fanline serve` and `fanline worker` in their own processes, which tests kill and restart."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.server.cli.test_commands import CLEAN, FANLINE, free_port
from tests.support.prepared import preparation_for

START_SECONDS = 60.0
STARTED = "Press Ctrl-C to stop"


class Process:
    """A command in its own process."""

    def __init__(self, log: Path, environment: dict[str, str], *command: str) -> None:
        self._log = log
        self._environment = CLEAN | environment
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the process."""
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._environment, stdout=output, stderr=output
            )

    async def end(self, how: signal.Signals) -> None:
        """Send a signal and wait until the process has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()

    async def restart(self) -> None:
        """Kill the process and start another one."""
        await self.end(signal.SIGKILL)
        await self.start()


class System:
    """A server and a worker that use the same store and archive, in a folder."""

    def __init__(
        self, folder: Path, store_url: str | None = None, command: Sequence[str] = FANLINE, **environment: str
    ) -> None:
        self.folder = folder
        self.environment = {
            "FANLINE_DATA_DIR": str(folder / "data"),
            "FANLINE_WORKER": "false",
            **({"FANLINE_STORE_URL": store_url} if store_url else {}),
            **environment,
        }
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.server = Process(folder / "serve.log", self.environment, *command, "serve", "--port", str(port))
        self.worker = Process(folder / "worker.log", self.environment, *command, "worker")

    async def ready(self) -> None:
        """Wait until the server is ready."""
        async with asyncio.timeout(START_SECONDS), httpx.AsyncClient(base_url=self.url) as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get("/health/ready")).status_code == 200:
                        return
                await asyncio.sleep(0.05)

    async def repair_check(self) -> tuple[int, str]:
        """Run `fanline repair --check`. Return its exit code and output."""
        return await self.run("repair", "--check")

    async def run(self, *command: str) -> tuple[int, str]:
        """Run a Fanline command to completion. Return its exit code and output."""
        environment = {**CLEAN, **self.environment, "COLUMNS": "200"}
        done = await asyncio.to_thread(preparation_for(command[0]).run, *command, environment=environment)
        return done.returncode, done.stdout + done.stderr


@asynccontextmanager
async def system_in(
    folder: Path, store_url: str | None = None, command: Sequence[str] = FANLINE, **environment: str
) -> AsyncIterator[System]:
    """Run a server and a worker, by default on an embedded store. `command` stands for `fanline`."""
    system = System(folder, store_url, command, **environment)
    try:
        await system.server.start()
        await system.ready()
        await system.worker.start()
        yield system
    finally:
        await asyncio.gather(system.server.end(signal.SIGTERM), system.worker.end(signal.SIGTERM))
