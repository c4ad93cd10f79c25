"""What `serve` and `worker` warn about at their start, and what they refuse."""

import base64
import os
import re
import resource
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from server.embedded import EmbeddedStore
from server.process.checks import Facts, Severity, check
from server.process.start import make_files_private, set_limits
from server.seeding.load import demo_source, load
from server.settings import Settings
from tests.server.cli.test_commands import fanline, free_port, serving

KEY = base64.b64encode(bytes(range(100, 148))).decode()
GUESSABLE = "ChangeMe-before-you-go-to-production"
SAFE = {
    "env": "production",
    "secret": KEY,
    "store_url": "valkeys://fanline:word@store.example:6379",
    "archive_url": "postgresql://fanline:word@sql.example/fanline",
    "trusted_proxies": "127.0.0.1",
}
FACTS = Facts(uid=1000, open_files=65536, modes={}, keys=(KEY,), host="127.0.0.1")


def settings_of(**changed: Any) -> Settings:
    """Make the settings of a safe production, changed; None removes one."""
    return Settings(**{name: value for name, value in (SAFE | changed).items() if value is not None})


def found(facts: Facts = FACTS, **changed: Any) -> list[tuple[str, str]]:
    """List what the checks say: severity and text."""
    return [(finding.severity.value, finding.text) for finding in check(settings_of(**changed), facts)]


def with_facts(**changed: Any) -> Facts:
    """Give the facts of a safe process, except for what is changed."""
    return Facts(**{name: getattr(FACTS, name) for name in Facts.__slots__} | changed)


def test_a_safe_production_has_no_findings() -> None:
    """So that a warning means something."""
    assert found() == []


def test_a_development_server_on_this_machine_has_no_findings() -> None:
    """With nothing set, as root, with few descriptors."""
    assert check(Settings(), Facts(uid=0, open_files=256, modes={}, host="127.0.0.1")) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"store_url": None}, "The embedded store runs on one machine"),
        ({"store_url": "redis://store.example:6379"}, "The store at store.example is used without a password"),
        ({"store_url": "valkey://10.0.0.5"}, "The store at 10.0.0.5 is used without a password"),
        ({"store_url": "valkey://:word@store.example"}, "The password of the store at store.example is sent without"),
        ({"store_url": "valkey://store.example?password=word"}, "The password of the store at store.example"),
        ({"store_url": "valkey+cluster://127.0.0.1:1,b.example:2"}, "The store at b.example is used without"),
        ({"playground": True}, "FANLINE_PLAYGROUND opens the playground"),
        ({"introspection": True}, "FANLINE_INTROSPECTION shows the whole schema"),
        ({"allowed_origins": "https://a.example,http://b.example"}, "contains http://b.example, which has no TLS"),
        ({"rate_limits": False}, "FANLINE_RATE_LIMITS is off"),
        ({"trusted_proxies": None}, "all clients behind a proxy share one address"),
    ],
)
def test_an_unsafe_setting_is_one_warning(changed: dict[str, Any], said: str) -> None:
    """It names the setting or the host, and never shows a password."""
    [(severity, text)] = found(**changed)
    assert severity == "warn"
    assert said in text
    assert "word@" not in text.replace("password@", "")


@pytest.mark.parametrize(
    "url",
    [
        "valkey://localhost:6379",
        "redis://127.0.0.1",
        "redis://[::1]:6379/0",
        "rediss://store.example",
        "unix:///run/valkey/valkey.sock",
        "valkey+cluster://localhost:1,127.0.0.1:2",
    ],
)
def test_a_store_on_this_machine_or_over_tls_is_no_finding(url: str) -> None:
    """Nobody else can listen."""
    assert found(store_url=url) == []


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"uid": 0}, "Fanline runs as root"),
        ({"open_files": 1024}, "may open only 1024 files"),
    ],
)
def test_an_unsafe_process_is_one_warning(facts: dict[str, Any], said: str) -> None:
    """It is not refused: in a container, root is usual."""
    [(severity, text)] = found(with_facts(**facts))
    assert severity == "warn"
    assert said in text


def test_a_server_without_a_proxy_is_a_warning() -> None:
    """Clear text on a public address."""
    [(severity, text)] = found(with_facts(host="0.0.0.0"), trusted_proxies=None)  # noqa: S104 - what is warned about
    assert severity == "warn"
    assert "listens on 0.0.0.0 without TLS" in text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "api.example"])  # noqa: S104 - what is warned about
def test_a_development_server_that_others_can_reach_is_a_warning(host: str) -> None:
    """It has an open playground."""
    [finding] = check(Settings(), Facts(uid=1, open_files=1024, modes={}, host=host))
    assert finding.severity is Severity.WARN
    assert f"listens on {host} in development mode" in finding.text


def test_a_worker_is_not_checked_for_what_only_serving_needs() -> None:
    """It does not listen."""
    assert found(with_facts(host=None), trusted_proxies=None, playground=True, introspection=True) == []


@pytest.mark.parametrize(
    "key",
    [
        "abcdefghijklmnopqrstuvwxyz012345",
        "ThisIsMyVerySecretKeyForProduction",
        "a-password-of-sufficient-length-0",
        GUESSABLE,
        "a key for tests that is long enough",
    ],
)
def test_a_key_that_can_be_guessed_is_refused(key: str) -> None:
    """Though it is long enough; the message does not repeat it."""
    [(severity, text)] = found(with_facts(keys=(KEY, key)))
    assert severity == "refuse"
    assert "A key of FANLINE_SECRET contains" in text
    assert key not in text


@pytest.mark.parametrize("make", [secrets.token_hex, secrets.token_urlsafe], ids=["hex", "base64"])
def test_random_keys_are_never_refused(make: Callable[[int], str]) -> None:
    """As `openssl rand` makes them."""
    assert found(with_facts(keys=tuple(make(48) for _ in range(2000)))) == []


@pytest.mark.parametrize(
    ("name", "mode", "severity"),
    [
        ("data", 0o700, None),
        ("data", 0o755, "warn"),
        ("data", 0o770, "refuse"),
        ("data", 0o1777, "refuse"),
        ("keys", 0o600, None),
        ("keys", 0o440, None),
        ("keys", 0o444, "warn"),
        ("keys", 0o666, "refuse"),
        ("data/archive.sqlite", 0o640, None),
        ("data/archive.sqlite", 0o644, "refuse"),
    ],
)
def test_files_that_others_can_open(tmp_path: Path, name: str, mode: int, severity: str | None) -> None:
    """Production refuses what can be replaced, or read without a reason; development warns."""
    changed = {"data_dir": tmp_path / "data", "secret": None, "secret_file": tmp_path / "keys"}
    facts = with_facts(modes={tmp_path / name: mode})
    said = found(facts, **changed)
    assert [severity for severity, _ in said] == ([severity] if severity else [])
    assert all(f"`chmod {'700' if name == 'data' else '600'} {tmp_path / name}`" in text for _, text in said)
    in_development = {severity for severity, _ in found(facts, **changed, env="development")}
    assert in_development <= {"warn"}


def test_refusals_come_first_and_none_is_lost() -> None:
    """Whoever mends one learns of the others at the same time."""
    facts = with_facts(uid=0, keys=(GUESSABLE, GUESSABLE), modes={Settings().data_dir: 0o777})
    assert [severity for severity, _ in found(facts)] == ["refuse", "refuse", "refuse", "warn"]


def test_data_files_are_withdrawn_from_others_but_not_from_a_group(tmp_path: Path) -> None:
    """Older versions left the archive readable; links to files elsewhere are left alone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch(0o644)
    data = tmp_path / "data"
    data.mkdir()
    for name, mode in (("archive.sqlite", 0o644), ("archive.sqlite-wal", 0o640)):
        (data / name).touch()
        (data / name).chmod(mode)
    (data / "archive.sqlite-shm").symlink_to(elsewhere)
    elsewhere.chmod(0o644)

    settings = Settings(data_dir=data)
    assert list(make_files_private(settings)) == [data / "archive.sqlite"]
    assert list(make_files_private(settings)) == []
    modes = [stat.S_IMODE((data / name).stat().st_mode) for name in ("archive.sqlite", "archive.sqlite-wal")]
    assert modes == [0o600, 0o640]
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


@pytest.fixture
def limits() -> Iterator[None]:
    """Put the limits of this process back."""
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)}
    yield
    for kind, limit in before.items():
        resource.setrlimit(kind, limit)


@pytest.mark.usefixtures("limits")
def test_files_are_allowed_up_to_the_hard_limit_and_production_dumps_no_core() -> None:
    """A core dump contains the keys; development keeps it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    core = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    set_limits(production=False)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    assert resource.getrlimit(resource.RLIMIT_CORE) == core
    set_limits(production=True)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, core[1])


PRODUCTION = {"FANLINE_ENV": "production", "FANLINE_SECRET": KEY}


def test_serve_prints_each_warning_once_however_many_processes_serve(tmp_path: Path) -> None:
    """One line each, before it serves; no core dumps in any process."""
    tmp_path.chmod(0o700)
    environment = PRODUCTION | {"FANLINE_DATA_DIR": str(tmp_path / "data"), "FANLINE_PLAYGROUND": "true"}
    with serving("serve", "--workers", "2", log=tmp_path / "log", environment=environment) as (process, _):
        lines = (tmp_path / "log").read_text().splitlines()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        kept = [Path(f"/proc/{pid}/limits").read_text() for pid in (process.pid, *children)]
        process.terminate()
        assert process.wait(timeout=20) == 0
    warnings = [line for line in lines if line.startswith("Warning: ")]
    assert len([line for line in warnings if "FANLINE_PLAYGROUND" in line]) == 1
    assert len([line for line in warnings if "embedded store" in line]) == 1
    assert len(warnings) == len(set(warnings))
    assert lines.index(warnings[-1]) < next(n for n, line in enumerate(lines) if line.startswith("Serving on"))
    assert len(kept) >= 3
    assert all(re.search(r"^Max core file size +0 ", each, re.M) for each in kept)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_refusal_is_exit_code_1_and_nothing_is_created(tmp_path: Path, command: str) -> None:
    """Every reason has a line."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    arguments = (command, "--port", str(free_port())) if command == "serve" else (command, "--once")
    done = fanline(*arguments, FANLINE_ENV="production", FANLINE_SECRET=GUESSABLE, FANLINE_DATA_DIR=str(data))
    assert done.returncode == 1
    assert "fanline: Other users can write to the data folder" in done.stderr
    assert "\nA key of FANLINE_SECRET contains `changeme`" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(data.iterdir()) == []


async def test_production_does_not_serve_the_users_of_the_demo(store_url: str, graph: Graph, tmp_path: Path) -> None:
    """Their password is in the README; other seeds have no passwords."""
    await load(graph, demo_source(people=10, posts=10))
    environment = PRODUCTION | {"FANLINE_STORE_URL": store_url, "FANLINE_DATA_DIR": str(tmp_path)}
    done = fanline("serve", "--port", str(free_port()), **environment)
    assert done.returncode == 1
    assert "The demo's users have a public password" in done.stderr
    assert store_url in done.stderr


def modes_below(folder: Path) -> dict[str, int]:
    """List the permission bits of everything in a folder, the folder itself included."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_everything_that_fanline_creates_is_private(tmp_path: Path) -> None:
    """Folders, key, archive, socket, log and append-only files, with the umask of any ordinary shell."""
    data = tmp_path / "new" / "data"
    before = os.umask(0o022)
    try:
        with serving("demo", "--data", str(data), log=tmp_path / "log") as (process, _):
            modes = modes_below(data)
            process.terminate()
            assert process.wait(timeout=20) == 0
    finally:
        os.umask(before)
    after = modes_below(data)
    for expected in (".", "secret", "archive.sqlite", "archive.sqlite-wal", "store/store.log", "store/store.sock"):
        assert expected in modes
    assert any("appendonly" in name for name in modes)
    assert {name: oct(mode) for name, mode in (modes | after).items() if mode & 0o077} == {}


def test_an_archive_of_an_older_version_becomes_private(tmp_path: Path) -> None:
    """Which is said, and only then is the archive used."""
    archive = tmp_path / "archive.sqlite"
    archive.touch()
    archive.chmod(0o644)
    with EmbeddedStore(tmp_path):
        done = fanline("worker", "--once", FANLINE_DATA_DIR=str(tmp_path))
    assert done.returncode == 0
    assert f"Other users of this machine could open {archive}; its mode is now 600." in done.stderr
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert archive.stat().st_size > 0
