"""The systemd units of docs/deployment are valid and hardened, and Fanline works within their restrictions."""

import ctypes
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.serving import GRACE_SECONDS
from tests.conftest import need
from tests.deployment.proxies import FOLDER, replaced
from tests.server.cli.test_commands import ask, serving

pytestmark = pytest.mark.slow

UNITS = ("fanline.service", "fanline-worker.service")
PROGRAM = "/opt/fanline/.venv/bin/fanline"
MOST_EXPOSURE = 15  # in tenths; systemd calls less than 20 "OK", and most services have more than 90
PR_SET_MDWE, PR_GET_MDWE, REFUSE_EXEC_GAIN = 65, 66, 1  # linux/prctl.h, since Linux 6.3


def directives(unit: str) -> dict[str, list[str]]:
    """Return the directives of a unit: each name with all its values."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", (FOLDER / unit).read_text("utf-8"), re.M):
        found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def analyzed(tmp_path: Path) -> Path:
    """Return a folder with the units in the form that systemd-analyze needs: their programs must exist."""
    need(bool(shutil.which("systemd-analyze")), "systemd-analyze, from the package systemd")
    for unit in UNITS:
        text = replaced((FOLDER / unit).read_text("utf-8"), {PROGRAM: str(Path(sys.executable).with_name("fanline"))})
        (tmp_path / unit).write_text(text)
    return tmp_path


def analyze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze, which does not need a running systemd."""
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=False)


def test_the_units_are_valid(analyzed: Path) -> None:
    """There is no unknown directive and no value that systemd ignores."""
    done = analyze(analyzed, "verify", *(f"./{unit}" for unit in UNITS))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", UNITS)
def test_the_units_are_hardened(analyzed: Path, unit: str) -> None:
    """The exposure level of systemd-analyze is low."""
    done = analyze(analyzed, "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", f"./{unit}")
    assert done.returncode == 0, done.stdout


def test_both_units_have_the_same_restrictions() -> None:
    """The units differ only in their program and their resource limits."""
    api, worker = (directives(unit) for unit in UNITS)
    differing = {name for name in api.keys() | worker.keys() if api.get(name) != worker.get(name)}
    assert differing == {
        "Description",
        "Wants",
        "ExecStart",
        "ExecReload",
        "Environment",
        "TasksMax",
        "MemoryMax",
        "OOMPolicy",
    }


def test_units_wait_for_running_requests_on_stop() -> None:
    """Otherwise, systemd would kill the process while it answers requests."""
    for unit in UNITS:
        assert int(directives(unit)["TimeoutStopSec"][0]) > GRACE_SECONDS


def refuse_writable_code() -> None:
    """Apply the effect of MemoryDenyWriteExecute= to this process and its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
        os._exit(77)


def test_no_memory_is_both_written_and_executed(tmp_path: Path) -> None:
    """Neither Python's extension modules, including password hashing, nor the embedded store need such memory."""
    need_mdwe()
    environment = {
        "FANLINE_ENV": "production",
        "FANLINE_SECRET": secrets.token_hex(32),
        "FANLINE_DATA_DIR": str(tmp_path / "data"),
    }
    with serving("serve", log=tmp_path / "log", environment=environment, preexec_fn=refuse_writable_code) as (
        process,
        port,
    ):
        sign_up = 'mutation { signUp(input: {login: "alice", password: "correct horse"}) { credentials { token } } }'
        token = ask(port, sign_up)["data"]["signUp"]["credentials"]["token"]
        assert ask(port, "{ viewer { user { login } } }", token)["data"] == {"viewer": {"user": {"login": "alice"}}}
        process.terminate()
        assert process.wait(timeout=20) == 0


def need_mdwe() -> None:
    """Skip the test on kernels before Linux 6.3, which lack the option. CI may run on one."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "prctl") or libc.prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0:
        pytest.skip("needs Linux 6.3 or later")
