"""The processes of a run: servers on one processor, the store and the load generator on the other."""

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
NODE_OPTIONS = ("--max-semi-space-size=32",)  # rarer collections of young objects, as Fanline has them too
NAMES = ("fanline", "fanline-executor-off", "strawberry-tutorial", *NODE_VARIANTS, "asgi-redis-py", "ceiling")
INSTALL = f"npm install --prefix {os.path.relpath(NODE)}"
PATIENCE = 20.0  # seconds that a process may take to end
SHOWN = 2_000  # characters of what a process that failed has said


@dataclass(frozen=True, slots=True)
class Processors:
    """Which processor the servers have for themselves, and which the others; the same where there is only one."""

    server: int
    others: int

    @classmethod
    def available(cls) -> "Processors":
        """Choose the first two that this process may use."""
        first, *rest = sorted(os.sched_getaffinity(0))
        return cls(first, rest[0] if rest else first)


@contextlib.contextmanager
def on(processor: int) -> Iterator[None]:
    """Run on this processor; what is started meanwhile stays there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Server:
    """A variant's process that listens on a port."""

    variant: str
    process: int
    port: int


def missing(variant: str) -> str | None:
    """Say why a variant cannot run here; None if it can."""
    if variant not in NODE_VARIANTS:
        return None
    if shutil.which("node") is None:
        return "Node.js is not installed"
    return None if (NODE / "node_modules").is_dir() else f"install its packages with: {INSTALL}"


def describe_node() -> str:
    """Tell the version of Node.js, if there is one."""
    node = shutil.which("node")
    if node is None:
        return "No Node.js."
    return f"Node.js {subprocess.run([node, '--version'], capture_output=True, text=True, check=True).stdout.strip()}."


def command(variant: str, url: str, folder: str) -> tuple[list[str], Path | None]:
    """Give the command that serves a variant, and where to run it."""
    if variant in NODE_VARIANTS:
        return [str(shutil.which("node")), *NODE_OPTIONS, NODE_VARIANTS[variant]], NODE
    return [sys.executable, "-m", "benchmarks.peers.serve", variant, url, folder], None


@contextlib.contextmanager
def server(variant: str, url: str, processors: Processors) -> Iterator[Server]:
    """Serve a variant; its process ends, by its id, with the context. Raises RuntimeError if it does not start."""
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
    """Run a child process, which ends when its input does, or by its id. What it complains of is shown on failure."""
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
                start_new_session=True,  # so that Ctrl-C reaches only who ends them
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
    """End a child process."""
    with contextlib.suppress(OSError):
        input_(process).close()
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE)
    output(process).close()


def input_(process: "subprocess.Popen[str]") -> IO[str]:
    """Give a child's standard input."""
    assert process.stdin, "the input is a pipe"
    return process.stdin


def output(process: "subprocess.Popen[str]") -> IO[str]:
    """Give a child's standard output."""
    assert process.stdout, "the output is a pipe"
    return process.stdout


class Generator:
    """The load generator's process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, job: Job) -> Slice:
        """Do a job. Raises RuntimeError if anything was not answered well."""
        input_(self._process).write(json.dumps(asdict(job)) + "\n")
        input_(self._process).flush()
        answer: dict[str, Any] = json.loads(output(self._process).readline() or '{"failure": "it has ended"}')
        if "failure" in answer:
            raise RuntimeError(f"The load generator failed: {answer['failure']}")
        return Slice(**answer)


@contextlib.contextmanager
def generator(processors: Processors) -> Iterator[Generator]:
    """Run the load generator beside the store."""
    with child([sys.executable, "-m", "benchmarks.peers.load"], processors.others) as process:
        yield Generator(process)


@contextlib.contextmanager
def worker(url: str, processors: Processors) -> Iterator[None]:
    """Run a worker of the product's beside the store."""
    with child([sys.executable, "-m", "benchmarks.peers.worker", url], processors.others) as process:
        if not output(process).readline():
            raise RuntimeError("The worker did not start.")
        yield
