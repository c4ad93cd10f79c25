"""Node programs, and what they need. Programs that are slow to start serve many tests over a Unix socket."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need

FOLDER = Path(__file__).parent
BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
"""Chromium without a window system, which takes a quarter less computation, and the whole browser."""


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of node. Requires the packages of this folder."""
    need(bool(shutil.which("node")), "node, from nodejs.org or your distribution")
    packages = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    need(all((FOLDER / "node_modules" / name).is_dir() for name in packages), "`npm install` in tests/clients")
    return str(shutil.which("node"))


@pytest.fixture(scope="session")
def chromium_exists() -> None:
    """Require Chromium."""
    need_chromium()


def need_chromium() -> None:
    """Skip a test if Chromium is missing. Otherwise, tell programs where it is."""
    path = os.environ.get("CHROMIUM") or next((each for each in BROWSERS if Path(each).exists()), BROWSERS[-1])
    need(Path(path).exists(), f"Chromium at {path}, or elsewhere by CHROMIUM")
    os.environ["CHROMIUM"] = path


async def run(*command: str) -> Any:
    """Run a program and return the JSON value that it prints."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=FOLDER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def relay_artifacts(app: Path, language: str = "javascript") -> Path:
    """Compile the documents in the folder `src` of an application in Relay. Return the output folder."""
    (app / "package.json").write_text('{"type": "module"}')
    shutil.copy(FOLDER.parents[1] / "schema.graphql", app)
    config = {"src": "./src", "schema": "./schema.graphql", "language": language, "eagerEsModules": True}
    (app / "relay.config.json").write_text(json.dumps(config))
    command = ["node", str(FOLDER / "node_modules/relay-compiler/cli.js"), "relay.config.json"]
    compiled = subprocess.run(command, cwd=app, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return app / "src" / "__generated__"


class Program:
    """A program that listens on a Unix socket until its standard input ends. It is started again if it has exited.

    Its sockets are at `path`, with a suffix that counts the starts.
    """

    def __init__(self, file: Path, path: Path) -> None:
        self._file = file
        self._prefix = path
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def socket(self) -> Path:
        """Return the path of the socket of the running program."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._starts += 1
            self._process = self._start()
        return self._path()

    def end(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.communicate()

    def _path(self) -> Path:
        return self._prefix.with_suffix(f".{self._starts}")

    def _start(self) -> "subprocess.Popen[bytes]":
        command = ["node", str(self._file), str(self._path())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n", f"{self._file} has exited"
        return process


@contextmanager
def program(file: Path, path: Path) -> Iterator[Program]:
    """Return a program that starts when it is needed, and ends when the block ends."""
    found = Program(file, path)
    try:
        yield found
    finally:
        found.end()
