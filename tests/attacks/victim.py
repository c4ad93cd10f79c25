"""The server under attack: a separate process in production mode, with measurement of its CPU time, memory and log."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from server.settings import Settings
from tests.attacks.serving import CHEAP_HASHES, DESCRIPTORS
from tests.attacks.world import KEY, World
from tests.support.graphs import archive_url_of

ROOT = Path(__file__).parents[2]
PAGE = os.sysconf("SC_PAGE_SIZE")
TIMEOUT_SECONDS = 20.0  # for answering and ending
START_SECONDS = 60.0
IDLE_CPU = 0.001  # CPU seconds in IDLE_SECONDS below which the server counts as idle
IDLE_SECONDS = 0.05
GRAPHQL = "/graphql"
MEGABYTE = 2**20


def cpu_of(process: int) -> float:
    """Return the CPU seconds that a process has used, in user and system mode, to the microsecond (Linux only)."""
    return time.clock_gettime((~process << 3) | 2)  # clock_getcpuclockid(3)


def unix_sockets() -> list[str]:
    """Return the names, like `socket:[1234]`, of all open UNIX sockets: the store listens on one."""
    lines = Path("/proc/net/unix").read_text("ascii", errors="replace").splitlines()[1:]
    return [f"socket:[{line.split()[6]}]" for line in lines]


@dataclass
class Spent:
    """The cost of an attack: CPU seconds, and growth of memory and log in bytes."""

    cpu: float = 0.0
    grown: int = 0
    logged: int = 0

    def __str__(self) -> str:
        return f"{1000 * self.cpu:.1f} ms CPU, {self.grown / MEGABYTE:+.1f} MB RSS, {self.logged} bytes of log"


@dataclass(frozen=True)
class Resources:
    """The server's resources: unfinished tasks, live streams, objects, descriptors, bytes of memory.

    The pools of connections to the store and the archive grow, up to a limit, with the requests that happen to run at
    the same time. Their descriptors are not among the `unpooled` ones.
    """

    tasks: int
    streams: int
    objects: int
    descriptors: int
    unpooled: int
    rss: int


class Victim:
    """One server process. Use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        store_url: str,
        world: World,
        *,
        rates: bool = False,
        descriptors: int | None = None,
        settings: Mapping[str, str] | None = None,
        quick: bool = False,
    ) -> None:
        """With `quick`, password hashes are cheap, and measurements do not wait until the server is idle."""
        self.world = world
        self._quick = quick
        self._folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FANLINE_")},
            "PYTHONPATH": str(ROOT),
            "PYTHONFAULTHANDLER": "1",
            "FANLINE_ENV": "production",
            "FANLINE_SECRET": KEY,
            "FANLINE_STORE_URL": store_url,
            "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
            "FANLINE_DATA_DIR": str(folder),
            "FANLINE_WORKER": "true",
            **({DESCRIPTORS: str(descriptors)} if descriptors else {}),
            **({CHEAP_HASHES: "true"} if quick else {}),
            **({"FANLINE_RATE_LIMITS": str(rates).lower()} if "rate_limits" in Settings.model_fields else {}),
            **(settings or {}),
        }
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Victim":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.attacks.serving"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.port = int(self._line(START_SECONDS))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self.answers():
            assert time.monotonic() < deadline, f"The server does not answer: {self.log()}"
            time.sleep(0.02)

    def stop(self) -> None:
        """End the process, by force if necessary."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin
        assert process.stdout
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def restart_if_ended(self) -> None:
        """Start the process again if it has ended."""
        if not self.alive():
            self.stop()
            self.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def alive(self) -> bool:
        """Return whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def answers(self) -> bool:
        """Return whether the server answers a plain request with data."""
        try:
            with self.client() as client:
                return bool(ask(client, PLAIN).json().get("data"))
        except httpx.TransportError:
            return False

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used."""
        return cpu_of(self.pid)

    def rss(self) -> int:
        """Return the bytes of memory that the process occupies."""
        return int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * PAGE

    @property
    def log_file(self) -> Path:
        """The file with the standard error of the process."""
        return self._folder / "server.log"

    def log(self) -> str:
        """Return the log of the process."""
        return self.log_file.read_text("utf-8", errors="replace")

    def log_size(self) -> int:
        """Return the size of the log in bytes."""
        return self.log_file.stat().st_size

    def resources(self, *, collect: bool = False) -> Resources:
        """Return the resources of the process, optionally after a garbage collection."""
        assert self._process
        assert self._process.stdin
        self._process.stdin.write("collect\n" if collect else "look\n")
        self._process.stdin.flush()
        descriptors = self._descriptors()
        pooled = (self._environment["FANLINE_ARCHIVE_URL"].removeprefix("sqlite:///"), *unix_sockets())
        unpooled = sum(not target.startswith(pooled) for target in descriptors)
        return Resources(**json.loads(self._line()), descriptors=len(descriptors), unpooled=unpooled, rss=self.rss())

    def _descriptors(self) -> list[str]:
        """Return the target of each open descriptor: the path of a file, or a name like `socket:[1234]`."""
        found = []
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink(entry))
        return found

    def wait_for_resources(self, enough: Callable[[Resources], bool]) -> Resources:
        """Collect garbage until `enough` accepts the resources, for at most TIMEOUT_SECONDS. Return the resources."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not enough(found := self.resources(collect=True)) and time.monotonic() < deadline:
            time.sleep(IDLE_SECONDS)
        return found

    def wait_until_idle(self) -> None:
        """Wait until the server is idle, for at most TIMEOUT_SECONDS."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            before = self.cpu()
            time.sleep(IDLE_SECONDS)
            if self.cpu() - before < IDLE_CPU:
                return

    @contextlib.contextmanager
    def measure(self) -> Iterator[Spent]:
        """Measure what the server spends during a block and, unless it is `quick`, on work that the block leaves."""
        if not self._quick:
            self.wait_until_idle()
        spent = Spent()
        cpu, rss, logged = self.cpu(), self.rss(), self.log_size()
        yield spent
        if not self._quick:
            self.wait_until_idle()
        spent.cpu = self.cpu() - cpu
        spent.grown = self.rss() - rss
        spent.logged = self.log_size() - logged

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """Return an HTTP client of the server, optionally with a token."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        options = {"verify": False, "timeout": TIMEOUT_SECONDS, **options}  # skipping the certificates saves 27 ms
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, **options)

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """Open a connection from a local address."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_SECONDS, source_address=(source, 0))

    def _line(self, seconds: float = TIMEOUT_SECONDS) -> str:
        """Return the server's next line. If none comes in time, fail and show what each of its threads is doing."""
        assert self._process
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(TIMEOUT_SECONDS)
        assert ready, f"The server is silent: {self.log()}"
        line = self._process.stdout.readline()
        assert line, f"The server has ended: {self.log()}"
        return line


PLAIN = '{ user(by: {login: "alice"}) { login name } }'


def ask(client: httpx.Client, query: str, **variables: Any) -> httpx.Response:
    """Post an operation."""
    return client.post(GRAPHQL, json={"query": query, "variables": variables})
