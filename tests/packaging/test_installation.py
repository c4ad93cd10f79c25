"""The build stage of the image installs Fanline, which then runs without a checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.playground.page import OWN_FILES
from tests.packaging.project import ROOT, uv
from tests.packaging.test_containers import BUILD, lines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

READY_SECONDS = 240.0  # the demo seeds its users first, which takes long on a busy machine
HOME = "{ viewer { user { login } homeTimeline { entries(first: 3) { edges { node { id author { login } } } } } } }"


class Stage:
    """A folder in which the instructions of the build stage run. It contains only the copied files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "opt" / "bin"
        self._variables = dict(pair.split("=", 1) for words in lines(BUILD, "ENV") for pair in words)
        self._variables |= {"UV_COMPILE_BYTECODE": "0"}  # only the start of the image is faster with it
        self._variables |= {"UV_LINK_MODE": "hardlink"}  # keeps the times of files, by which compiled modules fit
        self._variables |= {"UV_PROJECT_ENVIRONMENT": str(folder / "opt"), "UV_PYTHON": sys.executable}

    def copy(self) -> None:
        """Copy the files."""
        for *sources, target in lines(BUILD, "COPY"):
            for source in sources:
                copy(ROOT / source, self.folder / target)
            if sources == [target]:
                assert (self.folder / target).is_dir()

    def uv(self, *arguments: str) -> None:
        """Run uv, and copy compiled modules from the test environment, because compiling takes seconds."""
        uv(*arguments, "--quiet", cwd=self.folder, **self._variables)
        [installed] = (self.folder / "opt").glob("lib/python*/site-packages")
        copy_compiled(Path(sysconfig.get_path("purelib")), installed)


def copy(source: Path, target: Path) -> None:
    """Copy a file into a folder, or a folder without what .dockerignore leaves out everywhere."""
    if source.is_dir():
        ignored = re.findall(r"^\*\*/(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.M)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*ignored))
    else:
        shutil.copy(source, target)


def copy_compiled(source: Path, target: Path) -> None:
    """Copy compiled modules next to installed modules. Python ignores those that do not match their module."""
    for compiled in source.rglob("__pycache__"):
        beside = target / compiled.relative_to(source)
        if beside.parent.is_dir() and not beside.exists():
            shutil.copytree(compiled, beside)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Run the instructions of the build stage."""
    stage = Stage(tmp_path_factory.mktemp("build"))
    stage.copy()
    for words in lines(BUILD, "RUN"):
        if words[0] == "uv":
            stage.uv(*words[1:])
    return stage


def test_the_build_stage_installs_fanline(stage: Stage) -> None:
    """It runs without a checkout, and no development tools are installed."""
    program = stage.programs / "fanline"
    done = subprocess.run([program, "schema"], cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == (ROOT / "schema.graphql").read_text("utf-8")
    assert not (stage.programs / "pytest").exists()


@contextmanager
def demo(fanline: Path, folder: Path) -> Iterator[httpx.Client]:
    """Run `fanline demo` outside the checkout, on a free port, and yield a client; stop it with SIGTERM."""
    ours = ("FANLINE_", "PYTHON", "VIRTUAL_ENV", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    log = folder / "demo.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [fanline, "demo", "--port", "0", "--data", folder / "data"],
            cwd=folder,
            env={**environment, "COLUMNS": "500"},
            stdout=output,
            stderr=output,
        )
    try:
        with httpx.Client(base_url=wait_until_ready(process, log), timeout=60) as client:
            yield client
    finally:
        process.terminate()
        try:
            ended = process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
    assert ended == 0, log.read_text()


def wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that the demo prints, once `/health/ready` answers."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        if printed := re.search(r"(http://localhost:\d+)/playground", log.read_text()):
            address = printed[1].replace("localhost", "127.0.0.1")
            try:
                if httpx.get(f"{address}/health/ready").status_code == 200:
                    return address
            except httpx.TransportError:
                pass
        time.sleep(0.1)
    pytest.fail(f"The demo was not ready within {READY_SECONDS:.0f} seconds: {log.read_text()}")


def test_the_demo_runs_without_extras(stage: Stage, tmp_path: Path) -> None:
    """The playground has every example, and the API answers alice."""
    stage.uv("sync", "--no-dev", "--no-editable")
    with demo(stage.programs / "fanline", tmp_path) as client:
        assert "Fanline playground" in client.get("/playground").text
        for asset in OWN_FILES:
            assert client.get(f"/playground/{asset}").status_code == 200
        start: dict[str, Any] = client.get("/playground/start.json").json()
        offered = {example["query"] for example in start["examples"]}
        assert offered == {path.read_text("utf-8") for path in (ROOT / "examples").glob("*.graphql")}
        session: dict[str, Any] = client.get("/playground/session.json?login=alice").json()
        headers = {"authorization": f"Bearer {session['token']}"}
        answer = client.post("/graphql", json={"query": HOME}, headers=headers).json()
        assert answer["data"]["viewer"]["user"]["login"] == "alice"
        assert len(answer["data"]["viewer"]["homeTimeline"]["entries"]["edges"]) == 3
