"""Shell commands of the documentation, run by bash in a scratch folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.blocks import ROOT

SECONDS = 110.0
PROGRAMS = Path(sys.executable).parent  # with fanline


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a shell that has not activated this virtual environment."""
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if Path(folder) != PROGRAMS]
    left_out = ("FANLINE_", "VIRTUAL_ENV", "UV_RUN")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    path = os.pathsep.join([*folders, "/usr/sbin", "/sbin"])
    return {**kept, "PATH": path, "COLUMNS": "500", "UV_PROJECT": str(ROOT), **variables}


def with_fanline(**variables: str) -> dict[str, str]:
    """Return the environment of a shell that finds `fanline`."""
    plain = environment(**variables)
    return {**plain, "PATH": os.pathsep.join([str(PROGRAMS), plain["PATH"]])}


def sh(script: str, folder: Path, environ: dict[str, str]) -> str:
    """Run a script and return what it prints. Each command must succeed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


@contextmanager
def running(script: str, folder: Path, environ: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script in the background, and end all of its processes afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def commands(text: str) -> list[str]:
    """Return the individual commands of a block, without comments."""
    lines = [re.sub(r"(^|\s)#.*", "", line) for line in text.replace("\\\n", " ").splitlines()]
    return [command.strip() for line in lines for command in line.split("&&") if command.strip()]


def has(program: str) -> bool:
    """Return True if a program is installed."""
    return bool(shutil.which(program, path=environment()["PATH"]))
