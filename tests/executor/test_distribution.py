"""The distribution `strawberry-breadth-first`: built as a wheel, installed alone and run with a foreign schema."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import need
from tests.executor.test_readme import ROOT, example_and_output

LIBRARY = Path(__file__).with_name("library.py")
DOCUMENTS, FALLBACKS = 7, 1

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without environment variables of this repository, and return its standard output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def uv() -> str:
    """Return the path of uv."""
    found = os.environ.get("UV") or shutil.which("uv")
    need(found is not None, "uv")
    return str(found)


@pytest.fixture(scope="module")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    run(uv, "build", "--quiet", ROOT / "executor", "--out-dir", folder, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_contains_the_whole_package(wheel: Path) -> None:
    """It has all modules of `executor/` under the name `breadth_first`, type information, README and licence."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    modules = {f"breadth_first/{path.name}" for path in (ROOT / "executor").glob("*.py")}
    assert {name for name in names if ".dist-info/" not in name} == {*modules, "breadth_first/py.typed"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert "# strawberry-breadth-first" in metadata
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "executor" / "LICENSE").read_bytes()


def test_the_installed_wheel_returns_what_graphql_core_returns(uv: str, wheel: Path, tmp_path: Path) -> None:
    """The test uses a new environment and a schema other than Fanline's. The README's example runs there unchanged."""
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    run(uv, "pip", "install", "--quiet", "--python", python, wheel, cwd=tmp_path)

    planned, fallen_back, file = run(python, "-I", LIBRARY, cwd=tmp_path).split(maxsplit=2)
    example, output = example_and_output()

    assert (int(planned), int(fallen_back)) == (DOCUMENTS - FALLBACKS, FALLBACKS)
    assert Path(file.strip()).is_relative_to(tmp_path)
    assert run(python, "-I", "-W", "error", "-c", example, cwd=tmp_path) == output
