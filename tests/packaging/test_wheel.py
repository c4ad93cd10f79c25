"""The wheel is complete and sufficient to run the demo without a checkout."""

import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.playground.page import OWN_FILES
from tests.packaging.project import CONSTRAINTS, PACKAGES, ROOT, uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LEFT_OUT = ("__pycache__", "node_modules")
OF_THE_EXECUTOR = {
    f"executor/{name}" for name in ("LICENSE", "README.md", "pyproject.toml")
}  # a distribution of its own
READY_SECONDS = 240.0  # the demo seeds its users first, which takes long on a busy machine
HOME = "{ viewer { login homeTimeline { posts(first: 3) { edges { node { text author { login } } } } } } }"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a source distribution and, from it, the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--out-dir", str(folder), str(ROOT), cwd=folder)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def fanline(wheel: Path, tmp_path: Path) -> Path:
    """Install the wheel and the pinned versions into a new environment, and return the command."""
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(CONSTRAINTS))
    environment = tmp_path / "environment"
    uv("venv", "--quiet", "--python", sys.executable, str(environment), cwd=tmp_path)
    packages = ["--python", str(environment), "--constraint", str(constraints), str(wheel)]
    uv("pip", "install", "--quiet", *packages, cwd=tmp_path)
    return environment / "bin" / "fanline"


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


def own_files() -> set[str]:
    """Return the files of the packages in the checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and not set(path.parts) & set(LEFT_OUT)
    }


def test_the_wheel_has_every_file_of_the_packages_and_the_examples(wheel: Path) -> None:
    """Lua scripts, migrations, the playground's page and py.typed included; no test, no document."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    examples = {f"server/playground/examples/{path.name}" for path in (ROOT / "examples").glob("*.graphql")}
    assert names == (own_files() | examples) - OF_THE_EXECUTOR
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_demo_runs_from_the_wheel(fanline: Path, tmp_path: Path) -> None:
    """The playground has every example, and the API answers alice."""
    with demo(fanline, tmp_path) as client:
        assert "Fanline playground" in client.get("/playground").text
        for asset in OWN_FILES:
            assert client.get(f"/playground/{asset}").status_code == 200
        start: dict[str, Any] = client.get("/playground/start.json").json()
        offered = {example["query"] for example in start["examples"]}
        assert offered == {path.read_text("utf-8") for path in (ROOT / "examples").glob("*.graphql")}
        session: dict[str, Any] = client.get("/playground/session.json?login=alice").json()
        headers = {"authorization": f"Bearer {session['token']}"}
        answer = client.post("/graphql", json={"query": HOME}, headers=headers).json()
        assert answer["data"]["viewer"]["login"] == "alice"
        assert len(answer["data"]["viewer"]["homeTimeline"]["posts"]["edges"]) == 3
