"""The command line in real processes: output, exit codes, side effects and error messages."""

import base64
import contextlib
import json
import os
import random
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from schema import sdl
from server.cli.stores import describe
from server.embedded import EmbeddedStore
from server.settings import Settings
from tests.conftest import CHEAP
from tests.support.graph_worlds import PATIENCE
from tests.support.graphs import environment_of, open_graph
from tests.support.prepared import preparation_for
from tests.support.small_demo import SMALL_DEMO

START_SECONDS = 100.0  # the demo seeds its users first, which takes long on a busy machine
STRONG_KEY = "a-key-for-tests-that-is-long-enough"
PRODUCTION = {"FANLINE_ENV": "production", "FANLINE_SECRET": base64.b64encode(bytes(range(100, 148))).decode()}
METRICS_TOKEN = "a-token-that-monitoring-uses"
FANLINE = (sys.executable, "-m", "server.cli.main")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("FANLINE_")}


def fanline(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a prepared process, and return its output and exit code."""
    return preparation_for(arguments[0]).run(*arguments, environment=CLEAN | environment | {"COLUMNS": "200"})


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a new process, and return its output and exit code."""
    environ = CLEAN | {"COLUMNS": "200"}
    return subprocess.run([*FANLINE, *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False)


def free_port() -> int:
    """Return a free port, below the range that the system uses for outgoing connections."""
    while True:
        port = random.SystemRandom().randrange(10_240, 32_000)
        with contextlib.suppress(OSError), closing(socket.create_server(("127.0.0.1", port))):
            return port


def ask(port: int, query: str, token: str = "") -> Any:
    """Send a query to a served API and return the response."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    url = f"http://127.0.0.1:{port}/graphql"
    return httpx.post(url, json={"query": query}, headers=headers, timeout=PATIENCE).json()


@contextmanager
def serving(
    *arguments: str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    preexec_fn: Callable[[], None] | None = None,
    program: Sequence[str] = FANLINE,
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a serving command. Yield its process and port when the server is ready, and kill it at the end."""
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*program, *arguments, "--port", str(port)],
            env={**CLEAN, **(environment or {}), "COLUMNS": "500"},
            stdout=output,
            stderr=output,
            preexec_fn=preexec_fn,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield process, port
    finally:
        process.kill()
        process.wait()


def is_ready(port: int) -> bool:
    """Return True if a server answers that it is ready."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=PATIENCE).status_code == 200
    return False


def store_answers(folder: Path) -> bool:
    """Return True if the embedded store of a folder is running."""
    try:
        with redis.Redis.from_url(EmbeddedStore(folder).url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def test_help_lists_all_commands() -> None:
    """Each command is listed with a description."""
    text = started("--help").stdout
    for command in ("demo", "serve", "worker", "seed", "rebuild", "schema", "token", "grant", "revoke"):
        assert re.search(rf"{command}\s+\w", text), command


def test_the_schema_is_printed() -> None:
    """The output is exactly the schema, so that it can be written to a file."""
    assert started("schema").stdout == sdl()


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (("serve",), {"FANLINE_STORE_URI": "x"}, "FANLINE_STORE_URI is not a setting. Did you mean FANLINE_STORE_URL?"),
        (("serve",), {"FANLINE_ENV": "production"}, "In production, set FANLINE_SECRET"),
        (("demo",), {"FANLINE_ENV": "production", "FANLINE_SECRET": STRONG_KEY}, "does not run with FANLINE_ENV"),
        (("token", "alice"), {"FANLINE_ENV": "production", "FANLINE_SECRET": STRONG_KEY}, "Use the logIn mutation"),
        (("token", "alice"), {"FANLINE_STORE_URL": "redis://127.0.0.1:1"}, "store does not answer"),
        (("grant", "alice", "firehose"), {"FANLINE_STORE_URL": "redis://127.0.0.1:1"}, "store does not answer"),
        (("worker", "--once"), {"FANLINE_STORE_URL": "unix:///nowhere"}, "store does not answer"),
        (("seed", "--users", "0"), {}, "--users must be from 1"),
        (("seed", "--follows", "/nowhere"), {}, "/nowhere cannot be read"),
        (("serve", "--host", "192.0.2.1"), {}, "Cannot listen on 192.0.2.1"),
    ],
)
def test_an_expected_error_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], sentence: str
) -> None:
    """The exit code is 1, standard output is empty, and there is no traceback."""
    done = fanline(*arguments, **{"FANLINE_DATA_DIR": str(tmp_path)} | environment)
    assert done.returncode == 1
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    """The message names the option to use, and the data folder is not created."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        done = fanline("demo", "--port", str(port), "--data", str(tmp_path / "new"))
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use. Choose another with --port" in done.stderr
    assert not (tmp_path / "new").exists()


def test_an_unusable_data_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = fanline("demo", "--port", str(free_port()), "--data", str(tmp_path / "file"))
    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr.replace("\n", "")


def test_the_demo_recovers_from_a_crash(tmp_path: Path) -> None:
    """The printed curl command works. After SIGKILL the next start uses the running store; SIGTERM stops the store."""
    with serving("demo", "--data", str(tmp_path), log=tmp_path / "log", program=SMALL_DEMO) as (process, port):
        printed = (tmp_path / "log").read_text()
        assert f"http://localhost:{port}/playground" in printed
        assert "alice, bob, carol, dave, erin, wei, xiaoming" in printed
        command = printed[printed.index("curl -s") : printed.index("\n\nServing")]
        answer = json.loads(subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout)
        entries = answer["data"]["viewer"]["homeTimeline"]["entries"]["edges"]
        assert len(entries) == 3
        assert all({*each["node"]} in ({"author", "text"}, {"author", "post"}) for each in entries)  # posts and reposts
        token = re.search(r"Bearer ([\w.-]+)", printed)
        assert token
        publish = 'mutation { publishPost(input: {text: "before the crash"}) { post { id } } }'
        post = ask(port, publish, token[1])["data"]["publishPost"]["post"]["id"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert store_answers(tmp_path)
    store_pid = EmbeddedStore(tmp_path).pid

    with serving("demo", "--data", str(tmp_path), log=tmp_path / "log", program=SMALL_DEMO) as (process, port):
        assert EmbeddedStore(tmp_path).pid == store_pid
        found = ask(port, f'{{ post(id: "{post}") {{ text }} }}', token[1])
        assert found["data"]["post"]["text"] == "before the crash"
        assert ask(port, '{ user(by: {login: "alice"}) { login } }')["data"]["user"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    assert not store_answers(tmp_path)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_serve_token_and_worker_share_one_store(tmp_path: Path) -> None:
    """Later processes use the running store of the data folder, and leave it running when they end.

    All files that they create are private, even with an ordinary umask.
    """
    data = tmp_path / "new" / "data"
    environment = {"FANLINE_DATA_DIR": str(data)}
    with ordinary_umask(), serving("serve", log=tmp_path / "log", environment=environment) as (process, port):
        sign_up = 'mutation { signUp(input: {login: "alice", password: "correct horse"}) { userErrors { code } } }'
        assert ask(port, sign_up)["data"]["signUp"] == {"userErrors": []}
        token = fanline("token", "alice", **environment).stdout.strip()
        assert ask(port, "{ viewer { user { login } } }", token)["data"] == {"viewer": {"user": {"login": "alice"}}}
        nobody = fanline("token", "nobody", **environment)
        assert (nobody.returncode, nobody.stdout) == (1, "")
        assert f"no user with the login 'nobody' in the data folder {data} (set FANLINE_DATA_DIR" in nobody.stderr
        assert "is projected" in fanline("worker", "--once", **environment).stderr
        assert "no dead letters" in fanline("dead-letters", "list", **environment).stderr
        assert ask(port, "{ viewer { user { login } } }", token)["data"] == {"viewer": {"user": {"login": "alice"}}}
        modes = modes_below(data)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) in (0, 130)
    assert not store_answers(data)
    for expected in (".", "secret", "archive.sqlite", "archive.sqlite-wal", "store/store.log", "store/store.sock"):
        assert expected in modes
    assert any("appendonly" in name for name in modes)
    assert {name: oct(mode) for name, mode in (modes | modes_below(data)).items() if mode & 0o077} == {}


@contextmanager
def ordinary_umask() -> Iterator[None]:
    """Let other users read new files during the block, unless a program restricts them."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def modes_below(folder: Path) -> dict[str, int]:
    """Return the permission bits of a folder and of everything in it."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


async def test_the_firehose_permission_is_granted_and_revoked(store_url: str, tmp_path: Path) -> None:
    """Changes apply immediately, repeating one is not an error, and unknown users and permissions are reported."""
    environment = environment_of(store_url, tmp_path)
    graph = await open_graph(store_url, CHEAP)
    alice = (await graph.users.sign_up("alice", "correct horse")).id
    said, held = [], []
    for command in ("grant", "grant", "revoke", "revoke"):
        done = fanline(command, "Alice", "firehose", **environment)
        assert (done.returncode, done.stdout) == (0, "")
        said.append(done.stderr.strip())
        held.append(bool(await graph.users.permissions(alice)))
    await graph.close()

    assert said == [
        "Alice now has the permission firehose.",
        "Alice already had the permission firehose.",
        "Alice no longer has the permission firehose.",
        "Alice did not have the permission firehose.",
    ]
    assert held == [True, True, False, False]
    nobody = fanline("grant", "nobody", "firehose", **environment)
    assert nobody.returncode == 1
    assert f"There is no user with the login 'nobody' in the store {store_url}." in nobody.stderr
    unknown = fanline("grant", "alice", "everything", **environment)
    assert unknown.returncode == 2
    assert "'everything' is not a permission; the permissions are: firehose" in unknown.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("grant", "alice", "firehose"),
        ("revoke", "alice", "firehose"),
        ("token", "alice"),
        ("repair",),
        ("repair", "--check"),
        ("worker", "--once"),
        ("dead-letters", "retry", "--all"),
    ],
    ids=" ".join,
)
def test_a_command_for_an_existing_store_creates_none(tmp_path: Path, command: tuple[str, ...]) -> None:
    """In a folder without a store the command fails, names the folder, and does not create it."""
    nowhere = tmp_path / "nowhere"
    done = fanline(*command, FANLINE_DATA_DIR=str(nowhere))
    assert done.returncode == 1
    assert f"There is no store yet in the data folder {nowhere} (set FANLINE_DATA_DIR" in done.stderr
    assert not nowhere.exists()


def test_a_store_is_named_without_its_password() -> None:
    """Messages are copied into bug reports."""
    for url in ("valkey://user:se@cret@db.example:6379/1", "redis://db.example:6379/1?password=se@cret"):
        named = describe(Settings.load(store_url=url))
        assert named.removeprefix("the store ").partition("://")[2] == "db.example:6379/1"


def test_invalid_trusted_documents_are_reported_once_before_serving(tmp_path: Path) -> None:
    """Worker processes that cannot start would be replaced again and again."""
    (tmp_path / "a.json").write_text('{"one": "{ nobody }"}')
    environment = {"FANLINE_DATA_DIR": str(tmp_path / "data"), "FANLINE_TRUSTED_DOCUMENTS": str(tmp_path / "a.json")}

    done = fanline("serve", "--port", str(free_port()), "--workers", "2", **environment)

    assert done.returncode == 1
    assert done.stderr.count("a.json, document 'one': Cannot query field 'nobody'") == 1
    assert "Serving on" not in done.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    done = started("--version")

    assert (done.returncode, done.stdout) == (0, f"fanline {version('fanline')}\n")


def test_several_processes_serve_one_port(tmp_path: Path) -> None:
    """The processes share the store, the keys and the metrics, and end with their parent.

    Each warning is one line before the server is ready, and no process dumps core. A process that is killed is
    replaced, and its counters are kept.
    """
    data = tmp_path / "data"
    own = {"FANLINE_DATA_DIR": str(data), "FANLINE_PLAYGROUND": "true", "FANLINE_METRICS_TOKEN": METRICS_TOKEN}
    environment = PRODUCTION | own
    with serving("serve", "--workers", "2", log=tmp_path / "log", environment=environment) as (process, port):
        check_warnings((tmp_path / "log").read_text().splitlines())
        children = children_of(process.pid)
        limits = [Path(f"/proc/{pid}/limits").read_text() for pid in (process.pid, *children)]
        assert len(children) == 2
        assert all(re.search(r"^Max core file size +0 ", each, re.MULTILINE) for each in limits)

        check_metrics(port)
        os.kill(children[0], signal.SIGKILL)
        assert [metric(port, "fanline_operations_planned_total") for _ in range(20)] == [20] * 20

        sign_up = 'mutation { signUp(input: {login: "bob", password: "correct horse"}) { credentials { token } } }'
        token = ask(port, sign_up)["data"]["signUp"]["credentials"]["token"]
        for _ in range(8):
            assert ask(port, "{ viewer { user { login } } }", token)["data"] == {"viewer": {"user": {"login": "bob"}}}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    assert not store_answers(data)


def check_warnings(lines: list[str]) -> None:
    """Assert that each warning is one line, before the server is ready."""
    warnings = [line for line in lines if line.startswith("Warning: ")]
    assert len([line for line in warnings if "FANLINE_PLAYGROUND" in line]) == 1
    assert len([line for line in warnings if "embedded store" in line]) == 1
    assert len(warnings) == len(set(warnings))
    assert lines.index(warnings[-1]) < next(n for n, line in enumerate(lines) if line.startswith("Serving on"))


def check_metrics(port: int) -> None:
    """Assert that the metrics are those of all processes, each of which publishes its counters every five seconds."""
    for _ in range(20):
        ask(port, "{ __typename }")
    planned = [0.0]
    while planned[-1] < 20:
        planned.append(metric(port, "fanline_operations_planned_total"))
        time.sleep(0.1)
    assert planned == sorted(planned)
    assert planned[-1] == 20
    for _ in range(8):
        samples = re.findall(r"^(fanline_\S+) ", scrape(port), re.MULTILINE)
        assert len(samples) == len(set(samples))
        assert not [sample for sample in samples if "pid=" in sample]


def metric(port: int, name: str) -> float:
    """Return one metric, read over a new connection."""
    return float(scrape(port).partition(f"\n{name} ")[2].partition("\n")[0])


def scrape(port: int) -> str:
    """Return the metrics, read over a new connection."""
    while True:
        with contextlib.suppress(httpx.TransportError):
            headers = {"authorization": f"Bearer {METRICS_TOKEN}"}
            return httpx.get(f"http://127.0.0.1:{port}/metrics", headers=headers, timeout=PATIENCE).text


def children_of(pid: int) -> list[int]:
    """Return the process ids of a parent's server processes."""
    found = [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return [child for child in found if b"--multiprocessing-fork" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_seeding_is_done_once(tmp_path: Path) -> None:
    """Repeating the command changes nothing. Other sizes are refused, because the store is not empty."""
    environment = {"FANLINE_DATA_DIR": str(tmp_path)}
    sizes = ("--users", "30", "--posts", "50", "--following", "3")
    assert "Seeded 30 users" in fanline("seed", *sizes, **environment).stderr
    assert "already holds 30 users" in fanline("seed", *sizes, **environment).stderr
    refused = fanline("seed", "--users", "31", **environment)
    assert refused.returncode == 1
    assert "only an empty store can be seeded" in refused.stderr.replace("\n", " ")
