"""The processes of a run: the servers on one processor, the store and the load generator on the other."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.peers.load import Job, Slice
from benchmarks.peers.world import KEY

NODE = Path(__file__).parent / "node"
NODE_VARIANTS = {"mercurius-jit": "mercurius.js", "yoga": "yoga.js"}
NODE_OPTIONS = ("--max-semi-space-size=32",)  # makes collections of young objects rarer, as in Fanline
NAMES = (
    *("fanline", "fanline-near-cache", "fanline-executor-off", "strawberry-tutorial"),
    *(*NODE_VARIANTS, "asgi-redis-py", "ceiling"),
)
INSTALL = f"npm install --prefix {os.path.relpath(NODE)}"
TIMEOUT_SECONDS = 20.0  # seconds that a process may take to end
SHOWN = 2_000  # characters of the output of a failed process


@dataclass(frozen=True, slots=True)
class Processors:
    """The processor of the servers, and the processor of the other processes. They are equal if there is only one."""

    server: int
    others: int

    @classmethod
    def available(cls) -> "Processors":
        """Return the first two processors that this process may use."""
        first, *rest = sorted(os.sched_getaffinity(0))
        return cls(first, rest[0] if rest else first)


@contextlib.contextmanager
def on(processor: int) -> Iterator[None]:
    """Run a block on this processor. Processes that are started in the block stay there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Server:
    """The process of a variant, which listens on a port."""

    variant: str
    process: int
    port: int


def missing(variant: str) -> str | None:
    """Return the reason why a variant cannot run here, or None."""
    if variant not in NODE_VARIANTS:
        return None
    if shutil.which("node") is None:
        return "Node.js is not installed"
    return None if (NODE / "node_modules").is_dir() else f"install its packages with: {INSTALL}"


def describe_node() -> str:
    """Return the version of Node.js, if it is installed."""
    node = shutil.which("node")
    if node is None:
        return "No Node.js."
    return f"Node.js {subprocess.run([node, '--version'], capture_output=True, text=True, check=True).stdout.strip()}."


def command(variant: str, url: str, folder: str) -> tuple[list[str], Path | None]:
    """Return the command that serves a variant, and its working directory."""
    if variant in NODE_VARIANTS:
        return [str(shutil.which("node")), *NODE_OPTIONS, NODE_VARIANTS[variant]], NODE
    return [sys.executable, "-m", "benchmarks.peers.serve", variant, url, folder], None


@contextlib.contextmanager
def server(variant: str, url: str, processors: Processors) -> Iterator[Server]:
    """Serve a variant for the duration of the block. Raises RuntimeError if its process does not start."""
    environment = os.environ | {"NODE_ENV": "production", "STORE": url.removeprefix("unix://"), "KEY": KEY}
    with tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder:
        arguments, place = command(variant, url, folder)
        with child(arguments, processors.server, environment, place) as process:
            line = output(process).readline()
            if not line.strip().isdigit():
                raise RuntimeError(f"{variant} did not start.")
            yield Server(variant, process.pid, int(line))


@contextlib.contextmanager
def child(
    arguments: Sequence[str], processor: int, environment: dict[str, str] | None = None, place: Path | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """Run a child process for the duration of the block. Print its error output if the block fails."""
    with tempfile.TemporaryFile("w+") as complaints:
        with on(processor):
            process = subprocess.Popen(
                arguments,
                env=environment,
                cwd=place,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,  # so that Ctrl-C reaches only the parent
            )
        try:
            yield process
        except Exception:
            complaints.seek(0)
            sys.stderr.write(complaints.read(SHOWN))
            raise
        finally:
            end(process)


def end(process: "subprocess.Popen[str]") -> None:
    """Close a child's input, terminate the child, and kill it if it does not exit within 20 seconds."""
    with contextlib.suppress(OSError):
        input_(process).close()
    process.terminate()
    try:
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(TIMEOUT_SECONDS)
    output(process).close()


def input_(process: "subprocess.Popen[str]") -> IO[str]:
    """Return a child's standard input."""
    assert process.stdin, "the input is a pipe"
    return process.stdin


def output(process: "subprocess.Popen[str]") -> IO[str]:
    """Return a child's standard output."""
    assert process.stdout, "the output is a pipe"
    return process.stdout


class Generator:
    """The load generator's process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, job: Job) -> Slice:
        """Run a job. Raises RuntimeError if a request fails."""
        input_(self._process).write(json.dumps(asdict(job)) + "\n")
        input_(self._process).flush()
        answer: dict[str, Any] = json.loads(output(self._process).readline() or '{"failure": "it has ended"}')
        if "failure" in answer:
            raise RuntimeError(f"The load generator failed: {answer['failure']}")
        return Slice(**answer)


@contextlib.contextmanager
def generator(processors: Processors) -> Iterator[Generator]:
    """Run the load generator on the store's processor."""
    with child([sys.executable, "-m", "benchmarks.peers.load"], processors.others) as process:
        yield Generator(process)


@contextlib.contextmanager
def worker(url: str, processors: Processors) -> Iterator[None]:
    """Run a worker of Fanline on the store's processor."""
    with child([sys.executable, "-m", "benchmarks.peers.worker", url], processors.others) as process:
        if not output(process).readline():
            raise RuntimeError("The worker did not start.")
        yield
