"""Warnings and refusals of `serve` and `worker` at start-up."""

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
from tests.server.cli.test_commands import PRODUCTION, fanline, free_port
from tests.support.graphs import archive_url_of

KEY = PRODUCTION["FANLINE_SECRET"]
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
    """Return safe production settings with changes; None removes a setting."""
    return Settings(**{name: value for name, value in (SAFE | changed).items() if value is not None})


def found(facts: Facts = FACTS, **changed: Any) -> list[tuple[str, str]]:
    """Return the severity and text of each finding."""
    return [(finding.severity.value, finding.text) for finding in check(settings_of(**changed), facts)]


def with_facts(**changed: Any) -> Facts:
    """Return the facts of a safe process with changes."""
    return Facts(**{name: getattr(FACTS, name) for name in Facts.__slots__} | changed)


def test_a_safe_production_has_no_findings() -> None:
    assert found() == []


def test_a_development_server_on_this_machine_has_no_findings() -> None:
    """The defaults have no findings, even for root with a low limit of open files."""
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
        ({"playground": True}, "FANLINE_PLAYGROUND makes the playground public"),
        ({"introspection": True}, "FANLINE_INTROSPECTION makes the whole schema public"),
        ({"allowed_origins": "https://a.example,http://b.example"}, "contains http://b.example, which has no TLS"),
        ({"rate_limits": False}, "FANLINE_RATE_LIMITS is off"),
        ({"trusted_proxies": None}, "all clients behind a proxy share one address"),
    ],
)
def test_an_unsafe_setting_is_one_warning(changed: dict[str, Any], said: str) -> None:
    """The warning names the setting or the host, and never a password."""
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
def test_a_store_on_this_machine_or_over_tls_has_no_findings(url: str) -> None:
    """Nobody else can read the traffic."""
    assert found(store_url=url) == []


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"uid": 0}, "Fanline runs as root"),
        ({"open_files": 1024}, "may open only 1024 files"),
    ],
)
def test_an_unsafe_process_is_one_warning(facts: dict[str, Any], said: str) -> None:
    """The process is not refused, because containers often run as root."""
    [(severity, text)] = found(with_facts(**facts))
    assert severity == "warn"
    assert said in text


def test_a_server_without_a_proxy_is_a_warning() -> None:
    """The server sends clear text on a public address."""
    [(severity, text)] = found(with_facts(host="0.0.0.0"), trusted_proxies=None)  # noqa: S104 - the warning is about this address
    assert severity == "warn"
    assert "listens on 0.0.0.0 without TLS" in text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "api.example"])  # noqa: S104 - the warning is about this address
def test_a_development_server_that_others_can_reach_is_a_warning(host: str) -> None:
    """A development server has an open playground."""
    [finding] = check(Settings(), Facts(uid=1, open_files=1024, modes={}, host=host))
    assert finding.severity is Severity.WARN
    assert f"listens on {host} in development mode" in finding.text


def test_a_worker_is_not_checked_for_settings_of_the_server() -> None:
    """A worker does not listen on a port."""
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
    """Long keys are refused too if they contain a common word. The message does not repeat the key."""
    [(severity, text)] = found(with_facts(keys=(KEY, key)))
    assert severity == "refuse"
    assert "A key of FANLINE_SECRET contains" in text
    assert key not in text


@pytest.mark.parametrize("make", [secrets.token_hex, secrets.token_urlsafe], ids=["hex", "base64"])
def test_random_keys_are_never_refused(make: Callable[[int], str]) -> None:
    """`openssl rand` creates such keys."""
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
    """Production refuses files that others can write, and archives that others can read; development only warns."""
    changed = {"data_dir": tmp_path / "data", "secret": None, "secret_file": tmp_path / "keys"}
    facts = with_facts(modes={tmp_path / name: mode})
    said = found(facts, **changed)
    assert [severity for severity, _ in said] == ([severity] if severity else [])
    assert all(f"`chmod {'700' if name == 'data' else '600'} {tmp_path / name}`" in text for _, text in said)
    in_development = {severity for severity, _ in found(facts, **changed, env="development")}
    assert in_development <= {"warn"}


def test_refusals_come_first_and_none_is_lost() -> None:
    """All refusals are listed, so that they can be fixed together."""
    facts = with_facts(uid=0, keys=(GUESSABLE, GUESSABLE), modes={Settings().data_dir: 0o777})
    assert [severity for severity, _ in found(facts)] == ["refuse", "refuse", "refuse", "warn"]


def test_data_files_become_private_except_for_their_group(tmp_path: Path) -> None:
    """Older versions left the archive readable. Files outside the data folder are not changed through links."""
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
    """Restore the limits of this process after the test."""
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)}
    yield
    for kind, limit in before.items():
        resource.setrlimit(kind, limit)


@pytest.mark.usefixtures("limits")
def test_files_are_allowed_up_to_the_hard_limit_and_production_dumps_no_core() -> None:
    """A core dump would contain the keys. Development allows core dumps."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    core = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    set_limits(production=False)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    assert resource.getrlimit(resource.RLIMIT_CORE) == core
    set_limits(production=True)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, core[1])


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_refusal_is_exit_code_1_and_nothing_is_created(tmp_path: Path, command: str) -> None:
    """Each reason has its own line."""
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
    """The password of the demo's users is in the README; other seeds have no passwords."""
    await load(graph, demo_source(people=10, posts=10))
    environment = PRODUCTION | {
        "FANLINE_STORE_URL": store_url,
        "FANLINE_ARCHIVE_URL": archive_url_of(store_url),
        "FANLINE_DATA_DIR": str(tmp_path),
    }
    done = fanline("serve", "--port", str(free_port()), **environment)
    assert done.returncode == 1
    assert "The demo's users have a public password" in done.stderr
    assert store_url in done.stderr


def test_an_archive_of_an_older_version_becomes_private(tmp_path: Path) -> None:
    """The worker reports the change, and uses the archive."""
    archive = tmp_path / "archive.sqlite"
    archive.touch()
    archive.chmod(0o644)
    with EmbeddedStore(tmp_path):
        done = fanline("worker", "--once", FANLINE_DATA_DIR=str(tmp_path))
    assert done.returncode == 0
    assert f"Other users of this machine could open {archive}; its mode is now 600." in done.stderr
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert archive.stat().st_size > 0
